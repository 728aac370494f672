import Weft
import WeftTesting

// Locks and their kin.

extension Scenario {
  private static func exclusion(_ name: String, handOff: Bool) -> Scenario {
    Scenario(name) {
      let mutex = FiberMutex(0, handOff: handOff)
      let inside = Shared(0)
      let fibers = (0..<3).map { _ in
        Fiber {
          for _ in 0..<2 {
            mutex.withLock { count in
              inside.value += 1
              let isAlone = inside.value == 1
              Simulation.point()
              count += isAlone && inside.value == 1 ? 1 : 100
              inside.value -= 1
            }
          }
        }
      }
      for fiber in fibers { fiber.join() }
      try require(mutex.withLock { $0 } == 6)
    }
  }

  static let locks: [Scenario] = [
    exclusion("mutex", handOff: false),
    exclusion("mutex, handed over", handOff: true),
    Scenario("a mutex between threads and fibers") {
      let mutex = FiberMutex(0)
      let thread = try Simulation.thread { for _ in 0..<2 { mutex.withLock { $0 += 1 } } }
      let fiber = Fiber { for _ in 0..<2 { mutex.withLock { $0 += 1 } } }
      fiber.join()
      while mutex.withLock({ $0 }) < 4 { try Fiber.sleep(for: .milliseconds(1)) }
      _ = thread
    },
    Scenario("semaphore") {
      let semaphore = FiberSemaphore(2)
      let inside = Shared((now: 0, most: 0))
      let fibers = (0..<4).map { _ in
        Fiber {
          try semaphore.withPermit {
            inside.value.now += 1
            inside.value.most = max(inside.value.most, inside.value.now)
            Fiber.yield()
            inside.value.now -= 1
          }
        }
      }
      for fiber in fibers { try fiber.join() }
      try require(inside.value.most <= 2)
      try require(semaphore.availablePermits == 2)
    },
    Scenario("a semaphore's waiter is cancelled") {
      let semaphore = FiberSemaphore(0)
      let fibers = (0..<2).map { _ in
        Fiber { () -> Bool in
          do { try semaphore.wait() } catch { return false }
          return true
        }
      }
      let canceller = Fiber { fibers[0].cancel() }
      semaphore.signal()
      canceller.join()
      if !fibers[0].join() {
        // The permit is the other's.
        try require(fibers[1].join())
      } else {
        semaphore.signal()
        try require(fibers[1].join())
      }
      try require(semaphore.availablePermits == 0)
    },
    Scenario("a semaphore of several permits") {
      let semaphore = FiberSemaphore(1)
      let large = Fiber { try semaphore.wait(2) }
      let small = Fiber { try semaphore.wait(1) }
      semaphore.signal(2)
      try large.join()
      try small.join()
      try require(semaphore.availablePermits == 0)
    },
    Scenario("a time limit on a semaphore") {
      let semaphore = FiberSemaphore(0)
      let waiter = Fiber { () -> Bool in
        do { try semaphore.wait(within: .milliseconds(1)) } catch { return false }
        return true
      }
      let signaller = Fiber {
        try Fiber.sleep(for: .milliseconds(1))
        semaphore.signal()
      }
      try signaller.join()
      try require(waiter.join() == (semaphore.availablePermits == 0))
    },
    Scenario("condition") {
      let mutex = FiberMutex([Int]())
      let condition = FiberCondition()
      let consumers = (0..<2).map { _ in
        Fiber { () throws -> Int in
          try mutex.withGuard { queue in
            while queue.value.isEmpty { try queue.wait(on: condition) }
            return queue.value.removeFirst()
          }
        }
      }
      for element in 1...2 {
        mutex.withLock { $0.append(element) }
        condition.notifyOne()
      }
      var sum = 0
      for consumer in consumers { sum += try consumer.join() }
      try require(sum == 3)
    },
    Scenario("a condition's waiter is cancelled") {
      let mutex = FiberMutex(false)
      let condition = FiberCondition()
      let waiters = (0..<2).map { _ in
        Fiber { () -> Bool in
          do {
            try mutex.withGuard { isReady in
              while !isReady.value { try isReady.wait(on: condition) }
            }
          } catch { return false }
          return true
        }
      }
      let canceller = Fiber { waiters[0].cancel() }
      mutex.withLock { $0 = true }
      condition.notifyAll()
      canceller.join()
      _ = waiters[0].join()
      try require(waiters[1].join())
    },
    Scenario("readers and writers") {
      let lock = FiberRWLock(0)
      let writing = Shared(false)
      let writers = (0..<2).map { _ in
        Fiber {
          lock.withWriteLock { value in
            writing.value = true
            Simulation.point()
            value += 1
            writing.value = false
          }
        }
      }
      let readers = (0..<2).map { _ in
        Fiber { () -> Bool in
          lock.withReadLock { _ in
            Simulation.point()
            return !writing.value
          }
        }
      }
      for writer in writers { writer.join() }
      for reader in readers { try require(reader.join()) }
      try require(lock.withReadLock { $0 } == 2)
    },
    Scenario("barrier") {
      let barrier = FiberBarrier(3)
      let arrived = Shared(0)
      let fibers = (0..<3).map { _ in
        Fiber { () throws -> Bool in
          for round in 1...2 {
            arrived.value += 1
            try barrier.wait()
            if arrived.value < 3 * round { return false }
          }
          return true
        }
      }
      for fiber in fibers { try require(try fiber.join()) }
    },
    Scenario("a barrier's party is cancelled") {
      let barrier = FiberBarrier(2)
      let quitter = Fiber { () -> Bool in
        do { try barrier.wait() } catch { return false }
        return true
      }
      let canceller = Fiber { quitter.cancel() }
      let party = Fiber { try barrier.wait() }
      canceller.join()
      // Whoever took its arrival back was no party: another has to come.
      if !quitter.join() { try barrier.wait() }
      try party.join()
    },
    Scenario("wait group") {
      let group = WaitGroup()
      let done = Shared(0)
      group.add(3)
      for _ in 0..<3 {
        Fiber {
          done.value += 1
          group.done()
        }
      }
      let other = Fiber { try group.wait() }
      try group.wait()
      try require(done.value == 3)
      try other.join()
    },
  ]

