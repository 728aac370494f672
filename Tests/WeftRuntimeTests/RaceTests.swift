import Testing
import WeftContext

@testable import WeftRuntime

extension RuntimeTests {
  /// `race`, `concurrentMap` and `concurrentForEach`.
  @Suite struct RaceTests {
    @Test(arguments: workerCounts)
    func theFirstValueWins(workers: Int) throws {
      try onWorkers(workers) {
        for winner in 0..<5 {
          let cancelled = Counter()
          let value = try race(
            (0..<5).map { i in
              {
                if i == winner { return i }
                expectCancellation { try Fiber.park() }
                cancelled.add()
                throw CancellationError()
              }
            })
          #expect(value == winner)
          // They have ended.
          #expect(cancelled.value == 4)
        }
        let text = try race(
          { "a" },
          {
            try Fiber.sleep(for: endless); return "b"
          })
        #expect(text == "a")
        #expect(try race({ 1 }) == 1)
        expectNoScope()
      }
    }

    /// One that does not care about its cancellation is waited for, and does not win.
    @Test(arguments: workerCounts)
    func theOthersAreJoined(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let ended = Counter()
        let value = try race(
          { Tracked(alive, 1) },
          {
            waitUntil { Fiber.isCancelled }
            ended.add()
            return Tracked(alive, 2)
          })
        #expect(value.number == 1 && ended.value == 1)
        #expect(alive.value == 1)
      }
      #expect(alive.value == 0)
    }

    @Test(arguments: workerCounts)
    func errorsAreForgottenUnlessAllFail(workers: Int) throws {
      try onWorkers(workers) {
        let failed = Counter()
        let value = try race(
          { () throws -> Int in
            defer { failed.add() }
            throw Oops(number: 1)
          },
          {
            waitUntil { failed.value == 1 }
            return 7
          })
        #expect(value == 7)
        // The first in time, not in order.
        expectError(Oops(number: 2)) {
          let failed = Counter()
          let _: Int = try race(
            {
              waitUntil { failed.value == 1 }
              Fiber.yield()
              throw Oops(number: 1)
            },
            {
              defer { failed.add() }
              try Self.failFirst()
              return 1
            })
        }
        expectCancellation { let _: Int = try race({ throw CancellationError() }) }
      }
    }

    private static func failFirst() throws { throw Oops(number: 2) }

    @Test(arguments: workerCounts)
    func aCancelledCaller(workers: Int) throws {
      try onWorkers(workers) {
        let (entered, ended) = (Counter(), Counter())
        let fiber = Fiber {
          let _: Int = try race(
            (0..<3).map { _ in
              {
                entered.add()
                defer { ended.add() }
                try Fiber.park()
                return 1
              }
            })
        }
        waitUntil { entered.value == 3 }
        fiber.cancel()
        expectCancellation { try fiber.join() }
        #expect(ended.value == 3)
        // Though they end otherwise.
        let other = Fiber {
          let _: Int = try race(
            {
              entered.add()
              do { try Fiber.park() } catch { throw Oops() }
              return 1
            })
        }
        waitUntil { entered.value == 4 }
        other.cancel()
        expectCancellation { try other.join() }
        // From the beginning.
        let third = Fiber {
          Fiber.current?.cancel()
          _ = try race({ itRan() }, { itRan() })
        }
        expectCancellation { try third.join() }
        expectExceeded {
          try withTimeout(.milliseconds(1)) {
            _ = try race({ try Fiber.park() }, { try Fiber.sleep(for: endless) })
          }
        }
        expectNoScope()
      }
    }

    @Test func fromPlainThreads() throws {
      onThread {
        expect(
          (try? race(
            {
              try Fiber.sleep(for: endless); return 1
            }, { 2 })) == 2)
        let squares = try? (0..<50).concurrentMap { $0 * $0 }
        expect(squares == (0..<50).map { $0 * $0 })
        let count = Counter()
        expect(thrown { try (0..<50).concurrentForEach(limit: 3) { _ in count.add() } } == nil)
        expect(count.value == 50)
        expectExceeded {
          try withTimeout(.milliseconds(1)) {
            try (0..<50).concurrentForEach(limit: 3) { _ in try Fiber.park() }
          }
        }
        expectExceeded { try withTimeout(.zero) { _ = try [1].concurrentMap { $0 } } }
      }
    }

