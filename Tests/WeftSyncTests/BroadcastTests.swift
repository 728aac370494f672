import Testing
import Weft

extension SyncTests {
  @Suite struct BroadcastTests {
    @Test(arguments: workerCounts, [1, 3, 64])
    func everySubscriberSeesAll(workers: Int, capacity: Int) throws {
      let count = scaled(2_000)
      try onWorkers(workers) {
        let broadcast = Broadcast<Int>(capacity: capacity)
        let fibers = (0..<10).map { _ in
          let subscription = broadcast.subscribe()
          return Fiber { () throws -> Int in
            var next = 0
            while let element = try subscription.receive() {
              if element != next { return -1 }
              next += 1
            }
            return next
          }
        }
        for i in 0..<count { try broadcast.send(i) }
        broadcast.close()
        broadcast.close()
        for fiber in fibers { #expect(try fiber.join() == count) }
        expectClosed { try broadcast.send(1) }
        #expect(broadcast.isClosed)
      }
    }

    @Test func itIsHot() throws {
      try onWorkers(1) {
        let broadcast = Broadcast<Int>(capacity: 2)
        for i in 0..<10 { try broadcast.send(i) }  // nobody is there, so nobody is waited for
        let first = broadcast.subscribe()
        try broadcast.send(10)
        let second = broadcast.subscribe()
        try broadcast.send(11)
        #expect(broadcast.subscriberCount == 2)
        #expect(try first.receive() == 10 && first.receive() == 11)
        #expect(try second.receive() == 11)
        #expect(first.receiveIfAvailable() == nil)
        broadcast.close()
        #expect(try first.receive() == nil && second.receive() == nil)
      }
    }

    @Test func whoIsSlowMakesTheSenderWaitOrLoses() throws {
      try onWorkers(1) {
        let waits = Broadcast<Int>(capacity: 2)
        let slow = waits.subscribe()
        let sender = Fiber { for i in 0..<5 { try waits.send(i) } }
        for _ in 0..<10 { Fiber.yield() }
        #expect(!sender.isFinished)
        #expect(try (0..<5).map { _ in try slow.receive() } == [0, 1, 2, 3, 4])
        try sender.join()
        #expect(slow.missedCount == 0)

        let drops = Broadcast<Int>(capacity: 2, lag: .dropOldest)
        let loser = drops.subscribe()
        for i in 0..<5 { try drops.send(i) }
        #expect(try loser.receive() == 3 && loser.missedCount == 3)
        #expect(try loser.receive() == 4)

        let keeps = Broadcast<Int>(capacity: 2, lag: .dropLatest)
        let early = keeps.subscribe()
        for i in 0..<5 { try keeps.send(i) }
        #expect(try early.receive() == 0 && early.receive() == 1)
        #expect(early.receiveIfAvailable() == nil && early.missedCount == 0)
      }
    }

    @Test(arguments: workerCounts)
    func whoeverLeavesIsNotWaitedFor(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let broadcast = Broadcast<Tracked>(capacity: 2)
        var leaver: Broadcast<Tracked>.Subscription? = broadcast.subscribe()
        let sender = Fiber { for i in 0..<5 { try broadcast.send(Tracked(alive, i)) } }
        waitUntil { alive.value == 3 }
        _ = leaver
        leaver = nil
        try sender.join()
        #expect(alive.value == 0 && broadcast.subscriberCount == 0)
      }
    }

    @Test(arguments: workerCounts)
    func cancellationLosesNothing(workers: Int) throws {
      let seed = stressSeed()
      try onWorkers(workers) {
        var random = SplitMix64(seed: seed)
        let count = scaled(3_000)
        let broadcast = Broadcast<Int>(capacity: 4)
        let subscription = broadcast.subscribe()
        let sender = Fiber(placement: .worker(workers - 1)) {
          for i in 0..<count { try broadcast.send(i) }
          broadcast.close()
        }
        var next = 0
        var ended = false
        while !ended {
          let fiber = Fiber { () throws -> Int? in try subscription.receive() }
          if random.next() % 2 == 0 { Fiber.yield() }
          if random.next() % 2 == 0 { fiber.cancel() }
          do {
            guard let element = try fiber.join() else {
              ended = true
              break
            }
            #expect(element == next)
            next += 1
          } catch {}
        }
        #expect(next == count)
        try sender.join()
      }
    }

    @Test(arguments: workerCounts)
    func severalReceiversOfOneSubscriptionShareIt(workers: Int) throws {
      let count = scaled(2_000)
      try onWorkers(workers) {
        let broadcast = Broadcast<Int>(capacity: 8)
        let subscription = broadcast.subscribe()
        let sum = Counter()
        let fibers = (0..<4).map { _ in
          Fiber { while let element = try subscription.receive() { sum.add(element) } }
        }
        for i in 1...count { try broadcast.send(i) }
        broadcast.close()
        for fiber in fibers { try fiber.join() }
        #expect(sum.value == count * (count + 1) / 2)
      }
    }

    @Test func noCapacityIsNamed() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        _ = Broadcast<Int>(capacity: 0)
      }
      #expect(errorText(result).contains("Broadcast(capacity: 0)"))
    }
  }
}