  static let futures: [Scenario] = [
    Scenario("promise") {
      let promise = Promise<Int>()
      let waiters = (0..<2).map { _ in Fiber { try promise.wait() } }
      let losers = (1...2).map { value in
        Fiber { () -> Int in
          do throws(PromiseAlreadySettled) { try promise.resolve(value) } catch { return 0 }
          return value
        }
      }
      let won = losers.reduce(0) { $0 + $1.join() }
      for waiter in waiters { try require(try waiter.join() == won) }
    },
    Scenario("once") {
      let once = FiberOnce<Int>()
      let made = Shared(0)
      let fibers = (0..<3).map { _ in
        Fiber {
          try once.get {
            Fiber.yield()
            made.value += 1
            return made.value
          }
        }
      }
      for fiber in fibers { try require(try fiber.join() == 1) }
    },
    Scenario("once fails for one") {
      struct Oops: Error {}
      let once = FiberOnce<Int>()
      let tries = Shared(0)
      let fibers = (0..<3).map { _ in
        Fiber { () -> Int in
          do {
            return try once.get {
              tries.value += 1
              if tries.value == 1 { throw Oops() }
              return 7
            }
          } catch { return 0 }
        }
      }
      try require(fibers.reduce(0) { $0 + $1.join() } == 14)
    },
    Scenario("single flight") {
      let flight = SingleFlight<String, Int>()
      let runs = Shared(0)
      let fibers = (0..<3).map { _ in
        Fiber {
          try flight.run("key") {
            runs.value += 1
            try Fiber.sleep(for: .milliseconds(1))
            return 9
          }
        }
      }
      fibers[0].cancel()
      _ = try? fibers[0].join()
      for fiber in fibers[1...] { try require(try fiber.join() == 9) }
      try require(runs.value <= 3)
    },
  ]

  static let groups: [Scenario] = [
    Scenario("group") {
      let sum = try withFiberGroup(of: Int.self) { group in
        for index in 0..<3 { group.spawn { index } }
        var sum = 0
        while let value = try group.next() { sum += value }
        return sum
      }
      try require(sum == 3)
    },
    Scenario("an error cancels the siblings") {
      struct Oops: Error {}
      let ended = Shared(0)
      var isThrown = false
      do {
        try withFiberGroup(of: Void.self) { group in
          for _ in 0..<2 {
            group.spawn {
              defer { ended.value += 1 }
              try Fiber.park()
            }
          }
          group.spawn { throw Oops() }
          try Fiber.sleep(for: .seconds(1_000))
        }
      } catch is Oops { isThrown = true }
      try require(isThrown && ended.value == 2)
    },
    Scenario("an error cancels the siblings while the body works") {
      struct Oops: Error {}
      let ended = Shared(0)
      var isThrown = false
      do {
        try withFiberGroup(of: Void.self) { group in
          for _ in 0..<2 {
            group.spawn {
              defer { ended.value += 1 }
              try Fiber.park()
            }
          }
          group.spawn { throw Oops() }
          while ended.value < 2 { Fiber.yield() }
        }
      } catch is Oops { isThrown = true }
      try require(isThrown)
    },
    Scenario("a group is cancelled from outside") {
      let ended = Shared(0)
      let fiber = Fiber {
        try withFiberGroup(of: Void.self) { group in
          for _ in 0..<2 {
            group.spawn {
              defer { ended.value += 1 }
              try Fiber.sleep(for: .seconds(1_000))
            }
          }
          group.waitForAll()
        }
      }
      Fiber.yield()
      fiber.cancel()
      _ = try? fiber.join()
      try require(ended.value == 2)
    },
    Scenario("race") {
      let runners = (1...2).map { number in
        { @Sendable () throws -> Int in
          try Fiber.sleep(for: .milliseconds(1))
          return number
        }
      }
      let first = try race(runners)
      try require(first == 1 || first == 2)
    },
    Scenario("concurrent map") {
      let result = try (0..<4).concurrentMap(limit: 2) { value in
        Fiber.yield()
        return value * value
      }
      try require(result == [0, 1, 4, 9])
    },
  ]
}
