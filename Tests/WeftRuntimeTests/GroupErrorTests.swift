import Testing

@testable import WeftRuntime

extension RuntimeTests {
  /// Errors and cancellation in groups.
  @Suite struct GroupErrorTests {
    @Test(arguments: workerCounts)
    func theFirstErrorCancelsTheSiblingsAndIsRethrown(workers: Int) throws {
      let cancelled = Counter()
      try onWorkers(workers) {
        expectError(Oops(number: 1)) {
          try withFiberGroup(of: Void.self) { group in
            for _ in 0..<20 {
              group.spawn {
                do { try Fiber.park() } catch {
                  cancelled.add()
                  throw error
                }
              }
            }
            group.spawn { throw Oops(number: 1) }
          }
        }
        #expect(cancelled.value == 20)
        #expect(!Fiber.isCancelled)
        try Fiber.sleep(for: .microseconds(1))
      }
    }

    @Test(arguments: workerCounts)
    func anErrorThatTheBodyCaughtIsRethrownAtTheEnd(workers: Int) throws {
      try onWorkers(workers) {
        let caught = Box<[Int]>([])
        expectError(Oops(number: 1)) {
          try withFiberGroup(of: Int.self) { group in
            group.spawn { throw Oops(number: 1) }
            do {
              while try group.next() != nil {}
            } catch let error as Oops {
              caught.change { $0.append(error.number) }
            }
          }
        }
        #expect(caught.value == [1])
      }
    }

    @Test(arguments: workerCounts)
    func theFirstInTimeWins(workers: Int) throws {
      try onWorkers(workers) {
        expectError(Oops(number: 0)) {
          try withFiberGroup(of: Void.self) { group in
            for i in 1..<10 {
              group.spawn {
                do { try Fiber.park() } catch { throw Oops(number: i) }
              }
            }
            group.spawn { throw Oops(number: 0) }
            group.waitForAll()
            throw Oops(number: 99)
          }
        }
      }
    }

    @Test(arguments: workerCounts)
    func anErrorInterruptsABodyParkedElsewhere(workers: Int) throws {
      try onWorkers(workers) {
        for way in 0..<3 {
          let interrupted = Counter()
          expectError(Oops(number: way)) {
            try withFiberGroup(of: Void.self) { group in
              let neverEnds = Fiber { try Fiber.park() }
              defer { neverEnds.cancel() }
              group.spawn {
                Fiber.yield()
                throw Oops(number: way)
              }
              do {
                switch way {
                case 0: try Fiber.park()
                case 1: try Fiber.sleep(for: .seconds(100_000))
                default: _ = try neverEnds.join(within: .seconds(100_000))
                }
              } catch is CancellationError {
                interrupted.add()
              }
              // A level, not an edge.
              #expect(Fiber.isCancelled)
              expectCancellation { try Fiber.sleep(for: .seconds(1)) }
            }
          }
          #expect(interrupted.value == 1)
          #expect(!Fiber.isCancelled)
        }
      }
    }

    @Test(arguments: workerCounts)
    func anErrorReachesGroupsInsideTheBody(workers: Int) throws {
      try onWorkers(workers) {
        let cancelled = Counter()
        expectError(Oops(number: 1)) {
          try withFiberGroup(of: Void.self) { outer in
            outer.spawn {
              for _ in 0..<5 { Fiber.yield() }
              throw Oops(number: 1)
            }
            try withFiberGroup(of: Void.self) { inner in
              inner.spawn {
                do { try Fiber.park() } catch {
                  cancelled.add()
                  throw error
                }
              }
              // Not cancelled itself: ends because the child does.
              inner.waitForAll()
            }
            #expect(Fiber.isCancelled)
          }
        }
        #expect(cancelled.value == 1)
        #expect(!Fiber.isCancelled)
      }
    }

    @Test(arguments: workerCounts)
    func theInnerGroupsEndLeavesTheOutersMark(workers: Int) throws {
      try onWorkers(workers) {
        expectError(Oops(number: 1)) {
          try withFiberGroup(of: Void.self) { outer in
            outer.spawn { throw Oops(number: 1) }
            waitUntil { Fiber.isCancelled }
            expectError(Oops(number: 2)) {
              try withFiberGroup(of: Void.self) { inner in
                expect(inner.isCancelled)
                inner.spawn { throw Oops(number: 2) }
                inner.waitForAll()
              }
            }
            #expect(Fiber.isCancelled)
          }
        }
      }
    }

