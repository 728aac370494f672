import CWeft
import Testing
import WeftContext

@testable import WeftRuntime

/// Long enough to be for ever.
let endless = Duration.seconds(100_000)

/// Expects that a function throws `DeadlineExceeded`.
func expectExceeded(at location: SourceLocation = #_sourceLocation, _ body: () throws -> Void) {
  expectError(DeadlineExceeded(), at: location, body)
}

/// Expects that nothing is left of scopes that were open here.
func expectNoScope(at location: SourceLocation = #_sourceLocation) {
  // SAFETY: the scope of the code that calls.
  let scope = unsafe weft_current_scope().pointee
  unsafe expect(
    scope.deadline == never && scope.shields == 0 && scope.locals == nil, at: location)
  expect(!Fiber.isCancelled, at: location)
  expect(thrown { try Fiber.sleep(for: .nanoseconds(1)) } == nil, at: location)
}

/// What should not have run did.
func itRan(at location: SourceLocation = #_sourceLocation) {
  Issue.record("it ran", sourceLocation: location)
}

extension RuntimeTests {
  /// `withDeadline`, `withTimeout` and `withCancellationShield` in fibers.
  @Suite struct DeadlineTests {
    @Test(arguments: workerCounts, EndlessWait.all)
    func itEndsEachWait(workers: Int, wait: EndlessWait) throws {
      try onWorkers(workers) {
        let fibers = (0..<4).map { i in
          Fiber {
            expectExceeded { try withTimeout(.microseconds(i * 300), wait.body) }
            expectExceeded {
              try withDeadline(.now + .microseconds(i * 300)) {
                // A level, not an edge.
                for _ in 0..<3 { expectCancellation { try wait.body() } }
                expect(Fiber.isCancelled)
                try Fiber.checkCancellation()
              }
            }
            expectNoScope()
            expect(Fiber.current?.isCancelled == false)
          }
        }
        for fiber in fibers { fiber.join() }
        expectNoTimers()
      }
    }

