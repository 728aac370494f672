import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Waits in the running fiber until it is on this worker, by parking and being woken there.
///
/// Not inlined, so that nothing of the thread before is used after.
@inline(never)
func hop(to index: Int) throws {
  let own = Fiber.current
  while workerIndex() != index {
    Fiber(placement: .worker(index)) { own?.unpark() }
    try Fiber.park()
  }
}

/// The kernel thread that runs this, as a number.
@inline(never)
func threadNumber() -> UInt64 { weft_thread_id() }

/// Keeps every worker but 0 from running anything else, without a park, while `body` runs.
func withOthersBlocked<R>(_ workers: Int, _ body: () throws -> R) rethrows -> R {
  let (inside, gate) = (Counter(), Counter())
  let blockers = (1..<max(workers, 1)).map { index in
    Fiber(placement: .worker(index)) {
      inside.add()
      while gate.value == 0 { sched_yield() }
    }
  }
  waitUntil { inside.value == blockers.count }
  defer {
    gate.add()
    for blocker in blockers { blocker.join() }
  }
  return try body()
}

extension RuntimeTests {
  /// Where fibers run, and what moves them.
  @Suite struct PlacementTests {
    @Test(arguments: workerCounts)
    func aPlacedFiberNeverLeavesItsWorker(workers: Int) throws {
      let rounds = scaled(1_000)
      try onWorkers(workers) {
        let stop = Counter()
        // Those that move about, and wake the placed ones from everywhere.
        let fibers = (0..<workers * 4).map { i in
          Fiber(placement: .worker(i % workers)) { () throws -> Set<Int?> in
            let thread = threadNumber()
            var seen: Set<Int?> = [workerIndex()]
            for round in 0..<rounds {
              switch round % 4 {
              case 0: Fiber.yield()
              case 1: try Fiber.park()
              case 2: Fiber { Fiber.yield() }.join()
              default: try Fiber.sleep(for: .microseconds(round % 64))
              }
              seen.insert(workerIndex())
              expect(threadNumber() == thread)
            }
            return seen
          }
        }
        let wakers = (0..<2).map { _ in
          Fiber {
            while stop.value == 0 {
              for fiber in fibers { fiber.unpark() }
              Fiber.yield()
            }
          }
        }
        for (i, fiber) in fibers.enumerated() {
          let seen = try fiber.join()
          #expect(seen == [i % workers])
        }
        stop.add()
        for waker in wakers { waker.join() }
      }
    }

    @Test(arguments: workerCounts)
    func hereIsTheQueueOfTheMaker(workers: Int) throws {
      var configuration = Scheduler.Configuration(workers: workers)
      configuration.placement = .lesserOfTwo
      try withScheduler(configuration) {
        let fibers = withOthersBlocked(workers) {
          let before = schedulerCore().queued(0)
          let fibers = (0..<100).map { _ in Fiber(placement: .here) {} }
          #expect(schedulerCore().queued(0) == before + 100)
          return fibers
        }
        for fiber in fibers { fiber.join() }
      }
    }

    @Test(arguments: workerCounts)
    func theLesserLoadedOfTwo(workers: Int) throws {
      var configuration = Scheduler.Configuration(workers: workers)
      configuration.placement = .lesserOfTwo
      try withScheduler(configuration) {
        let fibers = withOthersBlocked(workers) {
          let fibers = (0..<400).map { _ in Fiber {} }
          let core = schedulerCore()
          if workers == 1 {
            #expect(core.queued(0) == 400)
          } else {
            // Both choices are this worker one time in four, or in sixteen.
            #expect((1..<200).contains(core.queued(0)))
            // SAFETY: workers live as long as their scheduler.
            for index in 1..<workers {
              #expect(unsafe weft_link_load_acquire(weft_worker_inbox(core.workers[index])) != 0)
            }
          }
          return fibers
        }
        for fiber in fibers { fiber.join() }
      }
    }

    @Test(arguments: workerCounts)
    func withTheOtherPolicyEverythingRunsOnceToo(workers: Int) throws {
      let count = scaled(20_000)
      var configuration = Scheduler.Configuration(workers: workers)
      configuration.placement = .lesserOfTwo
      try withScheduler(configuration) {
        let sum = Counter()
        let fibers = (0..<count).map { i in
          Fiber {
            if i % 3 == 0 { Fiber.yield() }
            sum.add(i)
          }
        }
        for fiber in fibers { fiber.join() }
        #expect(sum.value == count * (count - 1) / 2)
      }
    }

    /// A woken fiber goes to the worker that wakes it: its own may be busy for long.
    @Test(arguments: [2, 4])
    func aWokenFiberRunsWhereItIsWoken(workers: Int) throws {
      try withScheduler(ProgressTests.quiet(workers)) {
        let (parked, done) = (Counter(), Counter())
        let fiber = Fiber(placement: .here) {
          parked.add()
          try Fiber.park()
          done.add()
        }
        while parked.value == 0 { Fiber.yield() }
        Fiber(placement: .worker(1)) { fiber.unpark() }
        // Worker 0 does not switch.
        #expect(spin { done.value == 1 })
        try fiber.join()
      }
    }

    /// From outside, through every worker's mailbox.
    @Test func placesOfTheSharedScheduler() throws {
      let count = Scheduler.shared.statistics.activeWorkers
      for index in 0..<count {
        let fiber = Fiber(placement: .worker(index)) { () throws -> [Int?] in
          let first = workerIndex()
          try Fiber.sleep(for: .microseconds(10))
          return [first, workerIndex()]
        }
        let seen = try fiber.join()
        #expect(seen == [index, index])
      }
    }
  }
}
