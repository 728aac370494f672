import Testing
import Weft

@testable import WeftSync

extension Promise {
  var waiting: Int { unsafe waiters(in: pointer) }  // SAFETY: `self` keeps it
}

extension SyncTests {
  @Suite struct PromiseTests {
    @Test func theGateLiesWhereItIsExpected() {
      let promise = Promise<String>()
      unsafe expectGate(&promise.gate, at: promise.pointer)  // SAFETY: `promise` keeps it
    }

    @Test(arguments: workerCounts)
    func allThatWaitGetIt(workers: Int) throws {
      try onWorkers(workers) {
        let promise = Promise<String>()
        #expect(!promise.isSettled && promise.result == nil)
        let fibers = (0..<5).map { _ in Fiber { try promise.wait() } }
        let found = Box<String?>(nil)
        let thread = PlainThread { found.value = try? promise.wait() }
        waitUntil { promise.waiting == 6 }
        try promise.resolve("there")
        #expect(promise.isSettled)
        for fiber in fibers { #expect(try fiber.join() == "there") }
        waitUntil { found.value != nil }
        thread.join()
        #expect(found.value == "there")
        #expect(try promise.wait() == "there")
        #expect(try promise.wait(within: .zero) == "there")
        #expect(try promise.result?.get() == "there")
      }
    }

    @Test(arguments: workerCounts)
    func anErrorReachesAll(workers: Int) throws {
      try onWorkers(workers) {
        let promise = Promise<Int>()
        let fibers = (0..<3).map { _ in Fiber { try promise.wait() } }
        waitUntil { promise.waiting == 3 }
        try promise.fail(Oops(number: 5))
        for fiber in fibers { #expect(throws: Oops(number: 5)) { try fiber.join() } }
        #expect(throws: Oops(number: 5)) { try promise.wait() }
      }
    }

    @Test func settlingTwice() throws {
      let counter = Counter()
      do {
        let promise = Promise<Tracked>()
        try promise.resolve(Tracked(counter, 1))
        #expect(throws: PromiseAlreadySettled.self) { try promise.resolve(Tracked(counter, 2)) }
        #expect(throws: PromiseAlreadySettled.self) { try promise.fail(Oops()) }
        #expect(counter.value == 1)
        #expect(try promise.wait().number == 1)
        #expect("\(PromiseAlreadySettled())".contains("Promise"))
      }
      #expect(counter.value == 0)
      do { _ = Promise<Tracked>() }
      let failed = Promise<Tracked>()
      try failed.fail(Oops())
      #expect(throws: PromiseAlreadySettled.self) { try failed.resolve(Tracked(counter)) }
      #expect(counter.value == 0)
    }

    @Test(arguments: workerCounts)
    func cancelledOnesLeaveAndLateOnesAreTimedOut(workers: Int) throws {
      try onWorkers(workers) {
        let promise = Promise<Int>()
        let fibers = (0..<3).map { _ in Fiber { try promise.wait() } }
        waitUntil { promise.waiting == 3 }
        fibers[1].cancel()
        #expect(isCancelled { _ = try fibers[1].join() })
        #expect(promise.waiting == 2)
        #expect(isTimedOut { _ = try promise.wait(within: .milliseconds(1)) })
        onThread { #expect(isTimedOut { _ = try promise.wait(within: .milliseconds(1)) }) }
        #expect(promise.waiting == 2)
        try promise.resolve(1)
        #expect(try fibers[0].join() == 1)
        #expect(try fibers[2].join() == 1)
        let cancelled = Fiber {
          waitUntil { Fiber.isCancelled }
          return isCancelled { _ = try promise.wait() }
        }
        cancelled.cancel()
        #expect(cancelled.join())
      }
    }

    @Test(arguments: workerCounts)
    func oneOfManyWins(workers: Int) throws {
      try onWorkers(workers) {
        for _ in 0..<scaled(1_000, least: 50) {
          let promise = Promise<Int>()
          let won = Box<[Int]>([])
          together(6) { actor in
            if actor < 3 {
              if (try? promise.resolve(actor)) != nil { won.change { $0.append(actor) } }
            } else {
              let value = try? promise.wait()
              #expect(value != nil && promise.isSettled)
              #expect(try! promise.wait() == value)
            }
          }
          let value = try promise.wait()
          #expect(won.value == [value])
        }
      }
    }
  }
}
