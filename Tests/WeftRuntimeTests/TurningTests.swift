import CWeft
import Testing
import WeftTestSupport

@testable import WeftRuntime

/// Supports what Stealing.swift says of queues that turn over: they are left alone for a while, and
/// no longer. Each fiber here runs without a switch until another runs at the same time.
@Suite(.serialized) struct TurningTests {
  private func markOwn() {
    // SAFETY: this thread's own worker.
    unsafe markTurning(weft_worker_current()!, true)
  }

  private func isOwnMarked() -> Bool {
    // SAFETY: as above.
    unsafe weft_word_load_relaxed(weft_worker_turning(weft_worker_current()!)) != 0
  }

  /// True if so many got to run at once.
  private func runTogether(_ count: Int) -> Bool {
    let running = Counter()
    let fibers = (0..<count).map { _ in
      Fiber { () -> Bool in
        running.add()
        return spin { running.value >= 2 }
      }
    }
    return fibers.map { $0.join() }.allSatisfy { $0 }
  }

  @Test(arguments: [2, 4], [2, 3, 15]) func longFibersDoNotWait(workers: Int, count: Int) throws {
    for _ in 0..<scaled(50, least: 5) {
      try onWorkers(workers) {
        // Others nap.
        let stop = Counter()
        let pair = (0..<3).map { _ in Fiber { while stop.value == 0 { Fiber.yield() } } }
        for _ in 0..<2_000 { Fiber.yield() }
        stop.add()
        markOwn()
        #expect(runTogether(count))
        for fiber in pair { fiber.join() }
      }
    }
  }

  /// A mark that is left over from before everybody slept.
  @Test(arguments: [2, 4]) func aStaleMarkKeepsNobodyAsleep(workers: Int) throws {
    for _ in 0..<scaled(50, least: 5) {
      try onWorkers(workers) {
        try Fiber.sleep(for: .milliseconds(2))
        markOwn()
        #expect(runTogether(3))
      }
    }
  }

  /// Its worker does not switch any more when the queue fills.
  @Test(arguments: [2, 4]) func aBusyWorkerIsHelped(workers: Int) throws {
    for _ in 0..<scaled(50, least: 5) {
      try onWorkers(workers) {
        for _ in 0..<100 { Fiber.yield() }
        markOwn()
        let started = Counter()
        let fibers = (0..<4).map { _ in Fiber { _ = started.add() } }
        // This fiber stays where it is: somebody else runs them.
        #expect(spin { started.value == 4 })
        for fiber in fibers { fiber.join() }
      }
    }
  }

  /// The mark goes when its worker has nothing to do.
  @Test(arguments: [1, 2, 4]) func aMarkDoesNotOutliveItsQueue(workers: Int) throws {
    try onWorkers(workers) {
      try Fiber.pinned {
        markOwn()
        // On a slow machine the time is up before its worker has nothing to do.
        for _ in 0..<1_000 where isOwnMarked() { try Fiber.sleep(for: .milliseconds(1)) }
        // Nobody has a queue that could be marked since.
        #expect(!isOwnMarked())
      }
    }
  }
}
