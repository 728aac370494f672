// Guards against a simulation that misses what it should find, or finds what is not there.

import Testing
import Weft
import WeftTestSupport
import WeftTesting

@Suite struct SimulationTests {
  @Test(arguments: [1, 2, 3]) func runsAProgram(workers: Int) throws {
    let sum = try Simulation.run(seed: 42, .init(workers: workers)) {
      let fibers = (0..<10).map { i in Fiber { i * i } }
      return fibers.reduce(0) { $0 + $1.join() }
    }
    #expect(sum == 285)
  }

  @Test(arguments: [1, 2]) func timeJumps(workers: Int) throws {
    let clock = ContinuousClock()
    let took = try clock.measure {
      try Simulation.run(seed: 1, .init(workers: workers)) {
        let before = Fiber.now
        try Fiber.sleep(for: .seconds(3_600))
        try Simulation.require(Fiber.now - before >= .seconds(3_600))
        try Simulation.require(Fiber.now - before < .seconds(3_601))
      }
    }
    #expect(took < .seconds(60))
  }

  @Test(arguments: [1, 2]) func channelsWork(workers: Int) throws {
    try Simulation.explore(schedules: 200, .init(workers: workers)) {
      let channel = Channel<Int>(capacity: 2)
      let sender = Fiber {
        for i in 0..<5 { try channel.send(i) }
        channel.close()
      }
      var got: [Int] = []
      while let element = try channel.receive() { got.append(element) }
      try sender.join()
      try Simulation.require(got == [0, 1, 2, 3, 4])
    }
  }

  @Test(arguments: [1, 2]) func aDeadlockIsNamed(workers: Int) throws {
    let failure = #expect(throws: SimulationFailure.self) {
      try Simulation.run(seed: 3, .init(workers: workers)) {
        let channel = Channel<Int>()
        let fiber = Fiber(name: "waits") { try channel.receive() }
        _ = try fiber.join()
      }
    }
    print(failure!)
    guard case .deadlock(let fibers) = failure?.kind else {
      Issue.record("\(failure!)")
      return
    }
    #expect(fibers.contains { $0.contains("waits") })
  }

  /// Two locks in two orders.
  @Test(arguments: [1, 2]) func aRareDeadlockIsFound(workers: Int) throws {
    let failure = #expect(throws: SimulationFailure.self) {
      try Simulation.explore(schedules: 1_000, .init(workers: workers)) {
        let a = FiberMutex(0)
        let b = FiberMutex(0)
        let one = Fiber(name: "ab") { a.withLock { _ in b.withLock { $0 += 1 } } }
        let two = Fiber(name: "ba") { b.withLock { _ in a.withLock { $0 += 1 } } }
        one.join()
        two.join()
      }
    }
    guard let failure else { return }
    print(failure)
    guard case .deadlock = failure.kind else {
      Issue.record("\(failure)")
      return
    }
  }

  @Test(arguments: [1, 2]) func everyScheduleIsRun(workers: Int) throws {
    var configuration = Simulation.Configuration(workers: workers)
    configuration.policy = .exhaustive(preemptions: 1)
    let result = try Simulation.explore(schedules: 20_000, configuration) {
      let fibers = (0..<2).map { i in Fiber { i } }
      for fiber in fibers { _ = fiber.join() }
    }
    print(result)
    #expect(result.isComplete)
  }
}
