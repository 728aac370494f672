import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

extension RuntimeTests {
  /// Spawning and joining.
  @Suite struct JoinTests {
    @Test(arguments: workerCounts)
    func joinGivesTheResult(workers: Int) throws {
      let sum = try onWorkers(workers) {
        (0..<100).map { i in Fiber { i * i } }.reduce(0) { $0 + $1.join() }
      }
      #expect(sum == 328_350)
    }

    @Test(arguments: workerCounts)
    func largeResultsAreBoxed(workers: Int) throws {
      try onWorkers(workers) {
        let fiber = Fiber { (1, 2, 3, "four", [5]) }
        for _ in 0..<2 {
          let value = fiber.join()
          #expect(value.0 == 1 && value.3 == "four" && value.4 == [5])
        }
        struct Wide: Sendable {
          var words: (SIMD16<Double>, UInt8) = (.init(repeating: 2.5), 7)
        }
        let wide = Fiber { Wide() }.join()
        #expect(wide.words.0.sum() == 40 && wide.words.1 == 7)
      }
    }

    @Test(arguments: workerCounts)
    func resultsAreReleasedExactlyOnce(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        for joined in [true, false] {
          var one: Fiber<Tracked, Never>? = Fiber { Tracked(alive) }
          var two: Fiber<(Tracked, String, Int), Never>? = Fiber { (Tracked(alive), "x", 1) }
          if joined { _ = (one?.join(), two?.join()) }
          one = nil
          two = nil
        }
        waitUntil { alive.value == 0 }
      }
      #expect(alive.value == 0)
    }

