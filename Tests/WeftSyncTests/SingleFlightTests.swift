import Testing
import Weft

@testable import WeftSync

/// A run that several ask for, and that ends when it is told to.
private final class Slow: Sendable {
  let goes = Box(false)
  let runs = Counter()
  let wasCancelled = Box(false)

  func run() throws -> Int {
    let number = runs.add()
    while !goes.value {
      if Fiber.isCancelled {
        wasCancelled.value = true
        throw CancellationError()
      }
      Fiber.yield()
    }
    return number
  }
}

extension SyncTests {
  @Suite struct SingleFlightTests {
    @Test(arguments: workerCounts)
    func requestsAtTheSameTimeAreOne(workers: Int) throws {
      try onWorkers(workers) { () throws in
        let flight = SingleFlight<String, Int>()
        let slow = Slow()
        let fibers = (0..<4).map { _ in Fiber { try flight.run("key") { try slow.run() } } }
        waitUntil { flight.askers(of: "key") == 4 }
        let found = Box<Int?>(nil)
        let thread = PlainThread { found.value = try? flight.run("key") { try slow.run() } }
        waitUntil { flight.askers(of: "key") == 5 }
        // Another key is another run.
        #expect(try flight.run("other") { 17 } == 17)
        slow.goes.value = true
        for fiber in fibers { #expect(try fiber.join() == 1) }
        waitUntil { found.value != nil }
        thread.join()
        #expect(found.value == 1)
        // It has ended: the next runs anew.
        #expect(try flight.run("key") { try slow.run() } == 2)
        #expect(flight.askers(of: "key") == 0)
      }
    }

    @Test func fromAPlainThread() throws {
      let flight = SingleFlight<Int, String>()
      #expect(try flight.run(1) { "\(Fiber.current != nil)" } == "true")
      #expect(throws: Oops.self) { try flight.run(1) { throw Oops() } }
    }

    @Test(arguments: workerCounts)
    func anErrorReachesAll(workers: Int) throws {
      try onWorkers(workers) { () throws in
        let flight = SingleFlight<Int, Int>()
        let goes = Box(false)
        let fibers = (0..<3).map { _ in
          Fiber {
            try flight.run(1) {
              waitUntil { goes.value }
              throw Oops(number: 8)
            }
          }
        }
        waitUntil { flight.askers(of: 1) == 3 }
        goes.value = true
        for fiber in fibers { #expect(throws: Oops(number: 8)) { try fiber.join() } }
        #expect(try flight.run(1) { 9 } == 9)
      }
    }

    @Test(arguments: workerCounts)
    func oneCancellationDoesNotFailTheOthers(workers: Int) throws {
      try onWorkers(workers) { () throws in
        let flight = SingleFlight<Int, Int>()
        let slow = Slow()
        let fibers = (0..<3).map { _ in Fiber { try flight.run(1) { try slow.run() } } }
        waitUntil { flight.askers(of: 1) == 3 }
        // The one that started it, perhaps, and another.
        for fiber in fibers[..<2] {
          fiber.cancel()
          #expect(isCancelled { _ = try fiber.join() })
        }
        #expect(flight.askers(of: 1) == 1)
        #expect(!slow.wasCancelled.value)
        slow.goes.value = true
        #expect(try fibers[2].join() == 1)
      }
    }

    @Test(arguments: workerCounts)
    func theLastOnesLeavingCancelsTheRun(workers: Int) throws {
      try onWorkers(workers) { () throws in
        let flight = SingleFlight<Int, Int>()
        let slow = Slow()
        let fibers = (0..<3).map { _ in Fiber { try flight.run(1) { try slow.run() } } }
        waitUntil { flight.askers(of: 1) == 3 }
        for fiber in fibers { fiber.cancel() }
        for fiber in fibers { #expect(isCancelled { _ = try fiber.join() }) }
        // Whoever comes now does not join a run that was given up.
        #expect(try flight.run(1) { 5 } == 5)
        waitUntil { slow.wasCancelled.value }
      }
    }

    @Test(arguments: workerCounts)
    func cancelledOnesDoNotStartOne(workers: Int) throws {
      try onWorkers(workers) { () throws in
        let flight = SingleFlight<Int, Int>()
        let fiber = Fiber {
          waitUntil { Fiber.isCancelled }
          return isCancelled { _ = try flight.run(1) { 1 } }
        }
        fiber.cancel()
        #expect(fiber.join())
        #expect(flight.askers(of: 1) == 0)
      }
    }

    @Test(arguments: workerCounts)
    func nothingIsKept(workers: Int) throws {
      let counter = Counter()
      try onWorkers(workers) { () throws in
        let flight = SingleFlight<Int, Tracked>()
        for key in 0..<20 { _ = try flight.run(key % 3) { Tracked(counter) } }
        // The run's own fiber lets go of it last.
        waitUntil { counter.value == 0 }
      }
      #expect(counter.value == 0)
    }

    @Test(arguments: workerCounts)
    func stress(workers: Int) throws {
      let seed = stressSeed()
      try onWorkers(workers) { () throws in
        let until = ContinuousClock.now + stressDuration / 2
        let flight = SingleFlight<Int, Int>()
        let (runs, requests) = (Counter(), Counter())
        together(6) { actor in
          var random = SplitMix64(seed: seed &+ UInt64(actor))
          while ContinuousClock.now < until {
            let key = Int.random(in: 0..<2, using: &random)
            let asker = Fiber {
              let value = try flight.run(key) {
                runs.add()
                Fiber.yield()
                try Fiber.checkCancellation()
                if key == 1 { throw Oops(number: key) }
                return key
              }
              #expect(value == key)
            }
            if Int.random(in: 0..<4, using: &random) == 0 { asker.cancel() }
            do {
              try asker.join()
              #expect(key == 0)
            } catch is CancellationError {
              #expect(asker.isCancelled, "another's cancellation came here, seed \(seed)")
            } catch {
              #expect(error as? Oops == Oops(number: 1) && key == 1)
            }
            requests.add()
          }
        }
        #expect(runs.value > 0 && runs.value <= requests.value)
        #expect(flight.askers(of: 0) + flight.askers(of: 1) == 0)
      }
    }

    @Test func askingInsideItself() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        try Scheduler.run(.init(workers: 2)) {
          let flight = SingleFlight<String, Int>()
          _ = try flight.run("tail") { try flight.run("tail") { 1 } }
        }
      }
      #expect(errorText(result).contains("asked a SingleFlight for tail inside the run"))
    }
  }
}
