import Testing
import Weft

@testable import WeftSync

extension FiberSemaphore {
  var waiting: Int { unsafe waiters(in: pointer) }  // SAFETY: `self` keeps it
}

extension SyncTests {
  @Suite struct SemaphoreTests {
    @Test func theGateLiesWhereItIsExpected() {
      let semaphore = FiberSemaphore(1)
      unsafe expectGate(&semaphore.gate, at: semaphore.pointer)  // SAFETY: `semaphore` keeps it
    }

    @Test(arguments: workerCounts)
    func asManyAsThereArePermits(workers: Int) throws {
      try onWorkers(workers) {
        let semaphore = FiberSemaphore(3)
        let (inside, most) = (Counter(), Box(0))
        together(8) { _ in
          for _ in 0..<scaled(1_000, least: 50) {
            try? semaphore.withPermit {
              let now = inside.add()
              most.change { $0 = max($0, now) }
              Fiber.yield()
              inside.add(-1)
            }
          }
        }
        #expect(most.value <= 3 && most.value > 0)
        #expect(semaphore.availablePermits == 3)
        #expect(semaphore.waiting == 0)
      }
    }

    @Test func countsWithoutWaiting() throws {
      let semaphore = FiberSemaphore(2)
      #expect(semaphore.waitIfAvailable())
      #expect(!semaphore.waitIfAvailable(2))
      #expect(semaphore.availablePermits == 1)
      semaphore.signal(4)
      #expect(semaphore.availablePermits == 5)
      try semaphore.wait(5)
      try semaphore.wait(0)
      #expect(semaphore.waitIfAvailable(0))
      #expect(!semaphore.waitIfAvailable())
      semaphore.signal(0)
      #expect(semaphore.availablePermits == 0)
      #expect(isTimedOut { try semaphore.wait(within: .milliseconds(1)) })
      semaphore.signal()
      #expect(try semaphore.withPermit { 7 } == 7)
      #expect(throws: Oops.self) { try semaphore.withPermit { throw Oops() } }
      #expect(semaphore.availablePermits == 1)
    }

    @Test(arguments: workerCounts)
    func aBigRequestIsNotOvertaken(workers: Int) throws {
      try onWorkers(workers) {
        let semaphore = FiberSemaphore(1)
        let order = Box<[Int]>([])
        let big = Fiber {
          try semaphore.wait(3)
          order.change { $0.append(3) }
        }
        waitUntil { semaphore.waiting == 1 }
        let small = Fiber {
          try semaphore.wait()
          order.change { $0.append(1) }
        }
        waitUntil { semaphore.waiting == 2 }
        // There is a permit, but somebody is before.
        #expect(semaphore.availablePermits == 1)
        #expect(!semaphore.waitIfAvailable())
        #expect(semaphore.waitIfAvailable(0))
        onThread { #expect(!semaphore.waitIfAvailable()) }
        semaphore.signal()
        #expect(semaphore.waiting == 2)
        semaphore.signal()
        try big.join()
        #expect(semaphore.waiting == 1)
        semaphore.signal()
        try small.join()
        #expect(order.value == [3, 1])
        #expect(semaphore.availablePermits == 0)
      }
    }

    @Test(arguments: workerCounts)
    func firstComeFirstServed(workers: Int) throws {
      try onWorkers(workers) {
        let semaphore = FiberSemaphore(0)
        let order = Box<[Int]>([])
        var thread: PlainThread?
        for number in 0..<6 {
          let take: @Sendable () -> Void = {
            try? semaphore.wait()
            order.change { $0.append(number) }
          }
          if number == 3 { thread = PlainThread(take) } else { Fiber { take() } }
          waitUntil { semaphore.waiting == number + 1 }
        }
        for number in 0..<6 {
          semaphore.signal()
          waitUntil { order.value.count == number + 1 }
        }
        #expect(order.value == Array(0..<6))
        thread?.join()
      }
    }

    @Test(arguments: workerCounts)
    func whoIsCancelledLetsThoseBehindThrough(workers: Int) throws {
      try onWorkers(workers) {
        let semaphore = FiberSemaphore(2)
        let big = Fiber { try semaphore.wait(3) }
        waitUntil { semaphore.waiting == 1 }
        let small = (0..<3).map { _ in Fiber { try semaphore.wait() } }
        waitUntil { semaphore.waiting == 4 }
        big.cancel()
        #expect(isCancelled { try big.join() })
        waitUntil { semaphore.waiting == 1 }
        #expect(semaphore.availablePermits == 0)
        semaphore.signal()
        for fiber in small { try fiber.join() }
        #expect(semaphore.waiting == 0 && semaphore.availablePermits == 0)
        // Nobody waits, so it is as fast as at first: the word says so.
        semaphore.signal()
        #expect(semaphore.waitIfAvailable())
      }
    }

    @Test(arguments: workerCounts)
    func aTimeLimitLetsThoseBehindThroughToo(workers: Int) throws {
      try onWorkers(workers) {
        let semaphore = FiberSemaphore(1)
        let big = Fiber { try semaphore.wait(2, within: .milliseconds(20)) }
        waitUntil { semaphore.waiting == 1 || big.isFinished }
        let small = Fiber { try semaphore.wait() }
        #expect(isTimedOut { try big.join() })
        try small.join()
        #expect(semaphore.availablePermits == 0)
      }
    }

    @Test(arguments: workerCounts)
    func cancelledOnesTakeNothing(workers: Int) throws {
      try onWorkers(workers) {
        let semaphore = FiberSemaphore(5)
        let isReady = Box(false)
        let fiber = Fiber {
          waitUntil { isReady.value }
          // It would not have had to wait.
          #expect(isCancelled { try semaphore.wait() })
          #expect(isCancelled { try semaphore.withPermit {} })
          #expect(semaphore.waitIfAvailable())
        }
        fiber.cancel()
        isReady.value = true
        fiber.join()
        #expect(semaphore.availablePermits == 4)
      }
    }

    /// Permits that are given, taken and given up at the same time are as many at the end.
    @Test(arguments: workerCounts)
    func noPermitIsLostToACancellation(workers: Int) throws {
      let seed = stressSeed()
      try onWorkers(workers) {
        var random = SplitMix64(seed: seed)
        for round in 0..<scaled(2_000, least: 100) {
          let semaphore = FiberSemaphore(0)
          let taken = Counter()
          let fibers = (0..<4).map { number in
            Fiber {
              let amount = 1 + number % 2
              if !isCancelled({ try semaphore.wait(amount) }) { taken.add(amount) }
            }
          }
          if random.next() & 1 == 0 { waitUntil { semaphore.waiting == 4 } }
          let canceller = Fiber { for fiber in fibers[1...] { fiber.cancel() } }
          let given = Int.random(in: 1...6, using: &random)
          for _ in 0..<given {
            semaphore.signal()
            if random.next() & 3 == 0 { Fiber.yield() }
          }
          canceller.join()
          // Others may have taken all that was given.
          fibers[0].cancel()
          for fiber in fibers { fiber.join() }
          #expect(
            taken.value + semaphore.availablePermits == given, "seed \(seed), round \(round)")
          #expect(semaphore.waiting == 0)
        }
      }
    }

