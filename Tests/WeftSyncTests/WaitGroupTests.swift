import Testing
import Weft

@testable import WeftSync

extension WaitGroup {
  var waiting: Int { unsafe waiters(in: pointer) }  // SAFETY: `self` keeps it
}

extension SyncTests {
  @Suite struct WaitGroupTests {
    @Test func theGateLiesWhereItIsExpected() {
      let group = WaitGroup()
      unsafe expectGate(&group.gate, at: group.pointer)  // SAFETY: `group` keeps it
    }

    @Test(arguments: workerCounts)
    func waitsForAll(workers: Int) throws {
      try onWorkers(workers) {
        let group = WaitGroup()
        try group.wait()
        for round in 1...5 {
          let done = Counter()
          group.add(20)
          for number in 0..<20 {
            Fiber {
              if number % 3 == 0 { Fiber.yield() }
              done.add()
              group.done()
            }
          }
          let thread = PlainThread {
            try? group.wait()
            #expect(done.value == 20)
          }
          try group.wait()
          #expect(done.value == 20, "round \(round)")
          waitUntil { group.count == 0 && group.waiting == 0 }
          thread.join()
        }
      }
    }

    @Test func countsDownBySeveral() throws {
      let group = WaitGroup()
      group.add(5)
      group.add(-3)
      #expect(group.count == 2)
      group.add(0)
      group.done()
      #expect(isTimedOut { try group.wait(within: .milliseconds(1)) })
      group.done()
      try group.wait(within: .zero)
    }

    @Test(arguments: workerCounts)
    func whoWaitedAtZeroGoesOnThoughItIsRaisedAgain(workers: Int) throws {
      try onWorkers(workers) {
        let group = WaitGroup()
        group.add()
        let fibers = (0..<4).map { _ in Fiber { try group.wait() } }
        waitUntil { group.waiting == 4 }
        group.done()
        group.add()
        for fiber in fibers { try fiber.join() }
        let late = Fiber { try group.wait() }
        waitUntil { group.waiting == 1 }
        group.done()
        try late.join()
      }
    }

    @Test(arguments: workerCounts)
    func cancelledOnesLeave(workers: Int) throws {
      try onWorkers(workers) {
        let group = WaitGroup()
        group.add()
        let fibers = (0..<3).map { _ in Fiber { try group.wait() } }
        waitUntil { group.waiting == 3 }
        fibers[1].cancel()
        #expect(isCancelled { try fibers[1].join() })
        #expect(group.waiting == 2)
        group.done()
        try fibers[0].join()
        try fibers[2].join()
        let early = Fiber {
          waitUntil { Fiber.isCancelled }
          #expect(isCancelled { try group.wait() })
        }
        early.cancel()
        early.join()
      }
    }

    @Test(arguments: workerCounts)
    func stress(workers: Int) throws {
      let seed = stressSeed()
      try onWorkers(workers) {
        for round in 0..<scaled(1_000, least: 50) {
          let group = WaitGroup()
          let left = Counter()
          left.add(8)
          group.add(8)
          together(6) { actor in
            var random = SplitMix64(seed: seed &+ UInt64(actor &+ round &* 8))
            if actor < 4 {
              for _ in 0..<2 {
                if random.next() & 1 == 0 { Fiber.yield() }
                left.add(-1)
                group.done()
              }
            } else {
              try? group.wait()
              #expect(left.value == 0, "seed \(seed), round \(round)")
            }
          }
          #expect(group.count == 0 && group.waiting == 0)
        }
      }
    }

    @Test func belowZero() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        let group = WaitGroup()
        group.add()
        group.done()
        group.done()
      }
      #expect(errorText(result).contains("WaitGroup: 0 to be done, and -1 added"))
      let overflow = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        let group = WaitGroup()
        group.add(.max)
        group.add()
      }
      #expect(errorText(overflow).contains("WaitGroup: 9223372036854775807 and 1 more"))
    }
  }
}
