import Testing

@testable import WeftRuntime

extension RuntimeTests {
  /// Yield, park, unpark, sleep.
  @Suite struct ParkTests {
    @Test(arguments: workerCounts)
    func yieldIsFair(workers: Int) throws {
      try onWorkers(workers) {
        let rounds = 200
        let counts = (0..<8).map { _ in Counter() }
        let spread = Box(0)
        let fibers = counts.map { own in
          Fiber(placement: .worker(0)) {
            for _ in 0..<rounds {
              own.add()
              let values = counts.map(\.value)
              spread.change { $0 = max($0, (values.max() ?? 0) - (values.min() ?? 0)) }
              Fiber.yield()
            }
          }
        }
        for fiber in fibers { fiber.join() }
        #expect(spread.value <= 2)
      }
    }

    @Test(arguments: workerCounts)
    func permits(workers: Int) throws {
      try onWorkers(workers) {
        // Before: kept, and not added up.
        let before = Fiber {
          try Fiber.park()
          return Fiber.current?.id
        }
        before.unpark()
        before.unpark()
        _ = try before.join()

        // While parked.
        let stage = Counter()
        let during = Fiber {
          stage.add()
          try Fiber.park()
          stage.add()
          try Fiber.park()
          stage.add()
        }
        waitUntil { stage.value == 1 }
        during.unpark()
        waitUntil { stage.value == 2 }
        onThread { during.unpark() }
        try during.join()
        #expect(stage.value == 3)
        during.unpark()  // after the end: nothing
      }
    }

    @Test(arguments: workerCounts)
    func aPermitSurvivesOtherWaits(workers: Int) throws {
      try onWorkers(workers) {
        let fiber = Fiber {
          try Fiber.sleep(for: .milliseconds(1))
          Fiber { Fiber.yield() }.join()
          _ = try Fiber { try? Fiber.sleep(for: .seconds(1)) }.join(within: .milliseconds(1))
          try Fiber.park()
        }
        fiber.unpark()
        try fiber.join()
      }
    }

    // Situation 63: a join that returns on a wake that was meant for something else.
    @Test(arguments: workerCounts)
    func anUnparkEndsNothingButAPark(workers: Int) throws {
      try onWorkers(workers) {
        let stop = Counter()
        let fiber = Fiber {
          for _ in 0..<20 {
            let start = ContinuousClock.now
            try Fiber.sleep(for: .milliseconds(1))
            expect(ContinuousClock.now - start >= .milliseconds(1))
            let (slow, ended) = (ContinuousClock.now + .milliseconds(1), Counter())
            let other = Fiber {
              while ContinuousClock.now < slow { Fiber.yield() }
              ended.add()
            }
            other.join()
            expect(ended.value == 1)
            try withFiberGroup(of: Void.self) { group in
              group.spawn { try Fiber.sleep(for: .microseconds(300)) }
              try expect(group.next() != nil)
            }
            var ran = false
            try blocking { ran = true }
            expect(ran)
          }
        }
        let waker = Fiber(placement: .worker(workers - 1)) {
          while stop.value == 0 {
            fiber.unpark()
            Fiber.yield()
          }
        }
        try fiber.join()
        stop.add()
        waker.join()
      }
    }

    @Test(arguments: workerCounts)
    func aCancelledParkKeepsThePermit(workers: Int) throws {
      try onWorkers(workers) {
        let taken = Fiber {
          let cell = Fiber.current?.cell
          expectCancellation { try Fiber.park() }
          // SAFETY: the handle keeps the record alive, and the fiber asks for itself.
          return unsafe cell?.pointer.takePermit() ?? false
        }
        taken.cancel()
        taken.unpark()
        #expect(taken.join())
      }
    }

    @Test(arguments: workerCounts)
    func pingPong(workers: Int) throws {
      let rounds = scaled(100_000)
      try onWorkers(workers) {
        let partner = Box<FiberHandle?>(nil)
        let main = try #require(Fiber.current)
        let other = Fiber {
          partner.value = Fiber.current
          for _ in 0..<rounds {
            try Fiber.park()
            main.unpark()
          }
        }
        waitUntil { partner.value != nil }
        for _ in 0..<rounds {
          other.unpark()
          try Fiber.park()
        }
        try other.join()
      }
    }

    @Test(arguments: workerCounts)
    func unparkFromPlainThreads(workers: Int) throws {
      let rounds = scaled(2_000)
      try onWorkers(workers) {
        let turns = Counter()
        let fiber = Fiber {
          for _ in 0..<rounds {
            try Fiber.park()
            turns.add()
          }
        }
        let thread = PlainThread {
          for round in 0..<rounds {
            fiber.unpark()
            while turns.value <= round { Fiber.yield() }
          }
        }
        try fiber.join()
        thread.join()
      }
    }

    // Situation 86: a sleep of no or negative length returns, and is a wait all the same.
    @Test(arguments: workerCounts)
    func sleeps(workers: Int) throws {
      try onWorkers(workers) {
        for duration in [Duration.zero, .seconds(-5), .nanoseconds(1)] {
          try Fiber.sleep(for: duration)
        }
        try Fiber.sleep(until: .now - .seconds(3))
        for wanted in [Duration.microseconds(50), .milliseconds(3)] {
          let start = ContinuousClock.now
          try Fiber.sleep(for: wanted)
          #expect(ContinuousClock.now - start >= wanted)
        }
        let start = ContinuousClock.now
        try Fiber.sleep(until: start + .milliseconds(2))
        #expect(ContinuousClock.now >= start + .milliseconds(2))
      }
      let start = ContinuousClock.now
      try Fiber.sleep(for: .milliseconds(1))  // a plain thread
      #expect(ContinuousClock.now - start >= .milliseconds(1))
    }

