import CWeft
import Testing

@testable import WeftRuntime

extension RuntimeTests {
  /// Schedulers beside each other, and what goes from one to another.
  @Suite struct SeveralSchedulersTests {
    /// Runs a scheduler on a thread of its own.
    private static func start(
      _ workers: Int, _ main: @escaping @Sendable () throws -> Void
    ) -> PlainThread {
      PlainThread {
        do {
          try Scheduler.run(.init(workers: workers), main)
        } catch {
          Issue.record(error)
        }
      }
    }

    @Test(arguments: workerCounts)
    func eachRunsItsOwn(workers: Int) throws {
      let sum = Counter()
      let threads = (0..<3).map { _ in
        Self.start(workers) {
          let fibers = (0..<100).map { i in
            Fiber { () throws -> Int in
              try Fiber.sleep(for: .microseconds(i))
              return i
            }
          }
          for fiber in fibers { sum.add(try fiber.join()) }
        }
      }
      let outside = (0..<100).map { i in Fiber { i } }  // the shared one
      for fiber in outside { sum.add(fiber.join()) }
      for thread in threads { thread.join() }
      #expect(sum.value == 4 * 4_950)
    }

    @Test(arguments: workerCounts)
    func joinsAcross(workers: Int) throws {
      let handle = Box<Fiber<Int, any Error>?>(nil)
      let gate = Counter()
      let maker = Self.start(workers) {
        let fiber = Fiber(name: "elsewhere") { () throws -> Int in
          while gate.value < 8 { try Fiber.sleep(for: .microseconds(100)) }
          return 7
        }
        handle.value = fiber
        _ = try fiber.join()
      }
      try onWorkers(workers) {
        waitUntil { handle.value != nil }
        let other = try #require(handle.value)
        let early = try other.join(within: .milliseconds(1))
        #expect(early == nil)
        let joiners = (0..<8).map { i in
          Fiber { () throws -> Int? in
            gate.add()
            return i % 2 == 0 ? try other.join() : try other.join(within: .seconds(60))
          }
        }
        for joiner in joiners {
          let value = try joiner.join()
          #expect(value == 7)
        }
      }
      maker.join()
      // Its scheduler is gone.
      let kept = try #require(handle.value)
      let value = try kept.join()
      #expect(value == 7)
    }

    /// The shared scheduler's fibers and those of a run wake each other.
    @Test(arguments: workerCounts)
    func pingPongAcross(workers: Int) throws {
      let rounds = scaled(10_000, least: 200)
      try onWorkers(workers) {
        let main = try #require(Fiber.current)
        let far = Box<FiberHandle?>(nil)
        let thread = PlainThread {
          // Made on a plain thread, so it belongs to the shared scheduler.
          let fiber = Fiber {
            far.value = Fiber.current
            for _ in 0..<rounds {
              try Fiber.park()
              main.unpark()
            }
          }
          do { try fiber.join() } catch { Issue.record(error) }
        }
        waitUntil { far.value != nil }
        let partner = try #require(far.value)
        for _ in 0..<rounds {
          partner.unpark()
          try Fiber.park()
        }
        // The thread joins a fiber of the other scheduler, so blocking this worker is safe.
        thread.join()
      }
    }

    /// Each fiber wakes others of all schedulers; every permit is used exactly once.
    @Test(arguments: workerCounts)
    func aStormAcross(workers: Int) throws {
      let (schedulers, fibersEach) = (3, 8)
      let all = schedulers * fibersEach
      let rounds = scaled(2_000, least: 50)
      let tokens = (0..<all).map { _ in Counter() }
      let handles = Box<[Int: FiberHandle]>([:])
      let threads = (0..<schedulers).map { number in
        Self.start(workers) {
          let fibers = (0..<fibersEach).map { i in
            Fiber {
              let own = number * fibersEach + i
              let handle = Fiber.current
              handles.change { $0[own] = handle }
              waitUntil { handles.change { $0.count } == all }
              let next = (own + fibersEach + 1) % all
              guard let peer = handles.change({ $0[next] }) else { return }
              // A ring: each waits for as many tokens as it sends.
              for round in 1...rounds {
                tokens[next].add()
                peer.unpark()
                while tokens[own].value < round { try Fiber.park() }
              }
            }
          }
          for fiber in fibers { try fiber.join() }
        }
      }
      for thread in threads { thread.join() }
      #expect(tokens.allSatisfy { $0.value == rounds })
    }

