import CWeft
import Testing

@testable import WeftRuntime

extension RuntimeTests {
  /// `Fiber.pinned`.
  @Suite struct PinnedTests {
    private static var isPinned: Bool {
      // SAFETY: the running fiber's own record.
      unsafe (Fiber.current?.cell.pointer.pointee.flags ?? 0) & .pinned != 0
    }

    /// Everything that may move a fiber, under those that try to.
    @Test(arguments: workerCounts)
    func itStaysOnItsThread(workers: Int) throws {
      let seed = stressSeed()
      let rounds = scaled(300, least: 30)
      try onWorkers(workers) {
        let fibers = (0..<16).map { i in
          Fiber {
            var random = SplitMix64(seed: seed &+ UInt64(i))
            for _ in 0..<rounds {
              if schedulerCore().migratesStarted {
                try hop(to: Int(random.next() % UInt64(workers)))
              }
              try Fiber.pinned {
                let thread = threadNumber()
                let own = Fiber.current
                for _ in 0..<4 {
                  let index = Int(random.next() % UInt64(workers))
                  switch random.next() % 4 {
                  case 0: Fiber.yield()
                  case 1: try Fiber.sleep(for: .microseconds(Int(random.next() % 50)))
                  case 2: Fiber(placement: .worker(index)) { Fiber.yield() }.join()
                  default:
                    Fiber(placement: .worker(index)) { own?.unpark() }
                    try Fiber.park()
                  }
                  expect(threadNumber() == thread)
                }
              }
            }
          }
        }
        for fiber in fibers { try fiber.join() }
      }
    }

    @Test(arguments: workerCounts)
    func itNestsAndEndsWithTheOutermost(workers: Int) throws {
      try onWorkers(workers) {
        Fiber {
          if schedulerCore().migratesStarted { expect(!Self.isPinned) }
          Fiber.pinned {
            Fiber.pinned { expect(Self.isPinned) }
            expect(Self.isPinned)
            let thread = threadNumber()
            Fiber.yield()
            expect(threadNumber() == thread)
          }
          expect(Self.isPinned == !schedulerCore().migratesStarted)
        }.join()
      }
    }

    @Test(arguments: workerCounts)
    func errorsLeaveIt(workers: Int) throws {
      try onWorkers(workers) {
        let fiber = Fiber {
          expectError(Oops(number: 4)) {
            try Fiber.pinned {
              try Fiber.sleep(for: .microseconds(10))
              try Fiber.pinned { throw Oops(number: 4) }
            }
          }
          expect(Self.isPinned == !schedulerCore().migratesStarted)
          // A cancelled wait inside.
          expectCancellation {
            try Fiber.pinned {
              Fiber.current?.cancel()
              try Fiber.park()
            }
          }
          expect(Self.isPinned == !schedulerCore().migratesStarted)
        }
        fiber.join()
        // Typed errors stay typed.
        do throws(Oops) {
          try Fiber.pinned { () throws(Oops) in throw Oops(number: 5) }
        } catch {
          #expect(error.number == 5)
        }
      }
    }

    /// One that is placed, and main, stay bound after a scope of their own.
    @Test(arguments: workerCounts)
    func thosePlacedStayPlaced(workers: Int) throws {
      try onWorkers(workers) {
        let index = workers - 1
        try Fiber(placement: .worker(index)) {
          Fiber.pinned { Fiber.yield() }
          expect(Self.isPinned)
          try Fiber.sleep(for: .microseconds(10))
          expect(workerIndex() == index)
        }.join()
        let thread = threadNumber()
        Fiber.pinned { Fiber.yield() }
        try Fiber.sleep(for: .microseconds(10))
        #expect(Self.isPinned && threadNumber() == thread)
      }
      #expect(Fiber.pinned { 7 } == 7)  // a plain thread
    }

    /// After the scope the fiber may go where it is woken.
    @Test(arguments: [2, 4])
    func afterItTheFiberMovesAgain(workers: Int) throws {
      try onWorkers(workers) {
        guard schedulerCore().migratesStarted else { return }
        try Fiber {
          for index in (0..<workers).reversed() {
            try hop(to: index)
            let own = Fiber.current
            try Fiber.pinned {
              Fiber(placement: .worker((index + 1) % workers)) { own?.unpark() }
              try Fiber.park()
              expect(workerIndex() == index)
            }
          }
        }.join()
      }
    }
  }
}
