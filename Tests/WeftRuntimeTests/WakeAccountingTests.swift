import CWeft
import Synchronization
import Testing

@testable import WeftRuntime

/// A semaphore made of park and unpark: each waiter has one permit at most under way, so that a
/// wake that is lost, doubled or swallowed changes a count.
// SAFETY: the box guards the state.
final class TestSemaphore: Sendable {
  private final class Waiter: Sendable {
    let fiber: FiberHandle
    let isGranted = Atomic(false)
    init(_ fiber: FiberHandle) { self.fiber = fiber }
  }

  private struct State {
    var permits = 0
    var waiters: [Waiter] = []
  }

  private let state = Box(State())

  var permits: Int { state.change { $0.permits } }
  var waiting: Int { state.change { $0.waiters.count } }

  func signal() {
    let next = state.change { state -> Waiter? in
      if state.waiters.isEmpty {
        state.permits += 1
        return nil
      }
      return state.waiters.removeFirst()
    }
    guard let next else { return }
    next.isGranted.store(true, ordering: .releasing)
    next.fiber.unpark()
  }

  /// - Throws: `CancellationError`; the permit is then somebody else's.
  func wait() throws {
    guard let fiber = Fiber.current else { fatalError("for fibers only") }
    let waiter = Waiter(fiber)
    let taken = state.change { state -> Bool in
      if state.permits > 0 {
        state.permits -= 1
        return true
      }
      state.waiters.append(waiter)
      return false
    }
    if taken { return }
    while !waiter.isGranted.load(ordering: .acquiring) {
      do throws(CancellationError) {
        try Fiber.park()
      } catch {
        let left = state.change { state -> Bool in
          guard let index = state.waiters.firstIndex(where: { $0 === waiter }) else { return false }
          state.waiters.remove(at: index)
          return true
        }
        if left { throw error }
        // Chosen already: a permit that came first wins. Its unpark may be under way still.
        while !waiter.isGranted.load(ordering: .acquiring) { Fiber.yield() }
        return
      }
    }
  }

  /// So many fibers, each of which waits so often, and counts.
  func waiters(_ count: Int, _ each: Int, _ got: Counter) -> [Fiber<Void, any Error>] {
    (0..<count).map { _ in
      Fiber {
        for _ in 0..<each {
          try self.wait()
          got.add()
        }
      }
    }
  }
}

extension RuntimeTests {
  /// Wakes are counted: none is lost, doubled, or swallowed by a waiter that was cancelled.
  @Suite struct WakeAccountingTests {
    // Situation 48: a notify between "added to the waiters" and "suspended" is lost, or wakes
    // twice.
    @Test(arguments: workerCounts)
    func everyPermitIsUsedOnce(workers: Int) throws {
      let (wakers, waiters) = (4, 12)
      let each = scaled(3_000, least: 60)
      try onWorkers(workers) {
        let semaphore = TestSemaphore()
        let got = Counter()
        let waiting = semaphore.waiters(waiters, each, got)
        let total = waiters * each
        let signalling = (0..<wakers).map { i in
          Fiber {
            for n in 0..<total / wakers {
              semaphore.signal()
              if n % 5 == i { Fiber.yield() }
            }
          }
        }
        for fiber in signalling { fiber.join() }
        for fiber in waiting { try fiber.join() }
        #expect(got.value == total)
        #expect(semaphore.permits == 0 && semaphore.waiting == 0)
      }
    }

    /// The same where the wakers are plain threads.
    @Test(arguments: workerCounts)
    func permitsFromPlainThreads(workers: Int) throws {
      let (threads, waiters) = (3, 6)
      let each = scaled(2_000, least: 50)
      try onWorkers(workers) {
        let semaphore = TestSemaphore()
        let got = Counter()
        let waiting = semaphore.waiters(waiters, each, got)
        let signalling = (0..<threads).map { _ in
          PlainThread { for _ in 0..<waiters * each / threads { semaphore.signal() } }
        }
        for fiber in waiting { try fiber.join() }
        for thread in signalling { thread.join() }
        #expect(got.value == waiters * each)
        #expect(semaphore.permits == 0 && semaphore.waiting == 0)
      }
    }

    // Situation 70: a waiter that is cancelled after it was chosen swallows the permit.
    @Test(arguments: workerCounts)
    func aCancelledWaiterSwallowsNothing(workers: Int) throws {
      let rounds = scaled(300, least: 15)
      var random = SplitMix64(seed: stressSeed())
      try onWorkers(workers) {
        for _ in 0..<rounds {
          let semaphore = TestSemaphore()
          let count = Int.random(in: 2...12, using: &random)
          let signals = Int.random(in: 1...count, using: &random)
          let waiting = (0..<count).map { _ in
            Fiber { () -> Bool in
              do {
                try semaphore.wait()
                return true
              } catch {
                return false
              }
            }
          }
          let seed = random.next()
          let signalling = Fiber(placement: .worker(Int(seed % UInt64(workers)))) {
            var random = SplitMix64(seed: seed)
            for _ in 0..<signals {
              semaphore.signal()
              if random.next() % 3 == 0 { Fiber.yield() }
            }
          }
          // More than are left over, so that those who are chosen are hit too.
          for fiber in waiting.shuffled(using: &random) where random.next() % 2 == 0 {
            fiber.cancel()
            if random.next() % 3 == 0 { Fiber.yield() }
          }
          signalling.join()
          // Whoever still waits is let go: no permit is left for it.
          waitUntil { semaphore.permits == 0 || semaphore.waiting == 0 }
          for fiber in waiting { fiber.cancel() }
          let got = waiting.count { $0.join() }
          #expect(got + semaphore.permits == signals)
          #expect(semaphore.waiting == 0)
        }
      }
    }