    @Test func misuse() async {
      let negative = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        _ = FiberSemaphore(-1)
      }
      #expect(errorText(negative).contains("FiberSemaphore(-1)"))
      let count = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        try FiberSemaphore(1).wait(-2)
      }
      #expect(errorText(count).contains("FiberSemaphore: -2 permits"))
      let signal = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        FiberSemaphore(1).signal(-3)
      }
      #expect(errorText(signal).contains("FiberSemaphore: -3 permits"))
      let overflow = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        let semaphore = FiberSemaphore(.max)
        #expect(semaphore.waitIfAvailable())
        semaphore.signal()
        semaphore.signal()
      }
      #expect(errorText(overflow).contains("FiberSemaphore: 9223372036854775807 permits and 1"))
    }

    private struct Model: SequentialModel {
      enum Op: Sendable { case wait(Int), waitIfAvailable, signal(Int) }
      var permits: Int

      func after(_ op: Op, result: Bool?) -> Model? {
        switch op {
        case .wait(let count): permits >= count ? Model(permits: permits - count) : nil
        case .waitIfAvailable where result == false: permits == 0 ? self : nil
        case .waitIfAvailable: permits > 0 ? Model(permits: permits - 1) : nil
        case .signal(let count): Model(permits: permits + count)
        }
      }
    }

    /// With requests for one permit, or for one and two: then nobody asks whether one is
    /// available, since that is not so while a big request waits.
    @Test(arguments: workerCounts, [1, 2])
    func linearizable(workers: Int, most: Int) throws {
      let seed = stressSeed()
      var random = SplitMix64(seed: seed)
      try onWorkers(workers) {
        for round in 0..<scaled(400, least: 50) {
          let recorder = HistoryRecorder<Model.Op, Bool>()
          let permits = Int.random(in: most...2, using: &random)
          let semaphore = FiberSemaphore(permits)
          let dice = random.next()
          together(3) { actor in
            for step in 0..<2 {
              let bit = dice >> UInt64(actor * 8 + step)
              let count = most == 1 ? 1 : 1 + Int(bit >> 4 & 1)
              if most > 1 || bit & 1 == 0 {
                recorder.record(actor: actor, .wait(count)) {
                  try? semaphore.wait(count)
                  return true
                }
              } else if !recorder.record(
                actor: actor, .waitIfAvailable, { semaphore.waitIfAvailable() })
              {
                continue
              }
              if bit & 4 != 0 { Fiber.yield() }
              recorder.record(actor: actor, .signal(count)) {
                semaphore.signal(count)
                return true
              }
            }
          }
          let history = recorder.history
          #expect(
            history.isLinearizable(from: Model(permits: permits)),
            "seed \(seed), round \(round), \(permits) permits\n\(history)")
        }
      }
    }
  }
}
