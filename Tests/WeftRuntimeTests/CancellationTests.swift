import CWeft
import Testing
import WeftContext

@testable import WeftRuntime

/// A wait that lasts until it is cancelled.
struct EndlessWait: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// Parks the running fiber.
  let body: @Sendable () throws -> Void

  static let all: [EndlessWait] = [
    EndlessWait(testDescription: "park") { try Fiber.park() },
    EndlessWait(testDescription: "sleep(for:)") { try Fiber.sleep(for: .seconds(100_000)) },
    EndlessWait(testDescription: "sleep(until:)") {
      try Fiber.sleep(until: .now + .seconds(100_000))
    },
    EndlessWait(testDescription: "join(within:)") {
      let other = Fiber { try Fiber.park() }
      defer { other.cancel() }
      _ = try other.join(within: .seconds(100_000))
    },
    EndlessWait(testDescription: "next of a group") {
      try withFiberGroup(of: Void.self) { group in
        group.spawn { try Fiber.park() }
        _ = try group.next()
      }
      // The children were cancelled, and so are no error of the group.
      try Fiber.checkCancellation()
    },
    EndlessWait(testDescription: "the end of a group") {
      try withFiberGroup(of: Void.self) { group in
        for _ in 0..<3 { group.spawn { try Fiber.sleep(for: .seconds(100_000)) } }
      }
      try Fiber.checkCancellation()
    },
    EndlessWait(testDescription: "a group in a group's child") {
      try withFiberGroup(of: Void.self) { outer in
        outer.spawn {
          try withFiberGroup(of: Void.self) { inner in inner.spawn { try Fiber.park() } }
        }
        outer.waitForAll()
      }
      try Fiber.checkCancellation()
    },
    EndlessWait(testDescription: "park of a pinned fiber") {
      try Fiber.pinned { try Fiber.park() }
    },
    EndlessWait(testDescription: "park in a coroutine") {
      var c = try Coroutine<Void, Int, Void> { _, _ in try Fiber.park() }
      _ = try c.resume()
    },
  ]
}

extension RuntimeTests {
  /// Cancellation at each kind of wait.
  @Suite struct CancellationTests {
    private static func start(
      _ wait: EndlessWait, _ entered: Counter, placement: Placement = .automatic
    ) -> Fiber<Void, any Error> {
      Fiber(placement: placement) {
        entered.add()
        try wait.body()
      }
    }

    @Test(arguments: workerCounts, EndlessWait.all)
    func whileItWaits(workers: Int, wait: EndlessWait) throws {
      try onWorkers(workers) {
        let entered = Counter()
        let fibers = (0..<4).map { _ in Self.start(wait, entered) }
        waitUntil { entered.value == 4 && fibers.allSatisfy { $0.isParked } }
        fibers[0].cancel()  // main
        Fiber { fibers[1].cancel() }.join()  // another fiber
        onThread { fibers[2].cancel() }  // a plain thread
        Fiber(placement: .worker(workers - 1)) {  // twice, from two sides
          fibers[3].cancel()
          fibers[3].cancel()
        }
        fibers[3].cancel()
        for fiber in fibers {
          expectCancellation { try fiber.join() }
          #expect(fiber.isCancelled)
          fiber.cancel()  // after the end
          expectCancellation { try fiber.join() }
        }
      }
    }

    @Test(arguments: workerCounts, EndlessWait.all)
    func beforeItsFirstRun(workers: Int, wait: EndlessWait) throws {
      try onWorkers(workers) {
        let entered = Counter()
        let fibers = withOthersBlocked(workers) {
          let fibers = (0..<4).map { _ in Self.start(wait, entered) }
          for fiber in fibers { fiber.cancel() }
          #expect(entered.value == 0)
          return fibers
        }
        for fiber in fibers { expectCancellation { try fiber.join() } }
        // The bodies ran all the same.
        #expect(entered.value == 4)
      }
    }

    @Test(arguments: workerCounts, EndlessWait.all)
    func fromItself(workers: Int, wait: EndlessWait) throws {
      try onWorkers(workers) {
        let fiber = Fiber {
          Fiber.current?.cancel()
          expect(Fiber.isCancelled)
          // A level, not an edge: each later wait ends too.
          for _ in 0..<3 { expectCancellation { try wait.body() } }
          try wait.body()
        }
        expectCancellation { try fiber.join() }
      }
    }

    /// Somewhere between its first instruction and its park.
    @Test(arguments: workerCounts, EndlessWait.all)
    func atAnyMoment(workers: Int, wait: EndlessWait) throws {
      let rounds = scaled(500, least: 20)
      var random = SplitMix64(seed: stressSeed())
      try onWorkers(workers) {
        for _ in 0..<rounds {
          let entered = Counter()
          let fiber = Self.start(
            wait, entered, placement: .worker(Int(random.next() % UInt64(workers))))
          for _ in 0..<random.next() % 4 { Fiber.yield() }
          if random.next() % 2 == 0 {
            Fiber { fiber.cancel() }
          } else {
            fiber.cancel()
          }
          expectCancellation { try fiber.join() }
        }
      }
    }