    /// One unpark against one cancellation: the park has the permit, or leaves it.
    @Test(arguments: workerCounts)
    func unparkAgainstCancel(workers: Int) throws {
      let rounds = scaled(3_000, least: 200)
      var random = SplitMix64(seed: stressSeed())
      try onWorkers(workers) {
        var ends = (woken: 0, cancelled: 0)
        for _ in 0..<rounds {
          let done = Counter()
          let fiber = Fiber { () -> (woken: Bool, permit: Bool) in
            let woken = thrown { try Fiber.park() } == nil
            while done.value < 2 { Fiber.yield() }
            // SAFETY: the running fiber asks for itself.
            return (woken, unsafe Fiber.current?.cell.pointer.takePermit() ?? false)
          }
          let order = random.next()
          if order % 2 == 0 { Fiber.yield() }
          let other = Fiber(placement: .worker(Int(order / 4 % UInt64(workers)))) {
            fiber.unpark()
            done.add()
          }
          if order / 2 % 2 == 0 { Fiber.yield() }
          fiber.cancel()
          done.add()
          let end = fiber.join()
          other.join()
          #expect(end.woken != end.permit)
          if end.woken { ends.woken += 1 } else { ends.cancelled += 1 }
        }
        #expect(ends.woken > 0 && ends.cancelled > 0)
      }
    }

    // Situations 49 and 52: a timer, a wake and a cancellation at once, and what is left in the
    // heap after.
    @Test(arguments: workerCounts)
    func timersAgainstCancelsAndEnds(workers: Int) throws {
      let seed = stressSeed()
      let rounds = scaled(400, least: 20)
      try onWorkers(workers) {
        let alive = Counter()
        let fibers = (0..<16).map { i in
          Fiber {
            var random = SplitMix64(seed: seed &+ UInt64(i))
            for _ in 0..<rounds {
              let time = Duration.microseconds(Int(random.next() % 60))
              let target = Fiber { () throws -> Tracked in
                let kept = Tracked(alive)
                try Fiber.sleep(for: time)
                return kept
              }
              let limit = Duration.microseconds(Int(random.next() % 60))
              if random.next() % 4 == 0 { target.cancel() }
              let early = Result { try target.join(within: limit) }
              let late = Result { try target.join() }
              switch (early, late) {
              case (.success(let value), .success(let last)):
                expect(value == nil || value === last)
              case (.success(nil), .failure(let error)), (.failure(let error), .failure):
                expect(error is CancellationError)
              default: Issue.record("a join gave what the other did not")
              }
            }
          }
        }
        for fiber in fibers { fiber.join() }
        // A worker drops its reference to a fiber that has ended a moment after the joins.
        waitUntil { alive.value == 0 }
        // SAFETY: workers live as long as their scheduler, and each heap is read under its lock.
        for index in 0..<workers {
          let worker = unsafe schedulerCore().workers[index]
          unsafe worker.lockTimers()
          let left = unsafe worker.timers.pointee.count
          unsafe worker.unlockTimers()
          #expect(left == 0)
        }
      }
    }

    // Situation 77: a result that is handed over when the cancellation comes is lost.
    @Test(arguments: workerCounts)
    func noResultOfAGroupIsLost(workers: Int) throws {
      let rounds = scaled(300, least: 20)
      var random = SplitMix64(seed: stressSeed())
      try onWorkers(workers) {
        let alive = Counter()
        for _ in 0..<rounds {
          let count = Int.random(in: 1...12, using: &random)
          let seed = random.next()
          let fiber = Fiber { () throws -> Int in
            try withFiberGroup(of: Tracked.self, onError: .collect) { group in
              for i in 0..<count {
                group.spawn(placement: .worker(Int((seed >> UInt64(i)) % UInt64(workers)))) {
                  if (seed >> UInt64(i)) % 3 == 0 { Fiber.yield() }
                  return Tracked(alive, 1)
                }
              }
              var sum = 0
              do {
                while let one = try group.next() { sum += one.number }
              } catch is CancellationError {
                while let one = group.nextResult() { sum += try one.get().number }
              }
              return sum
            }
          }
          for _ in 0..<random.next() % 5 { Fiber.yield() }
          fiber.cancel()
          let sum = try fiber.join()
          #expect(sum == count)
        }
        #expect(alive.value == 0)
      }
    }
  }
}
