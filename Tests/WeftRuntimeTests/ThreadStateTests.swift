import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

// The thread's own words are asked for in calls that are not inlined: compilers keep their
// addresses over a switch.

@inline(never)
private func setErrno(_ value: Int32) { errno = value }

@inline(never)
private func getErrno() -> Int32 { errno }

@inline(never) @_optimize(none)
private func opaque<T>(_ value: T) -> T { value }

extension RuntimeTests {
  /// What a thread keeps for the code that runs on it goes along with the fiber.
  @Suite struct ThreadStateTests {
    // Situation 28: errno read from the old thread after a migration.
    @Test(arguments: workerCounts)
    func errnoIsTheFibers(workers: Int) throws {
      let rounds = scaled(500, least: 20)
      try onWorkers(workers) {
        let fibers = (1...12).map { i in
          Fiber {
            let own = Fiber.current
            for round in 0..<rounds {
              let value = Int32(i * 10_000 + round)
              setErrno(value)
              switch round % 7 {
              case 0: Fiber.yield()
              case 1:
                own?.unpark()
                try Fiber.park()
              case 2: try Fiber.sleep(for: .microseconds(round % 40))
              case 3:
                Fiber {
                  expect(getErrno() == 0)  // a new one begins with none
                  setErrno(1)
                }.join()
              case 4: try Fiber.pinned { try Fiber.sleep(for: .microseconds(1)) }
              case 5:
                try blocking {
                  expect(getErrno() == value)
                  setErrno(2)
                  setErrno(value)
                }
              default:
                try withFiberGroup(of: Void.self) { group in
                  group.spawn { setErrno(3) }
                  try expect(group.next() != nil)
                  setErrno(value)
                }
              }
              expect(getErrno() == value)
            }
          }
        }
        for fiber in fibers { try fiber.join() }
      }
    }

    @Test(arguments: workerCounts)
    func errnoMovesToEveryWorker(workers: Int) throws {
      try onWorkers(workers) {
        guard schedulerCore().migratesStarted else { return }
        try Fiber {
          for index in (0..<workers).reversed() {
            let own = Fiber.current
            while workerIndex() != index {
              Fiber(placement: .worker(index)) {
                setErrno(99)
                own?.unpark()
              }
              setErrno(Int32(1_000 + index))
              try Fiber.park()
              expect(getErrno() == Int32(1_000 + index))
            }
          }
        }.join()
      }
    }

    // Situations 29 and 30: the compiler keeps what it knows of the thread over a wait.
    @Test(arguments: [2, 4])
    func whatBelongsToTheThreadIsReadAnew(workers: Int) throws {
      try onWorkers(workers) {
        guard schedulerCore().migratesStarted else { return }
        let moved = try Fiber { () throws -> Int in
          let own = Fiber.current
          var moved = 0
          for round in 0..<200 {
            // All in one function: two looks with a wait between them, which is inlined.
            let index = round % workers
            // SAFETY: a worker of this fiber's scheduler.
            let before = unsafe weft_worker_current()
            Fiber(placement: .worker(index)) { own?.unpark() }
            try Fiber.park()
            let after = unsafe weft_worker_current()
            let outlined = unsafe weft_worker_current_outlined()
            try unsafe #require(after == outlined && Fiber.current == own)
            moved += unsafe before == after ? 0 : 1
          }
          return moved
        }.join()
        #expect(moved > 0)
      }
    }

    private static let nearest: Int32 = 0
    #if arch(x86_64)
      private static let modes: [Int32] = [0, 0x400, 0x800, 0xC00]
    #else
      private static let modes: [Int32] = [0, 0x40_0000, 0x80_0000, 0xC0_0000]
    #endif

    /// A third, with a division that no optimizer does for us.
    @inline(never) @_optimize(none)
    private static func third() -> Double { 1.0 / opaque(3.0) }

    #if arch(x86_64)
      /// The same on the x87 unit, rounded to a double under its own control word.
      @inline(never) @_optimize(none)
      private static func longThird() -> Float80 { 1.0 / opaque(Float80(3)) }
    #endif

