// Supports the claim that the parent's fibers never run in a child, and that whoever tries is told.
// Each parent is the process of an exit test: in one with threads of other tests, some of them may
// hold a lock of the Swift runtime, which nobody in the child would ever release.

import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

@Suite(.serialized, .enabled(if: canFork)) struct ForkTests {
  @Test(.timeLimit(.minutes(1))) func aRunAnewWorks() async {
    await #expect(processExitsWith: .success) {
      Scheduler.run(.init(workers: 2)) { Fiber {}.join() }
      let child = inChild {
        Scheduler.run(.init(workers: 2)) {
          (0..<10).map { i in Fiber { Int32(i) } }.reduce(0) { $0 + $1.join() }
        }
      }
      #expect(child.exitStatus == 45)
    }
  }

  // Situation 98: in the child the helper threads are missing, and a join hangs.
  @Test(.timeLimit(.minutes(1))) func theSharedOneStartsAnew() async {
    await #expect(processExitsWith: .success) {
      let parents = Fiber { 3 }
      #expect(parents.join() == 3)
      let child = inChild {
        // What had ended can still be read.
        Int32(Fiber { 4 }.join() + parents.join())
      }
      #expect(child.exitStatus == 7)
    }
  }

  @Test(.timeLimit(.minutes(1))) func aParentsFiberCannotBeJoinedOrWoken() async {
    await #expect(processExitsWith: .success) {
      let parked = Fiber { try? Fiber.park() }
      #expect(eventually { Scheduler.shared.statistics.total.parks > 0 })
      Self.expectRefusal(
        inChild {
          parked.join()
          return 0
        })
      Self.expectRefusal(
        inChild {
          parked.unpark()
          return 0
        })
      parked.unpark()
      parked.join()
    }
  }

  // Situation 97: the child runs the parent's fibers.
  @Test(.timeLimit(.minutes(1)), arguments: 0..<5) func aFiberThatForks(use: Int) async {
    await #expect(processExitsWith: .success) { [use] in
      var configuration = Scheduler.Configuration(workers: 2)
      configuration.watchdog = false
      // Once before: a worker that uses something of Swift's runtime for the first time may hold a
      // lock of it, for which the child would wait for ever.
      Scheduler.run(configuration) { Fiber(placement: .worker(1)) {}.join() }
      let child = Scheduler.run(configuration) {
        inChild {
          switch use {
          case 0: Fiber {}.join()
          case 1: Fiber.yield()
          case 2: try? Fiber.park()
          case 3: try? Fiber.sleep(for: .seconds(1))
          default: Scheduler.run {}
          }
          return 0
        }
      }
      Self.expectRefusal(child)
    }
  }

  /// The locks of the stack pool are in use at any moment.
  @Test(.timeLimit(.minutes(1))) func forksAmongBusyThreads() async {
    await #expect(processExitsWith: .success) {
      let (stop, rounds) = (Count(), Count())
      let busy = (0..<2).map { _ in
        Fiber {
          while stop.current == 0 {
            for size in [17, 20, 24, 27] { Fiber(stackSize: .bytes(1 << size)) {}.join() }
            rounds.add()
          }
        }
      }
      // What all of this uses for the first time takes locks of the Swift runtime, which a child
      // could find held by a thread that it has not.
      Scheduler.run(.init(workers: 1)) { Fiber(stackSize: .bytes(1 << 17)) {}.join() }
      #expect(eventually { rounds.current > 20 })
      for _ in 0..<20 {
        let child = inChild {
          Scheduler.run(.init(workers: 1)) {
            for size in [17, 20, 24, 27] { Fiber(stackSize: .bytes(1 << size)) {}.join() }
            return 9
          }
        }
        #expect(child.exitStatus == 9)
      }
      stop.add()
      busy.forEach { $0.join() }
    }
  }

  // Situation 99: a child ignores ^C, since the runtime blocked it.
  @Test(arguments: [1, 2, 4]) func signalMasksAreLeftAlone(workers: Int) throws {
    let own = Self.blockedSignals()
    Scheduler.run(ProgressTests.quiet(workers)) {
      let masks = (0..<workers).map { index in
        Fiber(placement: .worker(index)) { Self.blockedSignals() }
      }
      for mask in masks { #expect(mask.join() == own) }
    }
    #expect(Self.blockedSignals() == own)
  }

  private static func blockedSignals() -> [Int32] {
    var set = sigset_t()
    // SAFETY: the local is filled in by the call.
    unsafe sigemptyset(&set)
    unsafe pthread_sigmask(SIG_BLOCK, nil, &set)
    return (1..<32).filter { unsafe sigismember(&set, $0) == 1 }
  }

  private static func expectRefusal(_ child: Child) {
    #expect(child.signal != nil)
    #expect(child.errors.contains("this process is a child of fork()"))
  }
}
