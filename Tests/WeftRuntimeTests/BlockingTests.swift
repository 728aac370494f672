import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

extension RuntimeTests {
  /// What api.md says of `blocking`.
  @Suite struct BlockingTests {
    @Test(arguments: workerCounts)
    func givesValuesAndErrors(workers: Int) throws {
      try onWorkers(workers) {
        #expect(try blocking { 6 * 7 } == 42)
        expectError(Oops(number: 1)) { try blocking { throw Oops(number: 1) } }
        var text = "a"
        try blocking { text += "b" }
        #expect(text == "ab")
        #expect(try blocking { Fiber.current == nil })
      }
      #expect(try blocking { 3 } == 3)
    }

    // Situation 69: a call that blocks takes one of few threads from everybody.
    @Test(arguments: workerCounts)
    func othersRunMeanwhile(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Box(false)
        let blocked = (0..<8).map { _ in
          Fiber { try blocking { while !gate.value { sched_yield() } } }
        }
        let other = Fiber {
          for _ in 0..<100 { Fiber.yield() }
          gate.value = true
        }
        other.join()
        for fiber in blocked { try fiber.join() }
      }
    }

    @Test(arguments: workerCounts)
    func beyondTheLimitTheyQueueInOrder(workers: Int) throws {
      var configuration = Scheduler.Configuration(workers: workers)
      configuration.blockingThreadsMax = 1
      try withScheduler(configuration) {
        let gate = Box(false)
        let order = Box<[Int]>([])
        let first = Fiber { try blocking { while !gate.value { sched_yield() } } }
        // SAFETY: runs as a fiber, so there is a worker; its scheduler lives as long.
        let core = unsafe schedulerCore(of: weft_worker_current().unsafelyUnwrapped)
        func underWay() -> Int { unsafe Int(weft_word_load_acquire(core.words.offloaded)) }
        waitUntil { underWay() == 1 }
        let others = (0..<10).map { i in
          let fiber = Fiber { try blocking { order.change { $0.append(i) } } }
          waitUntil { underWay() == i + 2 && core.blockingPool.queuedCalls == i + 1 }
          return fiber
        }
        gate.value = true
        try first.join()
        for fiber in others { try fiber.join() }
        #expect(order.value == Array(0..<10))
        #expect(underWay() == 0)
      }
    }

    @Test(arguments: workerCounts)
    func cancelledWhileQueuedItNeverRuns(workers: Int) throws {
      var configuration = Scheduler.Configuration(workers: workers)
      configuration.blockingThreadsMax = 1
      try withScheduler(configuration) {
        // SAFETY: runs as a fiber, so there is a worker; its scheduler lives as long.
        let core = unsafe schedulerCore(of: weft_worker_current().unsafelyUnwrapped)
        let gate = Box(false)
        let ran = Counter()
        let started = Box(false)
        let first = Fiber {
          try blocking { () -> Int in
            started.value = true
            while !gate.value { sched_yield() }
            return 5
          }
        }
        waitUntil { started.value }
        let queued = Fiber { try blocking { _ = ran.add() } }
        waitUntil { core.blockingPool.queuedCalls == 1 }
        queued.cancel()
        expectCancellation { try queued.join() }
        // One that runs reports its value.
        first.cancel()
        for _ in 0..<20 { Fiber.yield() }
        #expect(!first.isFinished)
        gate.value = true
        try expect(first.join() == 5)
        #expect(ran.value == 0)
        // Cancelled before: never.
        let late = Fiber {
          Fiber.current?.cancel()
          try blocking { _ = ran.add() }
        }
        expectCancellation { try late.join() }
        #expect(ran.value == 0)
      }
    }

    @Test(arguments: workerCounts)
    func errnoBelongsToTheCall(workers: Int) throws {
      try onWorkers(workers) {
        // SAFETY: errno of the thread that runs this.
        unsafe weft_errno_address().pointee = 11
        let (seen, result) = try blocking {
          let seen = unsafe weft_errno_address().pointee
          return (seen, close(-1))
        }
        let after = unsafe weft_errno_address().pointee
        #expect(seen == 11 && result == -1 && after == EBADF)
      }
    }

    @Test(arguments: workerCounts)
    func itsThreadsEndWithTheScheduler(workers: Int) throws {
      // By their ids: other tests start threads of their own meanwhile.
      let threads = Box<Set<UInt64>>([])
      try onWorkers(workers) {
        let fibers = (0..<20).map { i in
          Fiber { try blocking { threads.change { _ = $0.insert(weft_thread_id()) } } }
        }
        for fiber in fibers { _ = try fiber.join() }
      }
      #expect(!threads.value.isEmpty)
      // One that was joined is in the kernel's lists for a moment longer.
      #expect(eventually { threads.value.allSatisfy { weft_thread_processor_time($0) == .max } })
    }

    @Test func idleThreadsEnd() throws {
      try onWorkers(1) {
        // SAFETY: runs as a fiber, so there is a worker.
        let worker = unsafe weft_worker_current().unsafelyUnwrapped
        let pool = BlockingPool(limit: 4, idleNanoseconds: 1_000_000)
        let ran = Counter()
        for round in 1...3 {
          let done = unsafe pool.run(worker) { ran.add() }
          #expect(done && ran.value == round)
          waitUntil { pool.threadCount == 0 }
        }
        pool.stop()
      }
    }

    @Test(arguments: workerCounts)
    func manyCallsUnderRandomCancellation(workers: Int) throws {
      var random = SplitMix64(seed: stressSeed())
      var configuration = Scheduler.Configuration(workers: workers)
      configuration.blockingThreadsMax = 3
      try withScheduler(configuration) {
        for _ in 0..<scaled(300, least: 20) {
          let fibers = (0..<10).map { i in Fiber { try blocking { i } } }
          for fiber in fibers where random.next() % 3 == 0 { fiber.cancel() }
          for (i, fiber) in fibers.enumerated() {
            do {
              let value = try fiber.join()
              #expect(value == i)
            } catch {
              #expect(error is CancellationError)
            }
          }
        }
      }
    }
  }
}