    // Situations 7 and 8: rounding set by one is seen by another, or reloaded as garbage.
    @Test(arguments: workerCounts)
    func floatingPointControlIsTheFibers(workers: Int) throws {
      let rounds = scaled(500, least: 20)
      try onWorkers(workers) {
        let fibers = (0..<12).map { i in
          Fiber {
            let mode = Self.modes[i % Self.modes.count]
            fesetround(mode)
            let result = Self.third()
            #if arch(x86_64)
              let long = Self.longThird()
            #endif
            for round in 0..<rounds {
              switch round % 4 {
              case 0: Fiber.yield()
              case 1:
                if schedulerCore().migratesStarted { try hop(to: round % workers) }
              case 2: try Fiber.sleep(for: .microseconds(round % 40))
              default:
                // A new fiber begins with the default, whoever makes it.
                Fiber { expect(fegetround() == Self.nearest) }.join()
              }
              expect(fegetround() == mode)
              expect(Self.third() == result)
              #if arch(x86_64)
                expect(Self.longThird() == long)
              #endif
            }
          }
        }
        for fiber in fibers { try fiber.join() }
        #expect(fegetround() == Self.nearest)
      }
      #expect(fegetround() == Self.nearest)
    }

    /// Its properties are accessed under the runtime's exclusivity check.
    final class Cell: @unchecked Sendable {  // SAFETY: each belongs to one fiber.
      var value = 0
      var other = 0
    }

    /// Leaves the fiber several times while the access to its argument is open.
    @inline(never)
    private static func increment(_ value: inout Int, _ other: inout Int, _ wait: () throws -> Void)
      throws
    {
      value += 1
      try wait()
      other += 1
      try wait()
      value += 1
    }

    /// Accesses that begin on one thread and end on another: the runtime keeps a list of them per
    /// thread, whose nodes lie on the stack.
    @Test(arguments: workerCounts)
    func accessesOpenOverAPark(workers: Int) throws {
      let rounds = scaled(400, least: 20)
      let seed = stressSeed()
      try onWorkers(workers) {
        let fibers = (0..<24).map { i in
          Fiber { () throws -> Int in
            let cell = opaque(Cell())
            var random = SplitMix64(seed: seed &+ UInt64(i))
            let own = Fiber.current
            for _ in 0..<rounds {
              try Self.increment(&cell.value, &cell.other) {
                switch random.next() % 5 {
                case 0: Fiber.yield()
                case 1: try Fiber.sleep(for: .microseconds(Int(random.next() % 30)))
                case 2: Fiber {}.join()
                case 3:
                  let index = Int(random.next() % UInt64(workers))
                  Fiber(placement: .worker(index)) { own?.unpark() }
                  try Fiber.park()
                default: try blocking {}
                }
              }
            }
            return cell.value + cell.other
          }
        }
        for fiber in fibers {
          let sum = try fiber.join()
          #expect(sum == 3 * rounds)
        }
      }
    }

    /// What is left open by an error or a cancellation is closed on the thread that it ends on.
    @Test(arguments: workerCounts)
    func accessesThatAnErrorCloses(workers: Int) throws {
      try onWorkers(workers) {
        let cells = (0..<40).map { _ in opaque(Cell()) }
        let fibers = cells.enumerated().map { i, cell in
          Fiber {
            try Self.increment(&cell.value, &cell.other) {
              if schedulerCore().migratesStarted { try hop(to: i % workers) }
              if i % 2 == 0 { throw Oops(number: i) }
              try Fiber.park()
            }
          }
        }
        waitUntil { cells.indices.allSatisfy { $0 % 2 == 1 || fibers[$0].isFinished } }
        for (i, fiber) in fibers.enumerated() {
          fiber.cancel()
          let error = thrown { try fiber.join() }
          #expect(i % 2 == 0 ? error is Oops : error is CancellationError)
          // No access is open any more, here or there.
          cells[i].value += 1
          cells[i].other += 1
        }
      }
    }