    @Test(arguments: workerCounts)
    func theResultLivesAsLongAsAHandle(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let fiber = Fiber { Tracked(alive, 3) }
        waitUntil { fiber.isFinished }
        #expect(alive.value == 1)
        #expect(fiber.join().number == 3)
      }
      #expect(alive.value == 0)
    }

    @Test(arguments: workerCounts)
    func capturesAreReleasedAtTheEndThoughAHandleIsKept(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let fiber = Self.start(Tracked(alive, 5))
        #expect(fiber.join() == 5)
        #expect(alive.value == 0)
        #expect(fiber.join() == 5)
      }
    }

    private static func start(_ tracked: Tracked) -> Fiber<Int, Never> {
      Fiber { tracked.number }
    }

    @Test(arguments: workerCounts)
    func errorsReachEveryJoin(workers: Int) throws {
      try onWorkers(workers) {
        let untyped = Fiber { if true { throw Oops(number: 1) } }
        for _ in 0..<3 { expectError(Oops(number: 1)) { try untyped.join() } }
        let typed = Fiber<Int, Oops> { () throws(Oops) in throw Oops(number: 2) }
        do throws(Oops) {
          try typed.join()
        } catch {
          #expect(error.number == 2)
        }
      }
    }

    /// A fiber that ends gives its stack to the next one while it still runs there: what that one
    /// needs must not come over the frames below.
    @Test func longNamesDisturbNobody() throws {
      try onWorkers(1) {
        for length in [1, 15, 16, 64, 128, 200, 256, 1000] {
          let name = String(repeating: "n", count: length)
          let pairs = (0..<20).map { i in
            (Fiber { i }, Fiber(name: name) { i + 1 })
          }
          // None is joined before it has run: each takes over from the one that ends.
          waitUntil { schedulerCore().statistics.live == 1 }
          for (i, (plain, named)) in pairs.enumerated() {
            #expect(plain.join() == i)
            #expect(named.join() == i + 1)
          }
        }
      }
    }

    /// The same where frames are so large, as in debug builds, that nobody would notice.
    @Test(.enabled(if: looksAtMemory)) func bindingAStackWritesNothingBelowTheRecord() async {
      await #expect(processExitsWith: .success) {
        asProgram {
          Scheduler.run(.init(workers: 1)) {
            // SAFETY: a stack that is nobody's is written and read. The record never runs, and is
            // kept.
            var stack = unsafe weft_stack()
            _ = unsafe weft_stack_acquire(200_000, &stack)
            let top = unsafe stack.top.unsafelyUnwrapped
            unsafe memset(top - 4096, 1, 4096)
            unsafe weft_stack_release(&stack)
            let worker = unsafe weft_worker_current().unsafelyUnwrapped
            let record = unsafe makeCell(
              name: String(repeating: "n", count: 256), site: weft_site(), stackBytes: 200_000,
              flags: 0, home: worker)
            guard unsafe bindStack(record, worker) else { return 2 }
            // SAFETY: as above.
            let cold = unsafe UnsafeMutableRawPointer(record.pointee.cold)
            guard let cold = unsafe cold else { return 3 }
            let room = unsafe UnsafeRawBufferPointer(start: cold - 256, count: 256)
            // It is the stack from above.
            guard unsafe record.pointee.cold.pointee.stack.top == top else { return 4 }
            return unsafe room.contains(UInt8(ascii: "n")) ? 1 : 0
          }
        }
      }
    }

    /// A join runs a child that has not started at once, but does not let one that was woken jump
    /// the queue.
    @Test func aJoinLetsNoWokenFiberJumpTheQueue() throws {
      try onWorkers(1) {
        let order = Box<[Int]>([])
        let parked = Counter()
        let fibers = (0..<3).map { i in
          Fiber {
            parked.add()
            try? Fiber.park()
            order.change { $0.append(i) }
          }
        }
        waitUntil { parked.value == 3 }
        for fiber in fibers { fiber.unpark() }
        let child = Fiber { order.change { $0.append(3) } }
        child.join()
        fibers[2].join()
        for fiber in fibers { fiber.join() }
        let passes = !Environment.debugModes.contains(.queue)
        #expect(order.value == (passes ? [3, 0, 1, 2] : [0, 1, 2, 3]))
      }
    }

    @Test(arguments: workerCounts)
    func manyJoinersOfOneFiber(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Box(false)
        let slow = Fiber {
          waitUntil { gate.value }
          return 9
        }
        let joiners = (0..<50).map { _ in Fiber { slow.join() } }
        let timed = (0..<50).map { _ in Fiber { try slow.join(within: .seconds(60)) } }
        Fiber.yield()
        gate.value = true
        for joiner in joiners { #expect(joiner.join() == 9) }
        for joiner in timed { try expect(joiner.join() == 9) }
      }
    }

    @Test(arguments: workerCounts)
    func joinFromPlainThreads(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Box(false)
        let fiber = Fiber {
          waitUntil { gate.value }
          return 4
        }
        let results = Box<[Int?]>([])
        let threads = (0..<4).map { i in
          PlainThread {
            let value = i % 2 == 0 ? fiber.join() : try? fiber.join(within: .seconds(60))
            let early = try? fiber.join(within: .zero)
            results.change { $0 += [value, early ?? nil] }
          }
        }
        gate.value = true
        waitUntil { results.value.count == 8 }
        for thread in threads { thread.join() }
        #expect(results.value == Array(repeating: 4, count: 8))
      }
    }

    /// Whoever joins from outside must not look at a scheduler that may be gone by then.
    @Test(arguments: workerCounts)
    func aThreadJoinsWhatEndsWithItsScheduler(workers: Int) throws {
      for round in 0..<scaled(1_000, least: 30) {
        let handle = Box<Fiber<Int, Never>?>(nil)
        let thread = PlainThread {
          var fiber: Fiber<Int, Never>?
          while fiber == nil { fiber = handle.value }
          expect(fiber?.join() == round)
        }
        try onWorkers(workers) {
          let fiber = Fiber { round }
          handle.value = fiber
          if round % 2 == 0 { fiber.join() }
        }
        thread.join()
      }
    }

    @Test(arguments: workerCounts)
    func joinWithin(workers: Int) throws {
      try onWorkers(workers) {
        let parked = Fiber { try Fiber.park() }
        let value: Void? = try parked.join(within: .milliseconds(2))
        #expect(value == nil)
        #expect(try parked.join(within: .zero) == nil)
        #expect(try parked.join(within: .seconds(-1)) == nil)
        parked.unpark()
        #expect(try parked.join(within: .seconds(60)) != nil)

        let other = Fiber { try? Fiber.park() }
        let joiner = Fiber { try other.join(within: .seconds(100_000_000_000)) }
        Fiber.yield()
        joiner.cancel()
        expectCancellation { _ = try joiner.join() }
        other.unpark()
        other.join()
      }
    }

    // Situation 53: a wait with a time limit, whose fiber is elsewhere when the time is up.
    @Test(arguments: workerCounts)
    func joinWithinRacesWithTheEnd(workers: Int) throws {
      try onWorkers(workers) {
        for i in 0..<scaled(3_000) {
          let fiber = Fiber { try? Fiber.sleep(for: .microseconds(i % 40)) }
          let joiners = (0..<3).map { j in
            Fiber { try fiber.join(within: .microseconds((i + 7 * j) % 40)) }
          }
          if i % 5 == 0 { joiners[1].cancel() }
          for joiner in joiners { _ = try? joiner.join() }
          fiber.join()
        }
      }
    }

    @Test(arguments: workerCounts)
    func joinIsNotCancelled(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Box(false)
        let slow = Fiber { waitUntil { gate.value } }
        let joiner = Fiber {
          slow.join()
          return Fiber.isCancelled
        }
        Fiber.yield()
        joiner.cancel()
        gate.value = true
        #expect(joiner.join())
      }
    }

    @Test(arguments: workerCounts)
    func namesIdentitiesAndCurrent(workers: Int) throws {
      try onWorkers(workers) {
        #expect(Fiber.current?.name == "main")
        let a = Fiber(name: "a") { Fiber.current?.id }
        let b = Fiber { Fiber.current?.name }
        #expect(a.name == "a" && b.name == nil && a.id != b.id)
        #expect(a.join() == a.id)
        #expect(b.join() == nil)
        let same = a
        #expect(same == a && Set([same, a]).count == 1)
      }
      #expect(Fiber.current == nil)
    }

    // Situations 41 and 66: a stack is reused while its owner is on it; a run queue overflows.
    @Test(arguments: workerCounts)
    func aMillionSpawnedAhead(workers: Int) throws {
      let count = scaled(1_000_000)
      let sum = try onWorkers(workers) {
        let fibers = (0..<count).map { i in Fiber { i } }
        return fibers.reduce(0) { $0 + $1.join() }
      }
      #expect(sum == count * (count - 1) / 2)
    }

    @Test(arguments: workerCounts)
    func chainsOfFibers(workers: Int) throws {
      @Sendable func chain(_ depth: Int) -> Int {
        depth == 0 ? 0 : Fiber { chain(depth - 1) }.join() + 1
      }
      let depth = scaled(20_000)
      #expect(try onWorkers(workers) { chain(depth) } == depth)
    }

    /// Waits while it is released.
    private final class Sleeper: Sendable {
      let count: Counter
      init(_ count: Counter) { self.count = count }
      deinit {
        Fiber.yield()
        do { try Fiber.sleep(for: .microseconds(20)) } catch {}
        Fiber { Fiber.yield() }.join()
        count.add()
      }
    }

    private struct SleepyError: Error {
      let sleeper: Sleeper
    }

    // Situation 55: code of the user's that waits while the runtime holds a lock of its own.
    @Test(arguments: workerCounts)
    func whatWaitsWhileItIsReleased(workers: Int) throws {
      let released = Counter()
      let count = 20
      try onWorkers(workers) {
        for i in 0..<count {
          // Captured, returned, thrown, and handed out by a group, or not.
          let captured = Sleeper(released)
          Fiber { withExtendedLifetime(captured) { Fiber.yield() } }
          let kept = Fiber { Sleeper(released) }
          if i % 2 == 0 { kept.join() }
          let failing = Fiber { throw SleepyError(sleeper: Sleeper(released)) }
          _ = try? failing.join()
          try withFiberGroup(of: Sleeper.self, onError: .collect) { group in
            for _ in 0..<3 { group.spawn { Sleeper(released) } }
            group.spawn { throw SleepyError(sleeper: Sleeper(released)) }
            _ = group.nextResult()
          }
        }
      }
      #expect(released.value == count * 7)
    }

    @Test func fibersOutsideAnyScheduler() throws {
      let values = Box<[Int]>([])
      onThread {
        let fibers = (0..<100).map { i in
          Fiber {
            Fiber.yield()
            return i
          }
        }
        values.value = fibers.map { $0.join() }
      }
      #expect(values.value == Array(0..<100))
    }
  }
}
