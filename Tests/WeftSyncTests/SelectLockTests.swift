import Testing
import Weft

@testable import WeftSync

extension SyncTests {
  /// `select` over locks, semaphores and promises.
  @Suite struct SelectLockTests {
    @Test(arguments: workerCounts)
    func locksPermitsAndValues(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(5)
        let semaphore = FiberSemaphore(0)
        let promise = Promise<String>()
        let free = try select {
          semaphore.onWait { "permit" }
          promise.onValue { $0 }
          mutex.onLock { value in
            value += 1
            return "locked \(value)"
          }
        }
        #expect(free == "locked 6")
        #expect(mutex.withLock { $0 } == 6)
        // Each in turn, while the mutex is held.
        for turn in 0..<3 {
          let held = Box(false)
          let gate = Channel<Int>()
          let holder = Fiber {
            try mutex.withLock { _ in
              held.value = true
              _ = try gate.receive()
            }
          }
          waitUntil { held.value }
          let selecting = Fiber { () throws -> String in
            try select {
              semaphore.onWait { "permit" }
              promise.onValue { $0 }
              mutex.onLock { _ in "locked" }
              after(.seconds(1_000)) { "late" }
            }
          }
          waitUntil { selecting.isFinished || Self.waiting(mutex) == 1 }
          switch turn {
          case 0:
            semaphore.signal()
            #expect(try selecting.join() == "permit")
            try gate.send(1)
          case 1:
            try gate.send(1)
            #expect(try selecting.join() == "locked")
          default:
            try promise.resolve("value")
            #expect(try selecting.join() == "value")
            try gate.send(1)
          }
          try holder.join()
          #expect(semaphore.availablePermits == 0)
          #expect(Self.waiting(mutex) == 0 && Self.waiting(semaphore) == 0)
          #expect(mutex.withLockIfAvailable { $0 } == 6)
        }
        let failed = Promise<Int>()
        try failed.fail(Oops(number: 9))
        do {
          _ = try select { failed.onValue { $0 } }
          Issue.record("nothing thrown")
        } catch let error as Oops {
          #expect(error.number == 9)
        }
      }
    }

    // SAFETY: both are alive.
    private static func waiting(_ mutex: FiberMutex<Int>) -> Int {
      unsafe waiters(in: mutex.pointer)
    }
    // SAFETY: as above.
    private static func waiting(_ semaphore: FiberSemaphore) -> Int {
      unsafe waiters(in: semaphore.pointer)
    }

    /// A large request that leaves lets those behind it through.
    @Test(arguments: workerCounts)
    func whoLeavesASemaphoreLetsOthersThrough(workers: Int) throws {
      try onWorkers(workers) {
        let semaphore = FiberSemaphore(1)
        let other = Channel<Int>()
        let large = Fiber { () throws -> Int in
          try select {
            semaphore.onWait(2) { 0 }
            other.onReceive { $0 ?? -1 }
          }
        }
        waitUntil { Self.waiting(semaphore) == 1 }
        let small = Fiber { try semaphore.wait() }
        waitUntil { Self.waiting(semaphore) == 2 }
        try other.send(7)
        #expect(try large.join() == 7)
        try small.join()
        #expect(semaphore.availablePermits == 0)
      }
    }

    /// Whatever wins, and whoever is cancelled, permits and locks are as many as before.
    @Test(arguments: workerCounts)
    func nothingIsLost(workers: Int) throws {
      let seed = stressSeed()
      let until = ContinuousClock.now + stressDuration / 4
      try onWorkers(workers) {
        var random = SplitMix64(seed: seed)
        while ContinuousClock.now < until {
          let mutexes = (0..<2).map { FiberMutex(0, handOff: $0 == 0) }
          let semaphore = FiberSemaphore(2)
          let locked = Counter()
          let fibers = (0..<8).map { number in
            let steps = random.next()
            return Fiber(placement: .worker(number % workers)) {
              Self.wander(mutexes, semaphore, locked, SplitMix64(seed: steps))
            }
          }
          let steps = random.next()
          let thread = PlainThread {
            Self.wander(mutexes, semaphore, locked, SplitMix64(seed: steps))
          }
          for fiber in fibers where random.next() % 3 == 0 {
            Fiber.yield()
            fiber.cancel()
          }
          for fiber in fibers { fiber.join() }
          let isEnded = Box(false)
          let joiner = PlainThread {
            thread.join()
            isEnded.value = true
          }
          waitUntil { isEnded.value }
          joiner.join()
          #expect(semaphore.availablePermits == 2)
          #expect(mutexes.reduce(0) { $0 + $1.withLock { $0 } } == locked.value)
        }
      }
    }

    private static func wander(
      _ mutexes: [FiberMutex<Int>], _ semaphore: FiberSemaphore, _ locked: Counter,
      _ random: SplitMix64
    ) {
      var random = random
      for _ in 0..<20 {
        let first = Int(random.next() % 2)
        let kind = random.next() % 4
        let count = Int(random.next() % 2) + 1
        do {
          try select {
            mutexes[first].onLock { value in
              value += 1
              locked.add()
              Fiber.yield()
            }
            semaphore.onWait(count) {
              Fiber.yield()
              semaphore.signal(count)
            }
            mutexes[1 - first].onLock { value in
              value += 1
              locked.add()
            }
            if kind == 0 { after(.microseconds(5)) {} }
          }
        } catch {}
      }
    }
  }
}
