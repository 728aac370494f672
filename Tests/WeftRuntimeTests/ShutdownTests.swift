import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

extension RuntimeTests {
  /// The end of a scheduler, whatever its fibers do at that moment.
  @Suite struct ShutdownTests {
    /// Main returns while fibers make fibers, which make fibers.
    @Test(arguments: workerCounts)
    func fibersAreMadeMeanwhile(workers: Int) throws {
      let rounds = scaled(200, least: 10)
      var random = SplitMix64(seed: stressSeed())
      let alive = Counter()
      let (begun, ended) = (Counter(), Counter())
      @Sendable func breed(_ seed: UInt64) throws {
        begun.add()
        defer { ended.add() }
        let kept = Tracked(alive)
        var random = SplitMix64(seed: seed)
        while true {
          // Ends by being cancelled, and by nothing else.
          try Fiber.checkCancellation()
          let next = random.next()
          let placement = Placement.worker(Int(next / 64 % UInt64(workers)))
          switch next % 5 {
          case 0: Fiber(placement: next % 2 == 0 ? placement : .here) { Fiber.yield() }
          case 1: if begun.value - ended.value < 100 { Fiber { try breed(next) } }
          case 2: try Fiber.sleep(for: .microseconds(Int(next / 8 % 50)))
          case 3:
            try withFiberGroup(of: Void.self) { group in
              for _ in 0..<3 { group.spawn { Fiber.yield() } }
              if next / 16 % 4 == 0 { group.spawn { try Fiber.park() } }
              if next / 16 % 4 == 0 { group.cancelAll() }
            }
          default: Fiber.yield()
          }
          withExtendedLifetime(kept) {}
        }
      }
      for _ in 0..<rounds {
        let seed = random.next()
        try onWorkers(workers) {
          for i in 0..<4 { Fiber { try breed(seed &+ UInt64(i)) } }
          for _ in 0..<seed % 50 { Fiber.yield() }
        }
        #expect(alive.value == 0)
        #expect(begun.value == ended.value)
      }
    }

    /// Something is runnable at every moment, on every worker, until it is cancelled.
    @Test(arguments: workerCounts, 0..<4)
    func fibersThatAreAlwaysRunnable(workers: Int, kind: Int) throws {
      let ended = Counter()
      try onWorkers(workers) {
        let handles = Box<[FiberHandle]>([])
        for i in 0..<4 * workers {
          Fiber(placement: .worker(i % workers)) {
            defer { ended.add() }
            handles.change { $0.append(Fiber.current!) }
            while !Fiber.isCancelled {
              switch kind {
              case 0: Fiber.yield()
              case 1:
                for peer in handles.value { peer.unpark() }
                try Fiber.park()
              case 2: Fiber {}.join()
              default: try Fiber.sleep(for: .zero)
              }
            }
          }
        }
        waitUntil { handles.value.count == 4 * workers }
      }
      #expect(ended.value == 4 * workers)
    }

    /// Who asks a handle of its own in place of `Fiber.isCancelled` ends too.
    @Test(arguments: workerCounts, [true, false])
    func fibersThatAskTheirHandle(workers: Int, current: Bool) throws {
      let ended = Counter()
      try onWorkers(workers) {
        for i in 0..<2 * workers {
          let handle = Box<Fiber<Void, Never>?>(nil)
          handle.value = Fiber(placement: .worker(i % workers)) {
            while handle.value == nil { Fiber.yield() }
            while current ? Fiber.current?.isCancelled == false : handle.value?.isCancelled == false
            {
              Fiber.yield()
            }
            handle.value = nil
            ended.add()
          }
        }
      }
      #expect(ended.value == 2 * workers)
    }

    /// A group that ends cancels the children that ask their handles.
    @Test(arguments: workerCounts)
    func childrenThatAskTheirHandle(workers: Int) throws {
      try onWorkers(workers) {
        let sum = try withFiberGroup(of: Int.self) { group in
          for _ in 0..<10 {
            group.spawn {
              while Fiber.current?.isCancelled == false { Fiber.yield() }
              return 1
            }
          }
          group.cancelAll()
          var sum = 0
          while let one = try group.next() { sum += one }
          return sum
        }
        expect(sum == 10)
      }
    }