    @Test(arguments: workerCounts)
    func oneThatHasPassed(workers: Int) throws {
      try onWorkers(workers) {
        for duration: Duration in [.zero, .seconds(-1), .seconds(Int64.min), .nanoseconds(-1)] {
          // The body runs all the same, and its value wins.
          let value = try withTimeout(duration) {
            expect(Fiber.isCancelled)
            Fiber.yield()
            return 5
          }
          #expect(value == 5)
          expectExceeded { try withTimeout(duration) { try Fiber.sleep(for: .zero) } }
          expectExceeded { try withDeadline(.now + duration) { try Fiber.checkCancellation() } }
          expectExceeded { try withTimeout(duration) { try blocking { itRan() } } }
          expectExceeded {
            try withTimeout(duration) {
              Fiber.current?.unpark()
              try Fiber.park()
            }
          }
          // The permit that the park did not take.
          try Fiber.park()
        }
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func oneBeyondTheEndOfTime(workers: Int) throws {
      try onWorkers(workers) {
        for duration: Duration in [.seconds(Int64.max), endless, .seconds(1 << 40)] {
          let value = try withTimeout(duration) {
            try withDeadline(.now + duration) {
              Fiber.current?.unpark()
              try Fiber.park()
              try Fiber.sleep(for: .microseconds(10))
              return 7
            }
          }
          #expect(value == 7)
        }
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func errorsPassThrough(workers: Int) throws {
      try onWorkers(workers) {
        expectError(Oops(number: 1)) { try withTimeout(.zero) { throw Oops(number: 1) } }
        expectError(Oops(number: 2)) {
          try withTimeout(endless) {
            Fiber.yield()
            throw Oops(number: 2)
          }
        }
        // Nobody's deadline has passed.
        expectCancellation { try withTimeout(endless) { throw CancellationError() } }
        expectExceeded { try withTimeout(endless) { throw DeadlineExceeded() } }
        #expect("\(DeadlineExceeded())" == "the deadline has passed")
        #expect(Set([DeadlineExceeded(), DeadlineExceeded()]).count == 1)
      }
    }

    @Test(arguments: workerCounts)
    func theEarliestWins(workers: Int) throws {
      try onWorkers(workers) {
        // The outer one: inside it is a cancellation.
        expectExceeded {
          try withTimeout(.milliseconds(1)) {
            expectCancellation { try withTimeout(endless) { try Fiber.park() } }
            expectCancellation { try withTimeout(endless) { try Fiber.park() } }
            try Fiber.park()
          }
        }
        // The inner one: the outer goes on.
        let value = try withTimeout(endless) {
          expectExceeded { try withTimeout(.milliseconds(1)) { try Fiber.park() } }
          expect(!Fiber.isCancelled)
          try Fiber.sleep(for: .microseconds(1))
          return 3
        }
        #expect(value == 3)
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func equalDeadlines(workers: Int) throws {
      try onWorkers(workers) {
        let instant = ContinuousClock.now + .milliseconds(1)
        expectExceeded {
          try withDeadline(instant) {
            try withDeadline(instant) {
              expectExceeded { try withDeadline(instant) { try Fiber.park() } }
              try Fiber.park()
            }
          }
        }
        // An operation's own limit is its result; the deadline is noticed by the next.
        let other = Fiber { try Fiber.park() }
        let later = ContinuousClock.now + .milliseconds(50)
        let slept = try withDeadline(later) {
          try Fiber.sleep(until: later)
          expectCancellation { _ = try other.join(within: .seconds(1)) }
          return true
        }
        #expect(slept)
        other.cancel()
        expectNoScope()
      }
    }

    // MARK: - With cancellation

    @Test(arguments: workerCounts, EndlessWait.all)
    func anExplicitCancelStaysOne(workers: Int, wait: EndlessWait) throws {
      try onWorkers(workers) {
        let fiber = Fiber { try withTimeout(endless) { try withTimeout(endless, wait.body) } }
        for _ in 0..<3 { Fiber.yield() }
        fiber.cancel()
        expectCancellation { try fiber.join() }
        // Though a deadline has passed as well.
        let both = Fiber {
          Fiber.current?.cancel()
          try withTimeout(.zero, wait.body)
        }
        expectCancellation { try both.join() }
      }
    }

    @Test(arguments: workerCounts)
    func aFailingGroupIsNoDeadline(workers: Int) throws {
      try onWorkers(workers) {
        expectError(Oops(number: 4)) {
          try withFiberGroup(of: Void.self) { group in
            group.spawn { throw Oops(number: 4) }
            expectCancellation { try withTimeout(endless) { try Fiber.park() } }
          }
        }
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func aCancelThatRacesADeadline(workers: Int) throws {
      let rounds = scaled(1_000, least: 50)
      var random = SplitMix64(seed: stressSeed())
      try onWorkers(workers) {
        for _ in 0..<rounds {
          let time = Int(random.next() % 60)
          let fiber = Fiber(placement: .worker(Int(random.next() % UInt64(workers)))) {
            do {
              try withTimeout(.microseconds(time)) { try Fiber.park() }
            } catch let error as DeadlineExceeded {
              // Then the cancellation comes later, and to the next wait.
              try withTimeout(endless) { try Fiber.park() }
              throw error
            }
          }
          let until = ContinuousClock.now + .microseconds(Int(random.next() % 90))
          while ContinuousClock.now < until { Fiber.yield() }
          fiber.cancel()
          expectCancellation { try fiber.join() }
        }
        expectNoTimers()
      }
    }

    /// Either the value is had, or the permit is left.
    @Test(arguments: workerCounts)
    func aWakeThatRacesADeadline(workers: Int) throws {
      let rounds = scaled(2_000, least: 100)
      var random = SplitMix64(seed: stressSeed())
      let (values, exceeded) = (Counter(), Counter())
      try onWorkers(workers) {
        for _ in 0..<rounds {
          let time = Int(random.next() % 60)
          let fiber = Fiber(placement: .worker(Int(random.next() % UInt64(workers)))) {
            do {
              try withTimeout(.microseconds(time)) { try Fiber.park() }
              values.add()
            } catch is DeadlineExceeded {
              try Fiber.park()
              exceeded.add()
            }
          }
          let until = ContinuousClock.now + .microseconds(Int(random.next() % 90))
          while ContinuousClock.now < until { Fiber.yield() }
          fiber.unpark()
          try fiber.join()
        }
        expectNoTimers()
      }
      #expect(values.value + exceeded.value == rounds)
    }

    /// It arrived before the deadline, and was looked at after.
    @Test(arguments: workerCounts)
    func aValueThatArrivedFirstWins(workers: Int) throws {
      try onWorkers(workers) {
        var time = Duration.milliseconds(5)
        var isDone = false
        while !isDone {
          isDone = try withOthersBlocked(workers) {
            let instant = ContinuousClock.now + time
            let fiber = Fiber(placement: .worker(0)) {
              try withDeadline(instant) {
                try Fiber.park()
                expect(Fiber.isCancelled)
                return 6
              }
            }
            waitUntil { fiber.isParked || fiber.isFinished }
            let isInTime = fiber.isParked
            fiber.unpark()
            while ContinuousClock.now < instant {}
            if isInTime { try expect(fiber.join() == 6) } else { _ = try? fiber.join() }
            time *= 2
            return isInTime
          }
        }
      }
    }

    /// A loop that ignores its deadline must not keep others from running for ever.
    @Test(arguments: workerCounts, EndlessWait.all)
    func othersRunBesideALoop(workers: Int, wait: EndlessWait) throws {
      try onWorkers(workers) {
        let flag = Counter()
        let loop = Fiber(placement: .worker(0)) {
          try withTimeout(.zero) {
            while flag.value == 0 { expect(thrown(by: wait.body) is CancellationError) }
          }
        }
        let setter = Fiber(placement: .worker(0)) {
          for _ in 0..<10 { Fiber.yield() }
          flag.add()
        }
        try loop.join()
        setter.join()
      }
    }

    /// One that computes asks.
    @Test(arguments: workerCounts)
    func computingNoticesIt(workers: Int) throws {
      try onWorkers(workers) {
        expectExceeded {
          try withTimeout(.milliseconds(1)) {
            while !Fiber.isCancelled {}
            try Fiber.checkCancellation()
          }
        }
      }
    }

    @Test(arguments: workerCounts)
    func joinIsNeverCutShort(workers: Int) throws {
      try onWorkers(workers) {
        let instant = ContinuousClock.now + .milliseconds(1)
        let target = Fiber {
          try Fiber.sleep(until: instant + .milliseconds(1))
          return 5
        }
        let value = try withDeadline(instant) {
          let value = try target.join()
          expect(Fiber.isCancelled)
          return value
        }
        #expect(value == 5)
        expectNoScope()
      }
    }

    // MARK: - Shields

    @Test(arguments: workerCounts)
    func aShieldHoldsOffWhatIsOutside(workers: Int) throws {
      try onWorkers(workers) {
        let fiber = Fiber {
          Fiber.current?.cancel()
          expectCancellation {
            try withTimeout(.zero) {
              try withCancellationShield {
                expect(!Fiber.isCancelled)
                try Fiber.sleep(for: .microseconds(10))
                try withCancellationShield { try Fiber.sleep(for: .microseconds(10)) }
                // What is set inside counts, and is no explicit cancel.
                expectExceeded { try withTimeout(.milliseconds(1)) { try Fiber.park() } }
                expect(!Fiber.isCancelled)
                expectExceeded {
                  try withTimeout(.milliseconds(1)) {
                    try withCancellationShield { try Fiber.sleep(for: .milliseconds(2)) }
                    try Fiber.park()
                  }
                }
                try Fiber.sleep(for: .microseconds(10))
              }
              expect(Fiber.isCancelled)
              try Fiber.park()
            }
          }
          expect(Fiber.isCancelled)
        }
        fiber.join()
        // A deadline inside a shield inside a deadline, without any cancel.
        expectExceeded {
          try withTimeout(.zero) {
            withCancellationShield {
              expectExceeded { try withTimeout(.microseconds(50)) { try Fiber.park() } }
            }
            try Fiber.park()
          }
        }
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func aShieldThrowsItsBodysErrors(workers: Int) throws {
      try onWorkers(workers) {
        do throws(Oops) {
          try withCancellationShield { () throws(Oops) in throw Oops(number: 8) }
        } catch {
          #expect(error.number == 8)
        }
        let value = withCancellationShield { 9 }
        #expect(value == 9)
        expectNoScope()
      }
    }

    // MARK: - Elsewhere

    @Test(arguments: [2, 4])
    func whileItWaitsForAPlace(workers: Int) throws {
      var configuration = Scheduler.Configuration(workers: workers)
      configuration.blockingThreadsMax = 1
      try withScheduler(configuration) {
        let gate = Counter()
        let instant = ContinuousClock.now + .milliseconds(200)
        let busy = Fiber {
          // A call that has begun says what it did, however late.
          try withDeadline(instant) {
            try blocking {
              while gate.value == 0 || ContinuousClock.now <= instant {
                sleepThread(until: weft_clock_now() + 100_000)
              }
              return 5
            }
          }
        }
        waitUntil { schedulerCore().blockingPool.queuedCalls == 0 && busy.isParked }
        expectExceeded {
          try withTimeout(.milliseconds(1)) { try blocking { itRan() } }
        }
        gate.add()
        let value = try busy.join()
        #expect(value == 5)

        let (entered, open) = (Counter(), Counter())
        let owners = (0..<workers - 1).map { _ in
          Fiber(placement: .exclusive) {
            entered.add()
            while open.value == 0 { Fiber.yield() }
          }
        }
        waitUntil { entered.value == workers - 1 }
        expectExceeded {
          try withTimeout(.milliseconds(1)) {
            try withFiberGroup(of: Void.self) { group in
              // In the line it keeps its place; once it runs its waits are over.
              group.spawn(placement: .exclusive) {
                entered.add()
                expect(Fiber.isCancelled)
                try Fiber.park()
              }
              defer { open.add() }
              _ = try group.next()
            }
          }
        }
        for owner in owners { owner.join() }
        #expect(entered.value == workers)
      }
    }

    @Test(arguments: workerCounts)
    func itMovesWithItsFiber(workers: Int) throws {
      try onWorkers(workers) {
        if !schedulerCore().migratesStarted { return }
        let fibers = (0..<8).map { i in
          Fiber {
            for round in 0..<scaled(100, least: 10) {
              try hop(to: (i + round) % workers)
              expectExceeded {
                try withTimeout(.microseconds(500)) {
                  try? hop(to: (i + round + 1) % workers)
                  try withCancellationShield {
                    try hop(to: (i + round + 2) % workers)
                    try withTimeout(endless) { try hop(to: (i + round + 3) % workers) }
                  }
                  // Those who help it to move leave permits.
                  while true { try Fiber.park() }
                }
              }
              expectNoScope()
            }
          }
        }
        for fiber in fibers { try fiber.join() }
        expectNoTimers()
      }
    }

    /// Nested at random, compared with what has to come out.
    @Test(arguments: workerCounts)
    func manyFibersWithRandomDeadlines(workers: Int) throws {
      var random = SplitMix64(seed: stressSeed())
      try onWorkers(workers) {
        let base = ContinuousClock.now + .milliseconds(20)
        let fibers = (0..<scaled(1_000 * 10, least: 200)).map { _ in
          var levels: [Int?] = []
          for _ in 0..<random.next() % 5 {
            levels.append(random.next() % 4 == 0 ? nil : Int(random.next() % 60_000))
          }
          let sleep = Int(random.next() % 60_000)
          return Fiber { [levels] in
            Self.expectModel(base, levels, sleep)
            expectNoScope()
          }
        }
        for fiber in fibers { fiber.join() }
        expectNoTimers()
      }
    }

    /// - Parameters:
    ///   - levels: microseconds of deadlines, from the outermost; nil for a shield.
    ///   - sleep: the microsecond that is slept until, innermost.
    private static func expectModel(
      _ base: ContinuousClock.Instant, _ levels: [Int?], _ sleep: Int
    ) {
      func at(_ time: Int) -> ContinuousClock.Instant { base + .microseconds(time) }
      let started = Box(never)
      func run(_ levels: ArraySlice<Int?>) throws {
        guard let level = levels.first else {
          started.value = weft_clock_now()
          return try Fiber.sleep(until: at(sleep))
        }
        if let level {
          try withDeadline(at(level)) { try run(levels.dropFirst()) }
        } else {
          try withCancellationShield { try run(levels.dropFirst()) }
        }
      }
      let error = thrown { try run(levels[...]) }
      let inForce = levels.reversed().prefix { $0 != nil }.compactMap { $0 }.min() ?? .max
      if inForce < sleep {
        expect(error is DeadlineExceeded)
      } else if error != nil {
        // Only if it came to sleep when the deadline had passed, or nearly so.
        expect(error is DeadlineExceeded)
        expect(deadline(at: at(inForce)) < started.value &+ 20_000_000)
      }
    }

    // MARK: - Coroutines

    @Test(arguments: workerCounts)
    func coroutinesHaveThatOfTheirResumer(workers: Int) throws {
      try onWorkers(workers) {
        let plain = Generator<Int> { y in
          try y.yield(1)
          try Fiber.park()
        }
        #expect(plain.next() == 1)
        // The body's wait ends, and so does the generator; that is a value.
        let element = try withTimeout(.milliseconds(1)) { plain.next() }
        #expect(element == nil)
        let throwing = ThrowingGenerator<Int> { y in
          expect(deadlineInForce() != never)
          try y.yield(1)
          try Fiber.park()
        }
        expectExceeded {
          try withTimeout(.milliseconds(1)) { while try throwing.next() != nil {} }
        }
        // One of the body's own that is left before it yields.
        var c = try Coroutine<Void, Int, Void> { y, _ in
          for i in 0..<3 {
            expectExceeded { try withTimeout(.microseconds(100)) { try Fiber.park() } }
            try y.yield(i)
          }
        }
        while case .yielded = try c.resume() { expectNoScope() }
      }
    }

    /// Misuse: what is open at a yield goes on in another fiber, or on a thread. Nobody else is
    /// the worse for it.
    @Test(arguments: workerCounts)
    func aScopeThatACoroutineCarriesAway(workers: Int) throws {
      let alive = Counter()
      let local = FiberLocal<Tracked?>(nil)
      try onWorkers(workers) {
        for round in 0..<12 {
          let held = Shared(
            Generator<Int> { y in
              try withTimeout(endless) {
                try withCancellationShield {
                  try local.withValue(Tracked(alive)) {
                    for i in 0..<4 { try y.yield(i) }
                  }
                }
              }
            })
          Fiber { expect(held.content.next() == 0) }.join()
          for i in 0..<2 {
            let other = Fiber(placement: .worker(i % workers)) {
              if round % 3 == 0 { onThread { _ = held.content.next() } }
              for _ in 0..<round % 5 { _ = held.content.next() }
            }
            other.join()
          }
        }
        // Fibers whose scopes lie where the first ones' lay.
        for _ in 0..<8 { Fiber { expectNoScope() }.join() }
      }
      #expect(alive.value == 0)
    }

    private func expectNoTimers(at location: SourceLocation = #_sourceLocation) {
      let core = schedulerCore()
      for index in 0..<core.capacity {
        // SAFETY: workers live as long as the scheduler; the lock guards the heap.
        let worker = unsafe core.workers[index]
        unsafe worker.lockTimers()
        let count = unsafe worker.timers.pointee.count
        unsafe worker.unlockTimers()
        #expect(count == 0, sourceLocation: location)
      }
    }
  }
}