    @Test func aRealConflictIsStillFoundAfterAMove() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        try onWorkers(2) {
          let cell = opaque(Cell())
          try Fiber {
            try Self.increment(&cell.value, &cell.other) {
              if schedulerCore().migratesStarted { try hop(to: 1) }
              opaque(cell).value += 1
            }
          }.join()
        }
      }
      let text = text(result)
      #expect(text.contains("imultaneous accesses"))
    }

    enum Local { @TaskLocal static var value = 0 }

    // Situation 31: what was pushed on a thread's own stack of bindings is left behind.
    /// A binding made in a fiber is seen by it alone, wherever it goes.
    @Test(arguments: workerCounts)
    func taskLocalsStayWithTheFiber(workers: Int) throws {
      let rounds = scaled(100, least: 10)
      try onWorkers(workers) {
        let fibers = (1...12).map { i in
          Fiber {
            for round in 0..<rounds {
              try Local.$value.withValue(i * 1_000 + round) {
                Fiber.yield()
                expect(Local.value == i * 1_000 + round)
                try Fiber.sleep(for: .microseconds(round % 30))
                expect(Local.value == i * 1_000 + round)
                if round % 4 == 0, schedulerCore().migratesStarted {
                  try hop(to: round % workers)
                }
                expect(Local.value == i * 1_000 + round)
              }
              expect(Local.value == 0)
            }
          }
        }
        for fiber in fibers { try fiber.join() }
      }
    }

    /// Throws from a depth, on another worker than the frames were entered on.
    @inline(never)
    private static func dive(_ depth: Int, _ workers: Int, _ alive: Counter) throws -> Int {
      let kept = Tracked(alive, depth)
      defer { expect(kept.number == depth) }
      if depth == 0 {
        if schedulerCore().migratesStarted { try hop(to: Int.random(in: 0..<workers)) }
        Fiber.yield()
        throw Oops(number: depth)
      }
      do {
        return try dive(depth - 1, workers, alive)
      } catch let error as Oops {
        if depth % 4 == 0 { try Fiber.sleep(for: .microseconds(depth)) }
        throw Oops(number: error.number + 1)
      }
    }

    // Situations 22 and 23: an error that is caught over a switch, a wait inside the catch block.
    @Test(arguments: workerCounts)
    func errorsGoThroughFramesAfterAMove(workers: Int) throws {
      let alive = Counter()
      let rounds = scaled(50, least: 5)
      try onWorkers(workers) {
        let fibers = (0..<16).map { _ in
          Fiber {
            for _ in 0..<rounds {
              expectError(Oops(number: 40)) { _ = try Self.dive(40, workers, alive) }
            }
          }
        }
        for fiber in fibers { fiber.join() }
      }
      #expect(alive.value == 0)
    }

    /// The same with a typed error, which takes another way out.
    @Test(arguments: workerCounts)
    func typedErrorsAfterAMove(workers: Int) throws {
      @Sendable func fail(_ index: Int) throws(Oops) -> Int {
        let own = Fiber.current
        Fiber(placement: .worker(index)) { own?.unpark() }
        do throws(CancellationError) { try Fiber.park() } catch { throw Oops(number: -1) }
        throw Oops(number: index)
      }
      try onWorkers(workers) {
        for index in 0..<workers {
          let fiber = Fiber<Int, Oops> { () throws(Oops) in try fail(index) }
          expectError(Oops(number: index)) { _ = try fiber.join() }
        }
      }
    }

    /// Of a fiber that ends, joiners change the flags while it is still on its way out, which on
    /// a stack that it keeps until then (a huge one, or in a debug mode) looked like any other
    /// switch.
    @Test func theLastSwitchLeavesTheFlagsAlone() throws {
      // SAFETY: all five live to the end, and nobody else knows them. Nobody follows the words.
      let (from, to) = unsafe (Zeros<weft_fiber>(), Zeros<weft_fiber>())
      let (worker, cold) = unsafe (Zeros<weft_worker>(), Zeros<weft_fiber_cold>())
      let words = unsafe Zeros<(Word, Word, Word, Word)>()
      unsafe withExtendedLifetime((from, to, worker, cold, words)) {
        unsafe from.pointer.pointee.cold = cold.pointer
        let places = unsafe UnsafeMutableRawPointer(words.pointer)
          .assumingMemoryBound(to: Word.self)
        unsafe worker.pointer.pointee.access = places
        unsafe worker.pointer.pointee.concurrency = places + 1
        let flags = UInt32(WEFT_FIBER_HAS_WORDS | WEFT_FIBER_STARTED | WEFT_FIBER_IN_JOB)
        for after in [WEFT_AFTER_END, WEFT_AFTER_PARK] {
          unsafe worker.pointer.pointee.after = UInt32(after)
          unsafe from.pointer.pointee.flags = flags
          unsafe weft_fiber_swap_words(from.pointer, to.pointer, worker.pointer)
          // One that parks outside any job leaves without words, and is free to move.
          unsafe #expect((from.pointer.pointee.flags == flags) == (after == WEFT_AFTER_END))
        }
      }
    }
  }
}

private typealias Word = UnsafeMutableRawPointer?

/// A structure for which zeros are a value.
@safe
private final class Zeros<Structure> {
  // SAFETY: memory of the structure's size, given back with this object.
  let pointer: UnsafeMutablePointer<Structure>

  init() {
    // SAFETY: as above.
    unsafe pointer = UnsafeMutablePointer<Structure>.allocate(capacity: 1)
    unsafe UnsafeMutableRawPointer(pointer).initializeMemory(
      as: UInt8.self, repeating: 0, count: MemoryLayout<Structure>.size)
  }

  // SAFETY: as above.
  deinit { unsafe pointer.deallocate() }
}
