import Testing
import Weft

@testable import WeftSync

extension FiberCondition {
  var waiting: Int { unsafe waiters(in: pointer) }  // SAFETY: `self` keeps it
}

extension SyncTests {
  @Suite struct ConditionTests {
    @Test func theGateLiesWhereItIsExpected() {
      let condition = FiberCondition()
      unsafe expectGate(&condition.gate, at: condition.pointer)  // SAFETY: `condition` keeps it
    }

    @Test(arguments: workerCounts)
    func aQueueOfJobs(workers: Int) throws {
      let count = scaled(5_000, least: 200)
      try onWorkers(workers) {
        let jobs = FiberMutex<[Int]>([])
        let (notEmpty, notFull) = (FiberCondition(), FiberCondition())
        let sum = Counter()
        together(6) { actor in
          for _ in 0..<count {
            if actor < 3 {
              jobs.withGuard { jobs in
                while jobs.value.count == 2 { try? jobs.wait(on: notFull) }
                jobs.value.append(1)
              }
              notEmpty.notifyOne()
            } else {
              let job = jobs.withGuard { jobs in
                while jobs.value.isEmpty { try? jobs.wait(on: notEmpty) }
                return jobs.value.removeLast()
              }
              notFull.notifyOne()
              sum.add(job)
            }
          }
        }
        #expect(sum.value == 3 * count)
        #expect(notEmpty.waiting == 0 && notFull.waiting == 0 && jobs.waiting == 0)
      }
    }

    @Test(arguments: workerCounts)
    func firstComeFirstServed(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex<[Int]>([])
        let condition = FiberCondition()
        let ended = Counter()
        var thread: PlainThread?
        for number in 0..<6 {
          let wait: @Sendable () -> Void = {
            mutex.withGuard { order in
              try? order.wait(on: condition)
              order.value.append(number)
            }
            ended.add()
          }
          if number == 2 { thread = PlainThread(wait) } else { Fiber { wait() } }
          waitUntil { condition.waiting == number + 1 }
        }
        for number in 0..<3 {
          // With the mutex held, and without.
          if number == 1 {
            mutex.withLock { _ in condition.notifyOne() }
          } else {
            condition.notifyOne()
          }
          waitUntil { ended.value == number + 1 }
          #expect(condition.waiting == 5 - number)
        }
        condition.notifyAll()
        waitUntil { ended.value == 6 }
        thread?.join()
        #expect(mutex.withLock { $0.prefix(3) } == [0, 1, 2])
        #expect(mutex.withLock { $0.sorted() } == Array(0..<6))
      }
    }

