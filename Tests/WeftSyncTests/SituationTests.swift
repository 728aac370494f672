import Glibc
import Testing
import Weft

/// What is known to have gone wrong with locks and waits elsewhere.
extension SyncTests {
  @Suite struct SituationTests {
    /// Situation 65: a lock that belongs to the thread, while its holder goes on on another.
    @Test(arguments: [2, 4])
    func aLockBelongsToTheFiber(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0)
        let threads = Box<Set<UInt>>([])
        let fibers = (0..<8).map { _ in
          Fiber {
            for _ in 0..<scaled(500) {
              mutex.withLock { value in
                let before = UInt(pthread_self())
                Fiber.yield()
                let after = UInt(pthread_self())
                if before != after { threads.change { _ = $0.insert(after) } }
                value += 1
              }
            }
          }
        }
        for fiber in fibers { fiber.join() }
        #expect(mutex.withLock { $0 } == 8 * scaled(500))
      }
    }

    /// Situation 68: fibers that are pinned keep their workers while they wait for one that is not.
    @Test(arguments: workerCounts)
    func pinnedFibersLeaveTheirWorkers(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0)
        let (holds, waiting) = (Channel<Int>(), Counter())
        let holder = Fiber {
          mutex.withLock { value in
            try? holds.send(1)
            waitUntil { waiting.value == 3 * workers }
            value += 1
          }
        }
        _ = try holds.receive()
        let pinned = (0..<3 * workers).map { number in
          Fiber(placement: .worker(number % workers)) {
            Fiber.pinned {
              waiting.add()
              mutex.withLock { $0 += 1 }
            }
          }
        }
        for fiber in pinned { fiber.join() }
        holder.join()
        #expect(mutex.withLock { $0 } == 3 * workers + 1)
      }
    }

    /// An element that waits where it is released.
    private final class Sleeper: Sendable {
      let released: Counter
      init(_ released: Counter) { self.released = released }
      deinit {
        Fiber.yield()
        try? Fiber.sleep(for: .microseconds(20))
        Fiber { Fiber.yield() }.join()
        released.add()
      }
    }

    /// Situation 55: an element of the program's whose code waits while a channel holds its lock.
    @Test(arguments: workerCounts)
    func elementsThatWaitWhenTheyAreReleased(workers: Int) throws {
      let released = Counter()
      let rounds = 10
      try onWorkers(workers) {
        for round in 0..<rounds {
          // Left in a buffer, in a closed one, refused, given up, and received by one that ends.
          let channel = Channel<Sleeper>(capacity: 2)
          for _ in 0..<2 { try channel.send(Sleeper(released)) }
          let sender = Fiber { try channel.send(Sleeper(released)) }
          let selecting = Fiber { try select { channel.onSend(Sleeper(released)) } }
          if round % 2 == 0 { Fiber.yield() }
          sender.cancel()
          selecting.cancel()
          expectCancelled { try sender.join() }
          expectCancelled { try selecting.join() }
          _ = try channel.receive()
          channel.close()
          expectClosed { try channel.send(Sleeper(released)) }
          // And one that every subscriber lets go.
          let broadcast = Broadcast<Sleeper>(capacity: 1, lag: .dropOldest)
          let subscriptions = (0..<2).map { _ in broadcast.subscribe() }
          for _ in 0..<3 { try broadcast.send(Sleeper(released)) }
          for subscription in subscriptions { _ = try subscription.receive() }
        }
        waitUntil { released.value == 8 * rounds }
      }
      #expect(released.value == 8 * rounds)
    }

    enum Greedy: CaseIterable { case semaphore, channel, unbounded, select }

    /// Situation 72: a loop of operations that never have to wait keeps the worker to itself.
    @Test(arguments: Greedy.allCases)
    func whoNeverHasToWaitLetsOthersRun(greedy: Greedy) throws {
      try onWorkers(1) {
        let stop = Counter()
        let fiber = Fiber {
          let semaphore = FiberSemaphore(1)
          let channel = Channel<Int>(capacity: 1)
          let unbounded = Channel<Int>(capacity: .unbounded)
          while stop.value == 0 {
            switch greedy {
            case .semaphore:
              try semaphore.wait()
              semaphore.signal()
            case .channel:
              try channel.send(1)
              _ = try channel.receive()
            case .unbounded: try unbounded.send(1)
            case .select:
              try select { channel.onSend(1) }
              try select { channel.onReceive { _ in } }
            }
          }
        }
        // Its turn comes again, though that one never parks.
        for _ in 0..<10 { Fiber.yield() }
        stop.add()
        try fiber.join()
      }
    }

    /// Situations 82 to 84: a huge time limit is none, and no limit is in the past.
    @Test(arguments: workerCounts)
    func hugeTimeLimits(workers: Int) throws {
      try onWorkers(workers) {
        for limit in [
          Duration.seconds(Int64.max), .seconds(Int64.max / 1_000_000_000), .seconds(1 << 40),
        ] {
          let channel = Channel<Int>()
          let semaphore = FiberSemaphore(0)
          let receiver = Fiber { try channel.receive(within: limit) }
          let waiter = Fiber { try semaphore.wait(within: limit) }
          let selecting = Fiber { () throws -> Int in
            try select {
              channel.onReceive { $0 ?? -1 }
              after(limit) { -2 }
            }
          }
          for _ in 0..<20 { Fiber.yield() }
          #expect(!receiver.isFinished && !waiter.isFinished && !selecting.isFinished)
          try channel.send(1)
          try channel.send(1)
          semaphore.signal()
          #expect(try receiver.join() == 1 && selecting.join() == 1)
          try waiter.join()
        }
      }
    }
  }
}
