import CWeft
import Synchronization
import Testing
import WeftContext
import WeftTestSupport

@testable import WeftRuntime

/// Ends with a fiber in between: its release gives the processor away and starts fibers, which take
/// memory from the pool.
private final class Meddler: Sendable {
  private let ended: Count

  init(_ ended: Count) { self.ended = ended }

  deinit {
    let ended = self.ended
    if Fiber.current != nil {
      Fiber.yield()
      Fiber { ended.add() }.join()
      Fiber.yield()
    } else {
      // The run's reference was the last, and was dropped on a worker's own stack.
      ended.add()
    }
    ended.add()
  }
}

/// So many fibers that are alive at once; gone when this returns.
private func crowd(_ count: Int) {
  let go = Count()
  let fibers = (0..<count).map { number in
    Fiber { () -> Int in
      while go.current == 0 { Fiber.yield() }
      return number
    }
  }
  go.add()
  var sum = 0
  for fiber in fibers { sum += fiber.join() }
  #expect(sum == count * (count - 1) / 2)
}

@Suite struct RecordPoolTests {
  /// What the pool believes of the object: header, record, two words, in this order.
  @Test func objectIsAsLargeAsThePoolBelieves() throws {
    let fiber = Fiber { 7 }
    // SAFETY: addresses are compared; the handle keeps the object.
    let object = unsafe UInt(bitPattern: Unmanaged.passUnretained(fiber.cell).toOpaque())
    let found = unsafe UInt(bitPattern: fiber.record.object)
    #expect(found == object)
    let end = unsafe MemoryLayout<weft_fiber>.size + Int(WEFT_OBJECT_HEADER_BYTES)
    #expect(
      MemoryLayout<FiberExtras?>.size + MemoryLayout<GroupCore?>.size + end
        <= Int(WEFT_OBJECT_BYTES))
    #expect(fiber.join() == 7)
    // SAFETY: as above.
    let pooled = unsafe fiber.record.pointee.flags & UInt32(WEFT_FIBER_POOLED) != 0
    #expect(pooled != isSanitized)
    if pooled { #expect(object % 16 == 0) }
  }

  @Test(arguments: [1, 2, 4]) func objectsComeBackCleanOfThoseBefore(workers: Int) throws {
    try onWorkers(workers) {
      for round in 0..<scaled(2_000) {
        let named = Fiber(name: "named \(round)") { Fiber.current?.name }
        #expect(named.join() == "named \(round)")
        let plain = Fiber { Fiber.current.map { ($0.name == nil, $0.isCancelled) } }
        let (nameless, cancelled) = try #require(plain.join())
        #expect(nameless && !cancelled)
        let go = Count()
        let cancelledOne = Fiber { () -> Bool in
          while go.current == 0 { Fiber.yield() }
          return Fiber.isCancelled
        }
        cancelledOne.cancel()
        go.add()
        #expect(cancelledOne.join())
        #expect(Fiber { Fiber.isCancelled }.join() == false)
      }
    }
  }

