// Guards against dumps that leave out what one looks for in them.

import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

@Suite(.serialized) struct DumpTests {
  @Test(.timeLimit(.minutes(1)), arguments: [1, 2]) func showsEveryState(workers: Int) {
    Scheduler.run(.init(workers: workers)) {
      let core = schedulerCore()
      let parked = Fiber(name: "parked") { try? Fiber.park() }
      let sleeper = Fiber(name: "sleeper") { try? Fiber.sleep(for: .seconds(600)) }
      let joiner = Fiber(name: "joiner") { parked.join() }
      #expect(yielding { core.statistics.total.parks >= 3 })
      let fresh = Fiber(placement: .worker(0)) {}
      let text = Scheduler(core: core).dumped()
      #expect(text.contains("it is no consistent snapshot"))
      #expect(text.contains("threads that Weft did not start exist"))
      #expect(
        text.contains(line(with: #""parked" (made at WeftRuntimeTests/DumpTests.swift:"#, text)))
      #expect(line(with: #""parked" (made"#, text).contains("waits for an unpark; stack "))
      #expect(line(with: #""sleeper" (made"#, text).contains("waits for the time"))
      #expect(line(with: #""joiner" (made"#, text).contains(#"waits for the end of fiber"#))
      #expect(line(with: "  worker 0", text).contains("runs a fiber that never parked"))
      #expect(text.contains("that never parked\n"))
      parked.unpark()
      sleeper.cancel()
      joiner.join()
      fresh.join()
    }
  }

  @Test(.timeLimit(.minutes(1))) func aSignalDumpsAll() async {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      asProgram { Self.dumpOnSignal() }
    }
    let child = Child(result)
    #expect(child.errors.contains("weft: dump of process"))
    #expect(child.errors.contains(#""parked""#))
    #expect(child.errors.contains("threads that Weft did not start exist"))
  }

  @Test(.timeLimit(.minutes(1)), .enabled(if: canFork)) func allThreadsAreKnown() async {
    let child = Child(
      await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        asOnlyThread {
          // The helpers' threads count themselves when they first run.
          Self.dumpOnSignal { weft_threads_are_known() }
        }
      })
    #expect(child.errors.contains("every thread of the process is Weft's"))
  }

  private static func dumpOnSignal(after condition: () -> Bool = { true }) -> Int32 {
    // SAFETY: before anybody asks for it.
    unsafe setenv("WEFT_DUMP_SIGNAL", "USR1", 1)
    return Scheduler.run(.init(workers: 2)) {
      let core = schedulerCore()
      let parked = Fiber(name: "parked") { try? Fiber.park() }
      let isReady = yielding { core.statistics.total.parks > 0 && condition() }
      kill(getpid(), SIGUSR1)
      let wasServed = sleeping { DumpSignal.servedCount > 0 }
      parked.unpark()
      return isReady && wasServed ? 0 : 1
    }
  }

  @Test(arguments: [("USR2", SIGUSR2), ("SIGUSR1", SIGUSR1), ("12", 12)])
  func signalNames(text: String, number: Int32) {
    #expect(DumpSignal.number(of: text) == number)
  }

  private func line(with part: String, _ text: String) -> String {
    text.split(separator: "\n").first { $0.contains(part) }.map(String.init) ?? "no such line"
  }
}

/// For good, so that no deinit runs; and reachable, so that nobody takes them for a leak.
private let keptSchedulers = Box<[Scheduler]>([])

extension Scheduler {
  /// The dump, through an object that must not shut the scheduler down.
  func dumped() -> String {
    keptSchedulers.change { $0.append(self) }
    return dump()
  }
}