    // Situation 51: joining a finished thread was a use after free.
    @Test(arguments: workerCounts)
    func handlesOutliveTheirScheduler(workers: Int) throws {
      let alive = Counter()
      do {
        let kept = try onWorkers(workers) {
          (0..<20).map { i in
            Fiber { () throws -> Tracked in
              if i % 2 == 0 { try Fiber.park() }
              return Tracked(alive, i)
            }
          }
        }
        for (i, fiber) in kept.enumerated() {
          #expect(fiber.isFinished)
          fiber.unpark()
          fiber.cancel()
          fiber.cancel()
          if i % 2 == 0 {
            #expect(fiber.isCancelled)
            expectCancellation { _ = try fiber.join() }
            expectCancellation { _ = try fiber.join(within: .zero) }
          } else {
            let (value, again) = (try fiber.join(), try fiber.join(within: .zero))
            #expect(value.number == i && again?.number == i)
          }
        }
        // From fibers of another scheduler too.
        try onWorkers(workers) {
          for fiber in kept { _ = try? fiber.join() }
        }
        withExtendedLifetime(kept) { #expect(alive.value == 10) }
      }
      #expect(alive.value == 0)
    }

    @Test(arguments: workerCounts)
    func cancelsAcross(workers: Int) throws {
      let handles = Box<[FiberHandle]>([])
      let thread = Self.start(workers) {
        let fibers = (0..<20).map { i in
          Fiber { () throws -> Void in
            let own = Fiber.current
            handles.change { $0.append(own!) }
            try i % 2 == 0 ? Fiber.park() : Fiber.sleep(for: .seconds(1_000))
          }
        }
        for fiber in fibers { expectCancellation { try fiber.join() } }
      }
      try onWorkers(workers) {
        waitUntil { handles.change { $0.count } == 20 }
        for handle in handles.value { Fiber { handle.cancel() } }
      }
      thread.join()
    }

    /// A run is refused inside a fiber, not on a thread that a fiber made or borrowed.
    @Test(arguments: workerCounts)
    func aRunOnAThreadThatAFiberMade(workers: Int) throws {
      try onWorkers(workers) {
        let outer = Fiber.current
        let sums = try (0..<3).map { i in
          Fiber {
            try blocking {
              #expect(Fiber.current == nil)
              return Scheduler.run(.init(workers: workers)) {
                expect(Fiber.current != outer)
                return Fiber { i }.join()
              }
            }
          }
        }.map { try $0.join() }
        #expect(sums == [0, 1, 2])
        onThread { Scheduler.run(.init(workers: workers)) { Fiber { Fiber.yield() }.join() } }
        #expect(Fiber.current == outer)
      }
    }
  }

  /// More workers than processors, and work that is unevenly made.
  @Suite struct SpreadingTests {
    /// Situation 61 turned round: the number that the program insists on is what it gets.
    @Test func sixteenWorkers() throws {
      try withScheduler(ProgressTests.quiet(16)) {
        let statistics = schedulerCore().statistics
        #expect(statistics.workers.count == 16 && statistics.activeWorkers == 16)
        let places = (0..<64).map { i in
          Fiber(placement: .worker(i % 16)) { () throws -> Int? in
            try Fiber.sleep(for: .microseconds(i))
            return workerIndex()
          }
        }
        for (i, fiber) in places.enumerated() {
          let place = try fiber.join()
          #expect(place == i % 16)
        }
        @Sendable func tree(_ depth: Int) throws -> Int {
          if depth == 0 { return 1 }
          if depth % 3 == 0 { try Fiber.sleep(for: .microseconds(10)) }
          let left = Fiber { try tree(depth - 1) }
          let right = Fiber { try tree(depth - 1) }
          return try left.join() + right.join()
        }
        let leaves = try tree(9)
        #expect(leaves == 512)
      }
    }

    /// One worker makes everything.
    @Test(.enabled(if: weft_cpus_available() >= 2), arguments: [2, 4])
    func othersTakePart(workers: Int) throws {
      try withScheduler(ProgressTests.quiet(workers)) {
        let fibers = (0..<workers * 32).map { _ in
          Fiber(placement: .here) { () -> Int? in
            let index = workerIndex()
            burn(.microseconds(500))
            return index
          }
        }
        // Worker 0 stays out of it: all of it is stolen.
        #expect(spin { fibers.allSatisfy(\.isFinished) })
        let places = Set(fibers.map { $0.join() })
        #expect(!places.contains(0) && !places.contains(nil))
        let statistics = schedulerCore().statistics
        #expect(statistics.total.steals >= fibers.count)
        #expect(statistics.workers[0].counters.steals == 0)
      }
    }

    /// What cannot be stolen must not hide what can.
    @Test(.enabled(if: weft_cpus_available() >= 2), arguments: [2, 4])
    func placedOnesInFrontHideNothing(workers: Int) throws {
      try withScheduler(ProgressTests.quiet(workers)) {
        let placed = (0..<200).map { _ in
          Fiber(placement: .worker(0), priority: .high) {}
        }
        let others = (0..<8).map { _ in Fiber(placement: .here) {} }
        #expect(spin { others.allSatisfy(\.isFinished) })
        let early = placed.count { $0.isFinished }
        #expect(early == 0)
        for fiber in placed + others { fiber.join() }
      }
    }
  }
}