    @Test(arguments: workerCounts)
    func notifyingNobodyIsNotRemembered(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0)
        let condition = FiberCondition()
        condition.notifyOne()
        condition.notifyAll()
        mutex.withGuard { held in
          #expect(isTimedOut { try held.wait(on: condition, within: .milliseconds(2)) })
          held.value += 1
        }
        onThread {
          mutex.withGuard { held in
            #expect(isTimedOut { try held.wait(on: condition, within: .milliseconds(2)) })
            held.value += 1
          }
        }
        // No ghosts are left to swallow a notification.
        #expect(condition.waiting == 0)
        #expect(mutex.withLockIfAvailable { $0 } == 2)
      }
    }

    @Test(arguments: workerCounts)
    func theMutexIsFreeDuringTheWaitAndHeldAfter(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0)
        let condition = FiberCondition()
        let isCancelledOne = Box(false)
        let fibers = (0..<2).map { _ in
          Fiber {
            mutex.withGuard { held in
              do {
                try held.wait(on: condition)
              } catch {
                isCancelledOne.value = error is CancellationError
              }
              // Held in any case.
              #expect(onlyThread { mutex.withLockIfAvailable { _ in } == nil })
              held.value += 1
            }
          }
        }
        waitUntil { condition.waiting == 2 }
        mutex.withLock { value in
          value = 10
          fibers[0].cancel()
          condition.notifyAll()
        }
        for fiber in fibers { fiber.join() }
        #expect(mutex.withLock { $0 } == 12)
      }
    }

    @Test(arguments: workerCounts)
    func aCancelledOneSwallowsNothing(workers: Int) throws {
      let seed = stressSeed()
      try onWorkers(workers) {
        var random = SplitMix64(seed: seed)
        for round in 0..<scaled(2_000, least: 100) {
          let mutex = FiberMutex(0)
          let condition = FiberCondition()
          let notified = Counter()
          let fibers = (0..<4).map { _ in
            Fiber {
              mutex.withGuard { held in
                if !isCancelled({ try held.wait(on: condition) }) { notified.add() }
                held.value += 1
              }
            }
          }
          waitUntil { condition.waiting == 4 }
          // Three notifications, two cancellations, at the same time.
          let canceller = Fiber { for fiber in fibers[..<2] { fiber.cancel() } }
          for _ in 0..<3 {
            if random.next() & 1 == 0 { Fiber.yield() }
            condition.notifyOne()
          }
          canceller.join()
          // Whoever is left was neither notified nor cancelled.
          let cancelled = { 4 - condition.waiting - notified.value }
          waitUntil { mutex.withLock { $0 } + condition.waiting == 4 }
          #expect(cancelled() <= 2 && notified.value <= 3, "seed \(seed), round \(round)")
          #expect(
            condition.waiting == 0 || notified.value == 3, "seed \(seed), round \(round)")
          condition.notifyAll()
          for fiber in fibers { fiber.join() }
          #expect(mutex.withLockIfAvailable { $0 } == 4)
        }
      }
    }

    @Test(arguments: workerCounts)
    func whoIgnoresItsCancellationLetsOthersHaveTheMutex(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(false)
        let condition = FiberCondition()
        let stubborn = Fiber {
          mutex.withGuard { isDone in
            while !isDone.value { try? isDone.wait(on: condition) }
          }
        }
        stubborn.cancel()
        let other = Fiber {
          mutex.withLock { $0 = true }
          condition.notifyAll()
        }
        other.join()
        stubborn.join()
      }
    }

    @Test(arguments: workerCounts)
    func oneConditionAfterAnother(workers: Int) throws {
      // Where nobody waits any more, another mutex may be used with the same condition.
      try onWorkers(workers) {
        let condition = FiberCondition()
        for _ in 0..<3 {
          let mutex = FiberMutex(false)
          let fiber = Fiber {
            try mutex.withGuard { held in while !held.value { try held.wait(on: condition) } }
          }
          waitUntil { condition.waiting == 1 }
          mutex.withLock { $0 = true }
          condition.notifyAll()
          try fiber.join()
        }
      }
    }

    @Test func twoMutexesAtOnce() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        try Scheduler.run(.init(workers: 1)) {
          let (a, b) = (FiberMutex(0), FiberMutex(0))
          let condition = FiberCondition()
          Fiber { try a.withGuard { try $0.wait(on: condition) } }
          waitUntil { condition.waiting == 1 }
          try b.withGuard { try $0.wait(on: condition) }
        }
      }
      #expect(errorText(result).contains("waits on a FiberCondition with another FiberMutex"))
    }

    @Test(arguments: workerCounts)
    func stress(workers: Int) throws {
      let seed = stressSeed()
      try onWorkers(workers) {
        let until = ContinuousClock.now + stressDuration / 2
        let mutex = FiberMutex(0)
        let condition = FiberCondition()
        let inside = Counter()
        together(6) { actor in
          var random = SplitMix64(seed: seed &+ UInt64(actor))
          while ContinuousClock.now < until {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: condition.notifyOne()
            case 1: condition.notifyAll()
            default:
              mutex.withGuard { held in
                try? held.wait(on: condition, within: .microseconds(50))
                if inside.add() != 1 { Issue.record("two hold it, seed \(seed)") }
                held.value += 1
                inside.add(-1)
              }
            }
          }
        }
        #expect(condition.waiting == 0 && mutex.waiting == 0)
      }
    }
  }
}

/// What a plain thread finds.
private func onlyThread(_ body: @escaping @Sendable () -> Bool) -> Bool {
  let found = Box(false)
  onThread { found.value = body() }
  return found.value
}
