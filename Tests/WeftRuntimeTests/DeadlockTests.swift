// Supports the claim that a deadlock is reported where it can be told, and never falsely. Each runs
// in a process whose only threads are Weft's.

import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

@Suite(.serialized, .enabled(if: canFork)) struct DeadlockTests {
  static func configuration(
    _ workers: Int, _ response: Scheduler.Configuration.DeadlockResponse = .stop
  ) -> Scheduler.Configuration {
    var configuration = Scheduler.Configuration(workers: workers)
    configuration.onDeadlock = response
    return configuration
  }

  // Situations 89 and 91: nobody can ever be woken, and nothing is said.
  @Test(.timeLimit(.minutes(1)), arguments: [1, 2, 4]) func everybodyWaits(workers: Int) async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
        [workers] in
        asOnlyThread {
          Scheduler.run(Self.configuration(workers)) {
            let fiber = Fiber(name: "waits") { try? Fiber.park() }
            fiber.join()
            return 0
          }
        }
      })
    #expect(child.errors.contains("weft: deadlock"))
    #expect(
      child.errors.contains(#""waits" (made at WeftRuntimeTests/DeadlockTests.swift:"#))
    #expect(child.errors.contains("waits for an unpark"))
    #expect(child.errors.contains(#"waits for the end of fiber"#))
    #expect(!child.errors.contains("cycle"))
  }

  @Test(.timeLimit(.minutes(1)), arguments: [1, 2, 4]) func aCycleIsShown(workers: Int) async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
        [workers] in
        asOnlyThread {
          Scheduler.run(Self.configuration(workers)) {
            Self.joinInACircle()
            return 0
          }
        }
      })
    let cycle = child.errors.split(separator: "\n").first { $0.contains("cycle:") } ?? ""
    #expect(cycle.contains(#""a""#) && cycle.contains(#""b""#) && !cycle.contains("main"))
  }

  static func joinInACircle() {
    // SAFETY: one worker runs everything that touches it.
    final class Box: @unchecked Sendable { var other: Fiber<Void, Never>? }
    let box = Box()
    let a = Fiber(name: "a") {
      while box.other == nil { Fiber.yield() }
      box.other?.join()
    }
    let b = Fiber(name: "b") { a.join() }
    box.other = b
    b.join()
  }

  @Test(.timeLimit(.minutes(1)), arguments: [1, 2, 4]) func cancelInstead(workers: Int) async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        [workers] in
        asOnlyThread {
          Scheduler.run(Self.configuration(workers, .cancel)) {
            let fibers = (0..<3).map { _ in
              Fiber { () -> Int32 in
                do throws(CancellationError) {
                  try Fiber.park()
                  return 0
                } catch {
                  return 1
                }
              }
            }
            return fibers.reduce(0) { $0 + $1.join() } == 3 ? 0 : 1
          }
        }
      })
    #expect(child.errors.components("weft: deadlock") == 1)
    #expect(child.errors.contains("3 fibers cancelled"))
  }

  @Test(.timeLimit(.minutes(1))) func whatCannotBeCancelledStops() async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
        asOnlyThread {
          Scheduler.run(Self.configuration(2, .cancel)) {
            Self.joinInACircle()
            return 0
          }
        }
      })
    #expect(child.errors.contains("none of them can be cancelled"))
  }

  @Test(.timeLimit(.minutes(1))) func aPlainThreadThatJoinsIsKnown() async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
        asOnlyThread {
          Fiber { try? Fiber.park() }.join()
          return 0
        }
      })
    #expect(child.errors.contains("weft: deadlock"))
  }

  @Test(.timeLimit(.minutes(1))) func fibersWithoutAStack() async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
        asOnlyThread {
          Scheduler.run(Self.configuration(1)) {
            // Address space for nothing large any more.
            var limit = rlimit(rlim_cur: 1 << 30, rlim_max: 1 << 30)
            // SAFETY: read by the call.
            _ = unsafe setrlimit(__rlimit_resource_t(9), &limit)
            Fiber(stackSize: .mebibytes(8192)) {}.join()
            return 0
          }
        }
      })
    #expect(child.errors.contains("wait for a stack: a stack of 8"))
  }

  // MARK: - No false reports

  @Test(.timeLimit(.minutes(1)), arguments: [1, 2, 4]) func aTimerIsNoDeadlock(workers: Int) async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        [workers] in
        asOnlyThread {
          Scheduler.run(Self.configuration(workers)) {
            let main = Fiber.current
            Fiber {
              try? Fiber.sleep(for: .milliseconds(50))
              main?.unpark()
            }
            do throws(CancellationError) { try Fiber.park() } catch { return 1 }
            return 0
          }
        }
      })
    #expect(!child.errors.contains("weft:"))
  }

  @Test(.timeLimit(.minutes(1))) func anUnknownThreadMayWake() async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        asOnlyThread {
          Scheduler.run(Self.configuration(2)) {
            let parked = Fiber { try? Fiber.park() }
            let waker = Waker(parked)
            parked.join()
            waker.join()
            return 0
          }
        }
      })
    #expect(!child.errors.contains("weft:"))
  }

  /// A thread that Weft knows nothing of.
  // SAFETY: the thread is written before anybody else has the object.
  final class Waker: @unchecked Sendable {
    let fiber: Fiber<()?, Never>
    var thread = pthread_t()

    init(_ fiber: Fiber<()?, Never>) {
      self.fiber = fiber
      // SAFETY: the thread takes the reference over; it is joined.
      let own = unsafe Unmanaged.passRetained(self).toOpaque()
      _ = unsafe pthread_create(
        &thread, nil,
        { argument in
          let waker = unsafe Unmanaged<Waker>.fromOpaque(argument!).takeRetainedValue()
          usleep(150_000)
          waker.fiber.unpark()
          return nil
        }, own)
    }

    func join() { pthread_join(thread, nil) }
  }

  /// Every worker goes to sleep thousands of times, with a wake or a timer always under way.
  // Situations 60 and 90: all workers sleep while a wake is under way: a hang, or a false report.
  @Test(.timeLimit(.minutes(1)), arguments: [1, 2, 4]) func neverInAStorm(workers: Int) async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        [workers] in
        asOnlyThread {
          Scheduler.run(Self.configuration(workers)) {
            let fibers = (0..<8).map { number in
              Fiber {
                for round in 0..<400 {
                  try? Fiber.sleep(for: .microseconds(20 + (number * 37 + round * 13) % 100))
                  let child = Fiber { try? Fiber.park() }
                  Fiber { child.unpark() }
                  child.join()
                }
              }
            }
            fibers.forEach { $0.join() }
            return 0
          }
        }
      })
    #expect(!child.errors.contains("deadlock"))
  }

  @Test(.timeLimit(.minutes(1))) func manyRunsBesideEachOther() async {
    let child = Child(
      await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        asOnlyThread {
          for _ in 0..<50 {
            Scheduler.run(Self.configuration(2)) { Fiber { Fiber { Fiber.yield() }.join() }.join() }
            Fiber { Fiber.yield() }.join()
          }
          return 0
        }
      })
    #expect(!child.errors.contains("weft:"))
  }
}
