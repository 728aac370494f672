import Testing
import Weft

@testable import WeftSync

extension FiberBarrier {
  var waiting: Int { unsafe waiters(in: pointer) }  // SAFETY: `self` keeps it
}

extension SyncTests {
  @Suite struct BarrierTests {
    @Test func theGateLiesWhereItIsExpected() {
      let barrier = FiberBarrier(1)
      unsafe expectGate(&barrier.gate, at: barrier.pointer)  // SAFETY: `barrier` keeps it
    }

    @Test(arguments: workerCounts, [1, 2, 5])
    func allStepsAreTakenTogether(workers: Int, parties: Int) throws {
      try onWorkers(workers) {
        let barrier = FiberBarrier(parties)
        #expect(barrier.parties == parties)
        let arrived = Counter()
        together(parties) { _ in
          for step in 1...scaled(1_000, least: 50) {
            arrived.add()
            try? barrier.wait()
            #expect(arrived.value >= step * parties)
            try? barrier.wait()
          }
        }
        #expect(barrier.waiting == 0)
      }
    }

    @Test(arguments: workerCounts)
    func aCancelledOneTakesItsArrivalBack(workers: Int) throws {
      try onWorkers(workers) {
        let barrier = FiberBarrier(3)
        let fibers = (0..<2).map { _ in Fiber { try barrier.wait() } }
        waitUntil { barrier.waiting == 2 }
        fibers[0].cancel()
        #expect(isCancelled { try fibers[0].join() })
        let second = Fiber { try barrier.wait() }
        waitUntil { barrier.waiting == 2 }
        // Both are still there: one, cancelled, was not counted.
        #expect(!fibers[1].isFinished && !second.isFinished)
        try barrier.wait()
        try fibers[1].join()
        try second.join()
        // And again.
        let thread = PlainThread { try? barrier.wait() }
        let third = Fiber { try barrier.wait() }
        waitUntil { barrier.waiting == 2 }
        try barrier.wait()
        try third.join()
        thread.join()
      }
    }

    @Test(arguments: workerCounts)
    func aTimeLimitTakesItBackToo(workers: Int) throws {
      try onWorkers(workers) {
        let barrier = FiberBarrier(2)
        #expect(isTimedOut { try barrier.wait(within: .milliseconds(1)) })
        onThread { #expect(isTimedOut { try barrier.wait(within: .milliseconds(1)) }) }
        #expect(barrier.waiting == 0)
        let other = Fiber { try barrier.wait() }
        waitUntil { barrier.waiting == 1 }
        try barrier.wait()
        try other.join()
      }
    }

    /// Either all three go on, or the cancelled one alone does not, and the others still wait.
    @Test(arguments: workerCounts)
    func cancelledJustWhenTheLastComes(workers: Int) throws {
      try onWorkers(workers) {
        for round in 0..<scaled(2_000, least: 100) {
          let barrier = FiberBarrier(3)
          let wasCancelled = Box<Bool?>(nil)
          let passed = Counter()
          let victim = Fiber {
            let cancelled = isCancelled { try barrier.wait() }
            wasCancelled.value = cancelled
            if !cancelled { passed.add() }
          }
          let other = Fiber {
            try barrier.wait()
            passed.add()
          }
          waitUntil { barrier.waiting == 2 }
          let last = Fiber {
            try barrier.wait()
            passed.add()
          }
          if round % 2 == 0 { Fiber.yield() }
          victim.cancel()
          victim.join()
          if wasCancelled.value == true {
            waitUntil { barrier.waiting == 2 }
            #expect(passed.value == 0, "round \(round)")
            try barrier.wait()
          }
          try other.join()
          try last.join()
          #expect(passed.value == (wasCancelled.value == true ? 2 : 3))
          #expect(barrier.waiting == 0)
        }
      }
    }

    /// As above, where the cancelled one has not run since: the cancellation came first, and it
    /// was still there.
    @Test func cancelledButStillThere() throws {
      try onWorkers(1) {
        let barrier = FiberBarrier(2)
        let victim = Fiber {
          try barrier.wait()
          #expect(Fiber.isCancelled)
          // Now it is noticed.
          #expect(isCancelled { try barrier.wait() })
        }
        waitUntil { barrier.waiting == 1 }
        victim.cancel()
        try barrier.wait()
        try victim.join()
        #expect(barrier.waiting == 0)
      }
    }

    @Test func aBarrierOfNobody() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        _ = FiberBarrier(0)
      }
      #expect(errorText(result).contains("FiberBarrier(0): a barrier of 0"))
    }
  }
}