    /// What is parked, asleep, joined, blocked, in groups or in a line, all at once.
    @Test(arguments: [2, 4])
    func everyWaitEnds(workers: Int) throws {
      let rounds = scaled(100, least: 10)
      let alive = Counter()
      for round in 0..<rounds {
        let entered = Counter()
        try onWorkers(workers) {
          for wait in EndlessWait.all {
            Fiber {
              let kept = Tracked(alive)
              entered.add()
              try wait.body()
              withExtendedLifetime(kept) {}
            }
          }
          let last = Fiber {
            let kept = Tracked(alive)
            try Fiber.park()
            withExtendedLifetime(kept) {}
          }
          Fiber { try last.join() }
          Fiber { try blocking { try Fiber.sleep(for: .milliseconds(1)) } }
          for _ in 0..<workers { Fiber(placement: .exclusive) { try Fiber.park() } }
          if round % 2 == 0 { waitUntil { entered.value == EndlessWait.all.count } }
          for _ in 0..<round % 7 { Fiber.yield() }
        }
        #expect(alive.value == 0)
        #expect(entered.value == EndlessWait.all.count)
      }
    }

    /// A fiber that takes its cancellation for a hint is waited for.
    @Test(arguments: workerCounts)
    func fibersThatGoOnAreWaitedFor(workers: Int) throws {
      let steps = Counter()
      try onWorkers(workers) {
        for _ in 0..<8 {
          Fiber {
            for _ in 0..<50 {
              // Cancelled or not, and shielded or not.
              do { try Fiber.sleep(for: .microseconds(10)) } catch { Fiber.yield() }
              Fiber { steps.add() }.join()
            }
          }
        }
      }
      #expect(steps.value == 400)
    }

    @Test(arguments: workerCounts)
    func mainsErrorComesAfterEverythingHasEnded(workers: Int) throws {
      let alive = Counter()
      expectError(Oops(number: 3)) {
        try onWorkers(workers) {
          for i in 0..<10 {
            Fiber {
              let kept = Tracked(alive)
              defer { withExtendedLifetime(kept) {} }
              try i % 2 == 0 ? Fiber.park() : Fiber.sleep(for: .seconds(1_000))
            }
          }
          Fiber.yield()
          throw Oops(number: 3)
        }
      }
      #expect(alive.value == 0)
    }

    /// In processes of their own, whose shared scheduler may end.
    @Test(arguments: [true, false])
    func theSharedOne(cancels: Bool) async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) { [cancels] in
        let done = Counter()
        let parked = Fiber { try Fiber.park() }
        let fibers = (0..<100).map { i in
          Fiber {
            for _ in 0..<20 { Fiber.yield() }
            // Children of those that run are accepted to the end.
            Fiber { done.add() }
            Fiber { Fiber { done.add() }.join() }.join()
            if !cancels, i == 50 { parked.unpark() }
          }
        }
        let scheduler = Scheduler.shared
        // From several sides at once; all return when it is over.
        let others = (0..<3).map { _ in
          PlainThread { scheduler.shutdown(cancelling: cancels) }
        }
        scheduler.shutdown(cancelling: cancels)
        let atEnd = done.value
        for thread in others { thread.join() }
        scheduler.shutdown()
        try #require(atEnd == 200 && done.value == 200)
        try #require(fibers.allSatisfy { $0.isFinished })
        let error = thrown { try parked.join() }
        try #require((error is CancellationError) == cancels)
        // Handles are of no use any more, and of no harm.
        for fiber in fibers {
          fiber.unpark()
          fiber.cancel()
          fiber.join()
        }
        try #require(scheduler.statistics.live == 0)
        _ = Scheduler.dumpAll()
      }
      #expect(!text(result).contains("nobody joined"), "\(text(result))")
    }

    /// One that waits, and then one that has no patience.
    @Test func cancellingAfterWaiting() async {
      await #expect(processExitsWith: .success) {
        let (patient, entered) = (Counter(), Counter())
        let parked = Fiber {
          entered.add()
          try Fiber.park()
        }
        let waiting = PlainThread {
          Scheduler.shared.shutdown(cancelling: false)
          patient.add()
        }
        let core = Scheduler.shared.core
        try #require(eventually { entered.value == 1 && core.isDraining })
        try #require(!parked.isFinished && !parked.isCancelled && patient.value == 0)
        Scheduler.shared.shutdown()
        expectCancellation { try parked.join() }
        waiting.join()
        try #require(patient.value == 1)
      }
    }

    @Test func aFiberFromOutsideIsRefusedByName() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Fiber {}.join()
        Scheduler.shared.shutdown()
        Fiber {}.join()
      }
      #expect(text(result).contains("the scheduler is shutting down and takes no new fibers"))
    }

    @Test func itsOwnFiberCannotShutItDown() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Fiber { Scheduler.shared.shutdown() }.join()
      }
      #expect(text(result).contains("a fiber can't shut its own scheduler down"))
    }
  }
}
