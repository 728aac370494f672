// Guards against fibers that wait although a worker is free.

import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

@Suite(.serialized, .enabled(if: weft_cpus_available() >= 2)) struct ProgressTests {
  static func quiet(_ workers: Int) -> Scheduler.Configuration {
    var configuration = Scheduler.Configuration(workers: workers)
    configuration.watchdog = false
    return configuration
  }

  /// Puts every worker to sleep with no limit.
  static func letAllSleep() { try? Fiber.sleep(for: .milliseconds(20)) }

  @Test(.timeLimit(.minutes(1)), arguments: [2, 4])
  func aLoneFiberBehindOneThatNeverYields(workers: Int) {
    onThread {
      Scheduler.run(Self.quiet(workers)) {
        Self.letAllSleep()
        let behind = Fiber {}
        #expect(spin { behind.isFinished })
      }
    }
  }

  @Test(.timeLimit(.minutes(1)), arguments: [2, 4])
  func aTimerOfOneThatNeverYields(workers: Int) {
    onThread {
      Scheduler.run(Self.quiet(workers)) {
        let sleeper = Fiber(placement: .here) { try? Fiber.sleep(for: .milliseconds(40)) }
        Self.letAllSleep()
        #expect(spin { sleeper.isFinished })
      }
    }
  }

  /// The same after a wake that no timer had a part in, with and without a timer set.
  // Situation 50: work is queued from outside, and the sleeping worker is not told.
  @Test(.timeLimit(.minutes(1)), arguments: [2, 4])
  func afterAWakeFromOutside(workers: Int) async {
    await #expect(processExitsWith: .success) { [workers] in
      asProgram {
        // SAFETY: before anybody asks for them.
        unsafe setenv("WEFT_WATCHDOG_MS", "0", 1)
        unsafe setenv("WEFT_WORKERS", "\(workers)", 1)
        let parked = Count()
        for round in 0..<20 {
          let fiber = Fiber {
            let sleeper = round % 2 == 0 ? nil : Fiber { try? Fiber.sleep(for: .milliseconds(40)) }
            if sleeper != nil { Fiber.yield() }
            parked.add()
            try? Fiber.park()
            if let sleeper { return spin { sleeper.isFinished } }
            let behind = Fiber {}
            return spin { behind.isFinished }
          }
          let core = Scheduler.shared.core
          guard eventually({ parked.current == round + 1 && core.allAsleep }) else { return 100 }
          fiber.unpark()
          if !fiber.join() { return Int32(round + 1) }
        }
        return 0
      }
    }
  }

  @Test(.timeLimit(.minutes(1)), arguments: [2, 4])
  func theRunEndsWithTheLastFiber(workers: Int) {
    onThread {
      for round in 0..<50 {
        Scheduler.run(Self.quiet(workers)) {
          for _ in 0..<3 { Fiber(placement: .worker(1)) { burn(.microseconds(100 * round)) } }
        }
      }
    }
  }
}