  @Test(arguments: [1, 2, 4]) func eachObjectHasOneFiber(workers: Int) throws {
    try onWorkers(workers) {
      let count = scaled(100_000, least: 1_000)
      let fibers = (0..<count).map { number in Fiber { number } }
      #expect(Set(fibers.map { ObjectIdentifier($0.cell) }).count == count)
      for (number, fiber) in fibers.enumerated() { #expect(fiber.join() == number) }
    }
  }

  /// Made on one thread, dropped last on others, which end: their caches go back.
  @Test func handlesAreDroppedOnOtherThreads() throws {
    let ended = Count()
    let rounds = scaled(40, least: 4)
    for _ in 0..<rounds {
      let handles = Guarded((0..<256).map { _ in Fiber { ended.add() } })
      onThreads(4) { _ in
        while true {
          guard let one = handles.withLock({ $0.popLast() }) else { break }
          one.join()
        }
      }
    }
    #expect(ended.current == rounds * 256)
  }

  /// The result's release runs fibers while the object that it was in is being dropped.
  @Test(arguments: [1, 2, 4]) func releaseOfAResultMayRunFibers(workers: Int) throws {
    let ended = Count()
    let rounds = scaled(1_000)
    try onWorkers(workers) {
      for _ in 0..<rounds {
        let fiber = Fiber { Meddler(ended) }
        let other = Fiber { Fiber.yield() }
        fiber.join()
        other.join()
      }
    }
    #expect(eventually { ended.current == 2 * rounds })
  }

  /// The same of what a fiber inherited, and never began to use.
  @Test(arguments: [1, 2, 4]) func releaseOfALocalMayRunFibers(workers: Int) throws {
    let ended = Count()
    let local = FiberLocal<Meddler?>(nil)
    let rounds = scaled(500)
    try onWorkers(workers) {
      for _ in 0..<rounds {
        local.withValue(Meddler(ended)) {
          Fiber { Fiber.yield() }
          Fiber(name: "joined") { _ = local.value }.join()
        }
      }
    }
    #expect(eventually { ended.current >= rounds })
  }

  #if !canImport(Darwin)
    @Test(.enabled(if: !isSanitized)) func memoryIsKeptForTheNextAndGivenBack() async {
      await #expect(processExitsWith: .success) {
        // SAFETY: numbers.
        let count = 200_000
        try onWorkers(1) { crowd(count) }
        let first = weft_record_get_statistics()
        #expect(first.chunks * 1_000 > count / 2)
        // At the end of a scheduler all but 32 MiB goes back.
        #expect(first.empty - first.clean <= 128)
        try onWorkers(1) { crowd(count) }
        let second = weft_record_get_statistics()
        #expect(second.chunks <= first.chunks + 1)
        StackPool.trim()
        let trimmed = weft_record_get_statistics()
        #expect(trimmed.empty >= trimmed.chunks - 2 && trimmed.clean == trimmed.empty)
        // And comes back to use.
        try onWorkers(2) { crowd(count) }
        #expect(weft_record_get_statistics().chunks <= first.chunks + 2)
      }
    }

    /// A worker that has nothing to do lets go of what was not used for a second.
    @Test(.enabled(if: !isSanitized)) func idleWorkersGiveBackWhatIsNotUsed() async {
      await #expect(processExitsWith: .success) {
        try onWorkers(1) {
          crowd(200_000)
          let before = weft_record_get_statistics()
          #expect(before.empty - before.clean > 100)
          let isBack = {
            let now = weft_record_get_statistics()
            return now.empty - now.clean <= 8
          }
          let limit = ContinuousClock.now + .seconds(20)
          while !isBack(), ContinuousClock.now < limit { try Fiber.sleep(for: .milliseconds(50)) }
          #expect(isBack())
        }
      }
    }

    /// What lies in the caches of workers keeps no chunk for ever, however it is spread.
    @Test(.enabled(if: !isSanitized)) func cachesOfIdleWorkersKeepNoMemory() async {
      await #expect(processExitsWith: .success) {
        let workers = 16
        try onWorkers(workers) {
          var fibers = (0..<100_000).map { _ in Fiber {} }
          for fiber in fibers { fiber.join() }
          fibers.shuffle()
          let shares = (0..<workers).map { worker in
            Guarded(stride(from: worker, to: fibers.count, by: workers).map { fibers[$0] })
          }
          fibers = []
          for (worker, share) in shares.enumerated() {
            Fiber(placement: .worker(worker)) { share.withLock { $0 = [] } }.join()
          }
          // SAFETY: numbers.
          let left = {
            let now = weft_record_get_statistics()
            return now.chunks - now.clean
          }
          #expect(left() > 60)
          let limit = ContinuousClock.now + .seconds(20)
          while left() > 10, ContinuousClock.now < limit {
            try Fiber.sleep(for: .milliseconds(50))
          }
          #expect(left() <= 10)
        }
      }
    }
  #endif
}