    @Test(arguments: workerCounts)
    func cancelAllMakesNoError(workers: Int) throws {
      try onWorkers(workers) {
        let sum = try withFiberGroup(of: Int.self) { group in
          let parked = Counter()
          for i in 0..<10 {
            group.spawn {
              if i % 2 == 0 { return i }
              parked.add()
              try Fiber.park()
              return 1_000
            }
          }
          waitUntil { parked.value == 5 }
          group.cancelAll()
          expect(group.isCancelled)
          var sum = 0
          while let value = try group.next() { sum += value }
          return sum
        }
        #expect(sum == 20)
      }
    }

    @Test(arguments: workerCounts)
    func otherErrorsAfterCancelAllCount(workers: Int) throws {
      try onWorkers(workers) {
        expectError(Oops(number: 3)) {
          try withFiberGroup(of: Void.self) { group in
            group.spawn { do { try Fiber.park() } catch { throw Oops(number: 3) } }
            group.cancelAll()
          }
        }
      }
    }

    @Test(arguments: workerCounts)
    func aChildSpawnedAfterCancelAllStartsCancelled(workers: Int) throws {
      try onWorkers(workers) {
        try withFiberGroup(of: Bool.self) { group in
          group.cancelAll()
          group.spawn { Fiber.isCancelled && (Fiber.current?.isCancelled ?? false) }
          try expect(group.next() == true)
          group.spawn {
            try Fiber.park()
            return true
          }
          try expect(group.next() == nil)
        }
      }
    }

    @Test(arguments: workerCounts)
    func cancellingTheParentReachesChildrenOfChildren(workers: Int) throws {
      try onWorkers(workers) {
        let parked = Counter()
        let cancelled = Counter()
        @Sendable func level(_ depth: Int) throws {
          try withFiberGroup(of: Void.self) { group in
            for _ in 0..<2 where depth > 0 { group.spawn { try level(depth - 1) } }
            group.spawn {
              parked.add()
              do { try Fiber.park() } catch {
                cancelled.add()
                throw error
              }
            }
            group.waitForAll()
          }
        }
        let fiber = Fiber { try level(4) }
        waitUntil { parked.value == 31 }
        fiber.cancel()
        // The children's CancellationErrors are no error: the parent's own waits were not cut.
        try fiber.join()
        #expect(cancelled.value == 31)
      }
    }

    @Test(arguments: workerCounts)
    func nextThrowsWhenTheFiberIsCancelled(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Box(false)
        let isWaiting = Box(false)
        let fiber = Fiber {
          try withFiberGroup(of: Void.self) { group in
            // Takes no notice: an element that is there is given out, cancelled or not.
            group.spawn { waitUntil { gate.value } }
            isWaiting.value = true
            for _ in 0..<2 { expectCancellation { _ = try group.next() } }
            gate.value = true
          }
        }
        waitUntil { isWaiting.value }
        fiber.cancel()
        try fiber.join()
      }
    }

    @Test(arguments: workerCounts)
    func aGroupOpenedByACancelledFiberIsCancelled(workers: Int) throws {
      try onWorkers(workers) {
        let fiber = Fiber {
          Fiber.current?.cancel()
          return try withFiberGroup(of: Bool.self) { group in
            group.spawn { Fiber.isCancelled }
            return group.isCancelled && group.nextResult() != nil
          }
        }
        try expect(fiber.join())
      }
    }

    @Test(arguments: workerCounts)
    func aBodyThatThrowsCancelsItsChildren(workers: Int) throws {
      try onWorkers(workers) {
        let cancelled = Counter()
        expectError(Oops(number: 4)) {
          try withFiberGroup(of: Void.self) { group in
            group.spawn {
              do { try Fiber.park() } catch {
                cancelled.add()
                throw Oops(number: 5)
              }
            }
            throw Oops(number: 4)
          }
        }
        #expect(cancelled.value == 1)
      }
    }

    @Test(arguments: workerCounts)
    func collectCancelsNobody(workers: Int) throws {
      try onWorkers(workers) {
        try withFiberGroup(of: Int.self, onError: .collect) { group in
          for i in 0..<20 {
            group.spawn {
              if i % 2 == 0 { throw Oops(number: i) }
              Fiber.yield()
              try Fiber.checkCancellation()
              return i
            }
          }
          var values = 0
          var errors = 0
          while let result = group.nextResult() {
            switch result {
            case .success(let value): values += value
            case .failure(let error): errors += (error as? Oops)?.number ?? -1_000
            }
          }
          #expect(values == 100 && errors == 90)
          expect(!group.isCancelled)
        }
      }
    }