    /// A loop that ignores its cancellation must not keep others from running for ever.
    @Test(arguments: workerCounts, EndlessWait.all)
    func othersRunBesideACancelledLoop(workers: Int, wait: EndlessWait) throws {
      try onWorkers(workers) {
        let flag = Counter()
        let loop = Fiber(placement: .worker(0)) {
          Fiber.current?.cancel()
          while flag.value == 0 { expect(thrown(by: wait.body) is CancellationError) }
        }
        let setter = Fiber(placement: .worker(0)) {
          for _ in 0..<10 { Fiber.yield() }
          flag.add()
        }
        loop.join()
        setter.join()
      }
    }

    // Situation 72: a loop in which nothing has to wait starves a sibling.
    @Test(arguments: workerCounts)
    func othersRunBesideOneWithPermits(workers: Int) throws {
      try onWorkers(workers) {
        let flag = Counter()
        let loop = Fiber(placement: .worker(0)) {
          while flag.value == 0 {
            Fiber.current?.unpark()
            try Fiber.park()
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

    @Test(arguments: workerCounts)
    func whatIsNotCancelled(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Counter()
        let target = Fiber {
          while gate.value == 0 { Fiber.yield() }
          return 5
        }
        let fibers = (0..<3).map { i in
          Fiber { () throws -> Int in
            Fiber.current?.cancel()
            switch i {
            case 0: return target.join()
            case 1:
              // A call that has begun says what it did.
              expectCancellation { _ = try blocking { 5 } }
              return 5
            default:
              Fiber.yield()
              return 5
            }
          }
        }
        waitUntil { fibers[1].isFinished && fibers[2].isFinished }
        #expect(!fibers[0].isFinished)
        gate.add()
        for fiber in fibers {
          let value = try fiber.join()
          #expect(value == 5)
        }
      }
    }

    /// In the queue for a thread, and in the line for an exclusive worker.
    @Test(arguments: [2, 4])
    func whileItWaitsForAPlace(workers: Int) throws {
      var configuration = Scheduler.Configuration(workers: workers)
      configuration.blockingThreadsMax = 1
      try withScheduler(configuration) {
        let gate = Counter()
        let busy = Fiber { try blocking { while gate.value == 0 { usleepShortly() } } }
        waitUntil { schedulerCore().blockingPool.queuedCalls == 0 && busy.isParked }
        let ran = Counter()
        let queued = (0..<4).map { _ in Fiber { try blocking { ran.add() } } }
        waitUntil { schedulerCore().blockingPool.queuedCalls == 4 }
        queued[1].cancel()
        queued[2].cancel()
        for i in [1, 2] { expectCancellation { try queued[i].join() } }
        gate.add()
        try busy.join()
        for i in [0, 3] { try queued[i].join() }
        #expect(ran.value == 2)

        // A place in the line is kept: the body runs, and its waits are cancelled.
        let (entered, open) = (Counter(), Counter())
        let owners = (0..<workers - 1).map { _ in
          Fiber(placement: .exclusive) {
            entered.add()
            while open.value == 0 { Fiber.yield() }
          }
        }
        waitUntil { entered.value == workers - 1 }
        let inLine = (0..<3).map { _ in
          Fiber(placement: .exclusive) {
            entered.add()
            try Fiber.park()
          }
        }
        inLine[1].cancel()
        Fiber.yield()
        #expect(!inLine[1].isFinished)
        open.add()
        for owner in owners { owner.join() }
        inLine[0].unpark()
        try inLine[0].join()
        expectCancellation { try inLine[1].join() }
        inLine[2].cancel()
        expectCancellation { try inLine[2].join() }
        #expect(entered.value == workers - 1 + 3)
      }
    }

    // Situation 75: an operation that succeeded and was then cancelled reports success.
    @Test(arguments: workerCounts)
    func successThatCameFirstStays(workers: Int) throws {
      try onWorkers(workers) {
        let fibers = withOthersBlocked(workers) {
          let fibers = (0..<3).map { i in
            Fiber(placement: .worker(0)) { () throws -> Int in
              if i == 0 { try Fiber.park() }
              if i == 1 { _ = try Fiber(placement: .worker(0)) { 1 }.join(within: .seconds(60)) }
              return i
            }
          }
          waitUntil { fibers[0].isParked && fibers[1].isFinished && fibers[2].isFinished }
          // Woken, and cancelled before it has run.
          fibers[0].unpark()
          fibers[0].cancel()
          return fibers
        }
        for (i, fiber) in fibers.enumerated() {
          fiber.cancel()
          let value = try fiber.join()
          #expect(value == i)
        }
      }
    }
  }
}

/// Blocks a plain thread for a moment.
private func usleepShortly() { try? Fiber.sleep(for: .microseconds(200)) }
