// Every example of the documentation of WeftTesting, as it stands there. A test of TidyTests
// compares the texts, layout aside, so that no example can be missing or out of date.

import Testing
import Weft
import WeftTestSupport
import WeftTesting

/// What the examples printed.
private let printed = Box<[String]>([])

/// In the place of the standard library's: tests don't print.
private func print(_ item: Any) { printed.change { $0.append("\(item)") } }

@Suite(.serialized) struct TestingExamplesTests {
  private func lines(_ example: () throws -> Void) throws -> [String] {
    printed.value = []
    try example()
    return printed.value
  }

  @Test func nobodyWaitsForEver() throws {
    try Simulation.explore(schedules: 100) {
      let done = Fiber { try Fiber.sleep(for: .seconds(3_600)) }
      try done.join()
    }
  }

  @Test func configured() throws {
    let lines = try lines {
      var configuration = Simulation.Configuration(workers: 1)
      configuration.faults = [.spuriousWakes, .delayedWakes]
      try Simulation.explore(schedules: 50, configuration) { Fiber { print("hello") }.join() }
    }
    #expect(lines == Array(repeating: "hello", count: 50))
  }

  @Test func first() throws {
    try Simulation.explore(schedules: 200) {
      let jobs = Channel<Int>(capacity: 2)
      let producer = Fiber {
        for job in 1...3 { try jobs.send(job) }
        jobs.close()
      }
      var sum = 0
      while let job = try jobs.receive() { sum += job }
      try producer.join()
      try Simulation.require(sum == 6)
    }
  }

  /// The README's, which fails on purpose.
  @Test func readme() throws {
    let failure = #expect(throws: SimulationFailure.self) {
      try Simulation.explore(schedules: 200) {
        let cache = FiberMutex([String: Int]())
        let loads = FiberMutex(0)
        let readers = (0..<2).map { _ in
          Fiber {
            if cache.withLock({ $0["key"] }) == nil {
              try Fiber.sleep(for: .seconds(1))  // no time at all
              loads.withLock { $0 += 1 }
              cache.withLock { $0["key"] = 42 }
            }
          }
        }
        for reader in readers { try reader.join() }
        try Simulation.require(loads.withLock { $0 } == 1, "loaded twice")
      }
    }
    #expect(failure?.description.contains("loaded twice") == true)
  }

  @Test func failure() throws {
    let failure = #expect(throws: SimulationFailure.self) {
      try Simulation.explore(schedules: 500, .init(workers: 1)) {
        let a = FiberMutex(0)
        let b = FiberMutex(0)
        let one = Fiber(name: "ab") { a.withLock { _ in b.withLock { $0 += 1 } } }
        let two = Fiber(name: "ba") { b.withLock { _ in a.withLock { $0 += 1 } } }
        one.join()
        two.join()
      }
    }
    #expect(failure?.timeline.contains("fiber #3 \"ba\" waits for a FiberMutex") == true)
  }

  @Test func again() throws {
    let lines = try lines {
      let result = try Simulation.run(seed: 5) {
        let fibers = (0..<3).map { i in Fiber { i + 1 } }
        return fibers.reduce(0) { $0 + $1.join() }
      }
      print(result)
    }
    #expect(lines == ["6"])
  }

  @Test func time() throws {
    let lines = try lines {
      try Simulation.run(seed: 1) {
        let start = Fiber.now
        let replies = Channel<String>()
        do {
          try withTimeout(.seconds(60)) { _ = try replies.receive() }
          print("answered")
        } catch is DeadlineExceeded {
          print("waited for \((Fiber.now - start).components.seconds) s")
        }
      }
    }
    #expect(lines == ["waited for 60 s"])
  }

  @Test func exhaustive() throws {
    let lines = try lines {
      var configuration = Simulation.Configuration(workers: 1)
      configuration.policy = .exhaustive(preemptions: 2)
      let explored = try Simulation.explore(schedules: 100_000, configuration) {
        let once = FiberOnce<Int>()
        let fibers = (0..<2).map { _ in Fiber { try once.get { 7 } } }
        for fiber in fibers { try Simulation.require(try fiber.join() == 7) }
      }
      print(explored.isComplete)
    }
    #expect(lines == ["true"])
  }

  @Test func faults() throws {
    var faulty = Simulation.Configuration()
    faulty.faults = [.unnoticed, .cancellations]
    try Simulation.explore(schedules: 100, faulty) {
      let permits = FiberSemaphore(1)
      let fibers = (0..<3).map { _ in
        Fiber { try? permits.withPermit { try Fiber.sleep(for: .milliseconds(1)) } }
      }
      for fiber in fibers { _ = fiber.join() }
      try Simulation.require(permits.availablePermits == 1, "a permit was lost")
    }
  }

  @Test(arguments: [1, 2]) func everySeedCounts(workers: Int) throws {
    try Simulation.explore(schedules: 50, .init(workers: workers)) {
      let count = FiberMutex(0)
      let fibers = (0..<3).map { _ in Fiber { count.withLock { $0 += 1 } } }
      for fiber in fibers { fiber.join() }
      try Simulation.require(count.withLock { $0 } == 3)
    }
  }
}