    /// Many rounds, in which winner and losers end at about the same time.
    @Test(arguments: workerCounts)
    func closeRaces(workers: Int) throws {
      let rounds = scaled(1_000, least: 50)
      var random = SplitMix64(seed: stressSeed())
      let alive = Counter()
      try onWorkers(workers) {
        for _ in 0..<rounds {
          let seeds = (0..<4).map { _ in random.next() }
          let caller = Fiber {
            try race(
              seeds.map { seed in
                {
                  for _ in 0..<seed % 4 { Fiber.yield() }
                  if seed >> 8 % 3 == 0 { throw Oops() }
                  if seed >> 16 % 3 == 0 { try Fiber.sleep(for: .microseconds(Int(seed % 20))) }
                  return Tracked(alive, Int(seed % 4))
                }
              }
            ).number
          }
          if random.next() % 4 == 0 {
            for _ in 0..<random.next() % 6 { Fiber.yield() }
            caller.cancel()
          }
          _ = try? caller.join()
        }
      }
      #expect(alive.value == 0)
    }

    // MARK: - concurrentMap

    @Test(arguments: workerCounts)
    func resultsAreInOrder(workers: Int) throws {
      try onWorkers(workers) {
        for limit in [1, 2, 7, 1_000, nil] {
          let running = Counter()
          let most = Box(0)
          let results = try (0..<200).concurrentMap(limit: limit) { i in
            most.change { [now = running.add()] in $0 = max($0, now) }
            if i % 3 == 0 { Fiber.yield() }
            if i % 50 == 0 { try Fiber.sleep(for: .microseconds(20)) }
            running.add(-1)
            return "\(i)"
          }
          #expect(results == (0..<200).map { "\($0)" })
          #expect(most.value <= limit ?? workers * 4)
        }
        let none = try [Int]().concurrentMap { $0 }
        #expect(none.isEmpty)
        try [Int]().concurrentForEach { _ in itRan() }
      }
    }

    @Test(arguments: workerCounts)
    func elementsAreTakenAsThereIsRoom(workers: Int) throws {
      try onWorkers(workers) {
        let (drawn, ended) = (Counter(), Counter())
        let numbers = Generator<Int> { y in
          for i in 0..<100 {
            let ahead = drawn.add() - ended.value
            expect(ahead <= 5)
            try y.yield(i)
          }
        }
        let results = try numbers.concurrentMap(limit: 5) { i in
          Fiber.yield()
          ended.add()
          return i
        }
        #expect(results == Array(0..<100))
        // Where one fails, the rest of an endless sequence is not drawn.
        let endlessly = Counter()
        expectError(Oops(number: 9)) {
          try sequence(first: 0, next: { $0 + 1 }).concurrentForEach(limit: 3) { i in
            endlessly.add()
            if i == 9 { throw Oops(number: 9) }
          }
        }
        #expect(endlessly.value <= 9 + 2 * 3)
      }
    }

    @Test(arguments: workerCounts)
    func theFirstErrorCancelsTheRest(workers: Int) throws {
      try onWorkers(workers) {
        let cancelled = Counter()
        expectError(Oops(number: 3)) {
          _ = try (0..<10).concurrentMap(limit: 4) { i in
            if i == 3 {
              waitUntil { cancelled.value == -3 }
              throw Oops(number: 3)
            }
            cancelled.add(-1)
            expectCancellation { try Fiber.park() }
            cancelled.add(2)
            throw CancellationError()
          }
        }
        #expect(cancelled.value == 3)
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func aCancelledMap(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let entered = Counter()
        let fiber = Fiber {
          try (0..<100).concurrentMap(limit: 8) { i in
            let tracked = Tracked(alive, i)
            entered.add()
            if i >= 20 { try Fiber.park() }
            return tracked
          }.count
        }
        waitUntil { entered.value == 28 }
        fiber.cancel()
        expectCancellation { _ = try fiber.join() }
        #expect(alive.value == 0)
        expectExceeded {
          try withTimeout(.milliseconds(1)) {
            try sequence(first: 0, next: { $0 }).concurrentForEach { _ in
              try Fiber.sleep(for: .microseconds(1))
            }
          }
        }
        expectExceeded {
          try withTimeout(.zero) { try [1].concurrentForEach { _ in itRan() } }
        }
        expectNoScope()
      }
    }

    // MARK: - Misuse

    @Test func nothingToRace() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        let none: [@Sendable () throws -> Int] = []
        _ = try race(none)
      }
      #expect(text(result).contains("race was called without operations"))
    }

    @Test func noRoomAtAll() async {
      let map = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        _ = try [1].concurrentMap(limit: 0) { $0 }
      }
      #expect(text(map).contains("concurrentMap was called with a limit of 0"))
      let each = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        try [Int]().concurrentForEach(limit: -4) { _ in }
      }
      #expect(text(each).contains("concurrentForEach was called with a limit of -4"))
    }
  }
}