    @Test(arguments: workerCounts)
    func aCancellationErrorThatNobodyProvokedIsAnError(workers: Int) throws {
      try onWorkers(workers) {
        expectCancellation {
          try withFiberGroup(of: Void.self) { group in
            group.spawn { throw CancellationError() }
          }
        }
      }
    }

    @Test(arguments: workerCounts)
    func aShieldCoversTheGroupsOpenedInsideIt(workers: Int) throws {
      try onWorkers(workers) {
        let inside = Counter()
        let fiber = Fiber {
          let handle = try #require(Fiber.current)
          handle.cell.changeShields(by: 1)
          try withFiberGroup(of: Void.self) { group in
            group.spawn {
              inside.add()
              try Fiber.park()
            }
            waitUntil { inside.value == 2 }
            expect(!group.isCancelled && !Fiber.isCancelled)
            group.cancelAll()
          }
          handle.cell.changeShields(by: -1)
          return Fiber.isCancelled
        }
        waitUntil { inside.value == 1 }
        fiber.cancel()
        inside.add()
        try expect(fiber.join())
      }
    }

    @Test(arguments: workerCounts)
    func aShieldHoldsOffTheFailureOfAGroupAroundIt(workers: Int) throws {
      try onWorkers(workers) {
        expectError(Oops(number: 1)) {
          try withFiberGroup(of: Void.self) { group in
            let cell = try #require(Fiber.current).cell
            cell.changeShields(by: 1)
            group.spawn { throw Oops(number: 1) }
            waitUntil { group.isCancelled }
            #expect(!Fiber.isCancelled)
            try Fiber.sleep(for: .microseconds(1))
            cell.changeShields(by: -1)
            #expect(Fiber.isCancelled)
          }
        }
      }
    }

    @Test(arguments: workerCounts)
    func theEndOfTheSchedulerCancelsGroups(workers: Int) throws {
      let ended = Counter()
      try onWorkers(workers) {
        let parked = Counter()
        Fiber {
          try withFiberGroup(of: Void.self) { group in
            for _ in 0..<5 {
              group.spawn {
                parked.add()
                defer { ended.add() }
                try Fiber.park()
              }
            }
          }
        }
        waitUntil { parked.value == 5 }
      }
      #expect(ended.value == 5)
    }

    // Situation 59: the waiter goes on, and frees the group, before its lock is let go.
    @Test(arguments: workerCounts)
    func groupsUnderRandomFailures(workers: Int) throws {
      var random = SplitMix64(seed: stressSeed())
      let alive = Counter()
      let deadline = ContinuousClock.now + stressDuration / 4
      try onWorkers(workers) {
        while ContinuousClock.now < deadline {
          let seed = random.next()
          let fiber = Fiber { try Self.randomGroup(seed, 3, alive) }
          if seed % 5 == 0 {
            for _ in 0..<Int(seed >> 8 % 16) { Fiber.yield() }
            fiber.cancel()
          }
          _ = try? fiber.join()
          #expect(alive.value == 0)
        }
      }
    }

    private static func randomGroup(_ seed: UInt64, _ depth: Int, _ alive: Counter) throws -> Int {
      var random = SplitMix64(seed: seed)
      return try withFiberGroup(of: Tracked.self) { group in
        for i in 0..<Int.random(in: 0...6, using: &random) {
          let seed = random.next()
          group.spawn {
            let tracked = Tracked(alive, i)
            switch seed % 6 {
            case 0: throw Oops(number: i)
            case 1: try Fiber.park()
            case 2: try Fiber.sleep(for: .microseconds(Int(seed >> 8 % 200)))
            case 3: Fiber.yield()
            case 4 where depth > 0: _ = try randomGroup(seed, depth - 1, alive)
            default: break
            }
            return tracked
          }
        }
        var sum = 0
        if random.next() % 2 == 0 {
          group.cancelAll()
          for _ in 0..<3 { sum += try group.next()?.number ?? 0 }
        }
        // Those that park for ever end only so.
        group.cancelAll()
        return sum
      }
    }
  }
}