    // Situations 82 to 84: a huge duration wraps, traps, returns at once, or meets the value that
    // stands for never.
    @Test(arguments: workerCounts)
    func hugeDurationsSaturate(workers: Int) throws {
      try onWorkers(workers) {
        let huge: [Duration] = [
          .seconds(Int64.max), .seconds(Int64.max / 2), .nanoseconds(Int64.max),
          .seconds(18_446_744_073), .seconds(18_446_744_074), .seconds(9_223_372_037),
        ]
        let sleepers = huge.map { duration in Fiber { try Fiber.sleep(for: duration) } }
        try Fiber.sleep(for: .milliseconds(3))
        for sleeper in sleepers {
          #expect(!sleeper.isFinished)
          sleeper.cancel()
          expectCancellation { try sleeper.join() }
        }
      }
    }

    @Test(arguments: workerCounts)
    func sleepersWakeInOrder(workers: Int) throws {
      var numbers = Array(0..<50)
      var random = SplitMix64(seed: 11)
      numbers.shuffle(using: &random)
      // On a busy machine the first may be due before the last has gone to sleep, which says
      // nothing about the order: then once more, with more time.
      for lead in [10, 100, 1000, 10_000] {
        let (order, late) = try onWorkers(workers) {
          try sleep(numbers, from: ContinuousClock.now + .milliseconds(lead))
        }
        #expect(order.sorted() == Array(0..<50))
        if late { continue }
        // With several workers two may fire one heap at a time.
        if workers == 1 { #expect(order == Array(0..<50)) }
        return
      }
      Issue.record("this machine is too busy")
    }

    /// In which order fibers wake, and whether one went to sleep later than the first had to wake.
    private func sleep(
      _ numbers: [Int], from base: ContinuousClock.Instant
    ) throws -> ([Int], Bool) {
      let order = Box<[Int]>([])
      let late = Box(false)
      let fibers = numbers.map { i in
        Fiber(placement: .worker(0)) {
          if ContinuousClock.now >= base { late.value = true }
          try Fiber.sleep(until: base + .microseconds(i * 200))
          order.change { $0.append(i) }
        }
      }
      for fiber in fibers { try fiber.join() }
      return (order.value, late.value)
    }

    /// A sleeper that is due does not wait for a crowd of fibers that were just spawned; nor do
    /// sleepers keep the crowd from its turn.
    @Test func whoIsDueDoesNotWaitForACrowd() throws {
      try onWorkers(1) {
        let began = Counter()
        let sleeper = Fiber {
          try Fiber.sleep(for: .milliseconds(1))
          return began.value
        }
        Fiber.yield()
        let crowd = (0..<1_000).map { _ in
          Fiber {
            began.add()
            // Long enough for the sleeper to be due within the first few.
            let until = ContinuousClock.now + .microseconds(100)
            while ContinuousClock.now < until {}
          }
        }
        let before = try sleeper.join()
        #expect(before < 500)
        for fiber in crowd { fiber.join() }
        #expect(began.value == 1_000)
      }
    }

    @Test func sleepersKeepNobodyFromHisTurn() throws {
      try onWorkers(1) {
        let done = Box(false)
        let sleepers = (0..<50).map { _ in
          Fiber { while !done.value { try Fiber.sleep(for: .nanoseconds(1)) } }
        }
        waitUntil { sleepers.allSatisfy { !$0.isFinished } }
        for _ in 0..<100 { Fiber.yield() }
        done.value = true
        for sleeper in sleepers { try sleeper.join() }
      }
    }

    @Test(arguments: workerCounts)
    func manySleepers(workers: Int) throws {
      let count = scaled(100_000)
      try onWorkers(workers) {
        var random = SplitMix64(seed: 3)
        let fibers = (0..<count).map { _ in
          let time = Int.random(in: 0..<100_000, using: &random)
          return Fiber { try Fiber.sleep(for: .microseconds(time)) }
        }
        for (i, fiber) in fibers.enumerated() where i % 3 == 0 { fiber.cancel() }
        for fiber in fibers { try? fiber.join() }
      }
    }

    // Situation 46: a fiber was resumed by another worker before its registers were saved.
    @Test(arguments: workerCounts)
    func noWakeUpIsLost(workers: Int) throws {
      var random = SplitMix64(seed: stressSeed())
      let deadline = ContinuousClock.now + stressDuration / 3
      try onWorkers(workers) {
        while ContinuousClock.now < deadline {
          let count = Int.random(in: 2...12, using: &random)
          let rounds = Int.random(in: 1...60, using: &random)
          let handles = Box<[FiberHandle]>([])
          let seed = random.next()
          let fibers = (0..<count).map { i in
            Fiber {
              if let own = Fiber.current { handles.change { $0.append(own) } }
              waitUntil { handles.value.count == count }
              var random = SplitMix64(seed: seed &+ UInt64(i))
              let peers = handles.value
              let next = peers[(peers.firstIndex { $0 == Fiber.current } ?? 0 + 1) % count]
              for _ in 0..<rounds {
                if random.next() % 4 == 0 { Fiber.yield() }
                if random.next() % 16 == 0 { try Fiber.sleep(for: .microseconds(20)) }
                next.unpark()
                try Fiber.park()
              }
              // Whoever still waits gets what is missing.
              for peer in peers { peer.unpark() }
            }
          }
          let done = Counter()
          let helper = Fiber {
            while done.value == 0 {
              for handle in handles.value { handle.unpark() }
              Fiber.yield()
            }
          }
          for fiber in fibers { try fiber.join() }
          done.add()
          helper.join()
        }
      }
    }
  }
}
