import Testing
import Weft

@testable import WeftSync

extension FiberOnce {
  var waiting: Int { unsafe waiters(in: pointer) }  // SAFETY: `self` keeps it
}

extension SyncTests {
  @Suite struct OnceTests {
    @Test func theGateLiesWhereItIsExpected() {
      let once = FiberOnce<String>()
      unsafe expectGate(&once.gate, at: once.pointer)  // SAFETY: `once` keeps it
    }

    @Test(arguments: workerCounts)
    func itIsMadeOnce(workers: Int) throws {
      try onWorkers(workers) {
        for _ in 0..<scaled(500, least: 20) {
          let once = FiberOnce<[Int]>()
          let made = Counter()
          #expect(once.value == nil)
          together(6) { _ in
            let value = try? once.get {
              Fiber.yield()
              return [made.add()]
            }
            #expect(value == [1])
          }
          #expect(once.value == [1])
          #expect(once.waiting == 0)
        }
      }
    }

    @Test(arguments: workerCounts)
    func anErrorIsItsCallersOwn(workers: Int) throws {
      try onWorkers(workers) {
        let once = FiberOnce<Int>()
        let goes = Box(false)
        let first = Fiber {
          try once.get {
            waitUntil { goes.value }
            throw Oops(number: 1)
          }
        }
        waitUntil { once.gateIsTaken }
        let second = Fiber { try once.get { throw Oops(number: 2) } }
        waitUntil { once.waiting == 1 }
        let others = (3...5).map { number in Fiber { try once.get { number } } }
        waitUntil { once.waiting == 4 }
        goes.value = true
        #expect(throws: Oops(number: 1)) { try first.join() }
        #expect(throws: Oops(number: 2)) { try second.join() }
        let values = try others.map { try $0.join() }
        #expect(Set(values).count == 1 && once.value == values[0])
      }
    }

    @Test func afterAnErrorItIsEmpty() throws {
      let once = FiberOnce<Int>()
      #expect(throws: Oops.self) { try once.get { throw Oops() } }
      #expect(once.value == nil)
      #expect(try once.get { 7 } == 7)
      #expect(try once.get { throw Oops() } == 7)
    }

    @Test(arguments: workerCounts)
    func cancelledOnesLeave(workers: Int) throws {
      try onWorkers(workers) {
        let once = FiberOnce<Int>()
        let goes = Box(false)
        let maker = Fiber {
          try once.get {
            waitUntil { goes.value }
            throw Oops()
          }
        }
        waitUntil { once.gateIsTaken }
        let waiter = Fiber { try once.get { 1 } }
        waitUntil { once.waiting == 1 }
        let next = Fiber { try once.get { 2 } }
        waitUntil { once.waiting == 2 }
        waiter.cancel()
        #expect(isCancelled { _ = try waiter.join() })
        goes.value = true
        #expect(throws: Oops.self) { try maker.join() }
        #expect(try next.join() == 2)
        // What is there, a cancelled fiber gets too.
        let late = Fiber {
          waitUntil { Fiber.isCancelled }
          let value = try once.get { 3 }
          #expect(value == 2)
          #expect(isCancelled { _ = try FiberOnce<Int>().get { 3 } })
        }
        late.cancel()
        try late.join()
      }
    }

    /// The first that waits is cancelled while it is to be the next to make it.
    @Test(arguments: workerCounts)
    func somebodyMakesIt(workers: Int) throws {
      try onWorkers(workers) {
        for _ in 0..<scaled(1_000, least: 50) {
          let once = FiberOnce<Int>()
          let fibers = (0..<4).map { number in
            Fiber {
              try? once.get {
                Fiber.yield()
                if number < 2 { throw Oops() }
                return number
              }
            }
          }
          fibers[2].cancel()
          for fiber in fibers { _ = fiber.join() }
          #expect(once.value == 2 || once.value == 3)
          #expect(once.waiting == 0)
        }
      }
    }

    @Test func aValueIsReleased() throws {
      let counter = Counter()
      do {
        let once = FiberOnce<Tracked>()
        _ = try once.get { Tracked(counter) }
        #expect(counter.value == 1)
      }
      #expect(counter.value == 0)
    }

    @Test func askingInsideItself() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        try Scheduler.run(.init(workers: 2)) {
          let once = FiberOnce<Int>()
          _ = try Fiber(name: "snake") { try once.get { try once.get { 1 } } }.join()
        }
      }
      #expect(errorText(result).contains("\"snake\" asked a FiberOnce for its value inside"))
    }
  }
}

extension FiberOnce {
  /// Whether somebody makes the value, or has.
  fileprivate var gateIsTaken: Bool { unsafe pointer.word != 0 }  // SAFETY: `self` keeps it
}
