// Guards against a simulation that misses what it should find, or finds what is not there.

import CWeft
import Testing
import Weft
import WeftScenarios
import WeftTesting

@testable import WeftSync

@Suite struct SimulationTests {
  @Test(arguments: [1, 2, 3]) func runsAProgram(workers: Int) throws {
    let sum = try Simulation.run(seed: 42, .init(workers: workers)) {
      let fibers = (0..<10).map { i in Fiber { i * i } }
      return fibers.reduce(0) { $0 + $1.join() }
    }
    #expect(sum == 285)
  }

  @Test func runsOneInsideATask() async throws {
    let value = try await Task { try Simulation.run(seed: 1) { Fiber { 7 }.join() } }.value
    #expect(value == 7)
  }

  @Test func runsOneInsideAFiber() throws {
    let value = try Scheduler.run(.init(workers: 2)) {
      try Fiber { try Simulation.run(seed: 1) { Fiber { 7 }.join() } }.join()
    }
    #expect(value == 7)
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

  @Test func saysWhetherItRuns() throws {
    #expect(!Simulation.isRunning)
    #expect(try Simulation.run(seed: 1) { Fiber { Simulation.isRunning }.join() })
    #expect(!Simulation.isRunning)
    // Outside of one it is nothing.
    Simulation.point()
  }

  // MARK: - What fails

  @Test(arguments: [1, 2]) func aDeadlockIsNamed(workers: Int) throws {
    let failure = try failure(.init(workers: workers)) {
      let channel = Channel<Int>()
      let fiber = Fiber(name: "waits") { try channel.receive() }
      _ = try fiber.join()
    }
    guard case .deadlock(let fibers) = failure.kind else { throw failure }
    #expect(fibers.contains { $0.contains("\"waits\"") && $0.contains("an element of a channel") })
    #expect(fibers.contains { $0.contains("\"main\"") && $0.contains("the end of fiber") })
    #expect(failure.description.contains("SimulationTests.swift"))
  }

  /// Two locks in two orders.
  @Test(arguments: [1, 2]) func aRareDeadlockIsFound(workers: Int) throws {
    let failure = try failure(.init(workers: workers), schedules: 1_000) {
      let a = FiberMutex(0)
      let b = FiberMutex(0)
      let one = Fiber(name: "ab") { a.withLock { _ in b.withLock { $0 += 1 } } }
      let two = Fiber(name: "ba") { b.withLock { _ in a.withLock { $0 += 1 } } }
      one.join()
      two.join()
    }
    guard case .deadlock(let fibers) = failure.kind else { throw failure }
    #expect(fibers.count == 3)
    // It takes one interruption, and shows both.
    #expect(failure.schedule.description.split(separator: " ").count <= 20)
    #expect(failure.timeline.contains("\"ab\" waits for a FiberMutex"))
    #expect(failure.timeline.contains("\"ba\" waits for a FiberMutex"))
  }

  /// Permits that are given behind the back of whoever waits for them, as a bug would.
  @Test func aPermitThatNobodyGetsIsALostWakeUp() throws {
    let failure = try failure(.init(workers: 1)) {
      let semaphore = FiberSemaphore(0)
      let waiter = Fiber(name: "waits") { try semaphore.wait(2) }
      // SAFETY: the semaphore is kept; one thread runs all of this.
      while unsafe semaphore.pointer.pointee.line.first == nil { Fiber.yield() }
      unsafe weft_word_bump(weft_gate_state(semaphore.pointer), 2 << 1)
      try waiter.join()
    }
    guard case .lostWakeUp(let fibers) = failure.kind else { throw failure }
    #expect(fibers.count == 1)
    #expect(fibers[0].contains("\"waits\"") && fibers[0].contains("has the permits"))
  }

  @Test func aLeftFiberIsALeak() throws {
    let body: () -> Void = { Fiber(name: "left") { try? Fiber.park() } }
    let failure = try failure(.init(), body)
    guard case .leakedFibers(let fibers) = failure.kind else { throw failure }
    #expect(fibers.count == 1 && fibers[0].contains("\"left\"") && fibers[0].contains("unpark"))
    var configuration = Simulation.Configuration()
    configuration.allowsLeftovers = true
    try Simulation.run(seed: 1, configuration, body)
  }

  /// One that only needs time to end is one too: nobody waits for it.
  @Test func aSleepingFiberIsALeak() throws {
    let failure = try failure { Fiber { try? Fiber.sleep(for: .seconds(1)) } }
    guard case .leakedFibers = failure.kind else { throw failure }
  }

  @Test func aLeftStackIsALeak() throws {
    final class Ring { var generator: Generator<Int>? }
    let kept = Shared([Ring]())
    let failure = try failure {
      let ring = Ring()
      ring.generator = Generator<Int> { yielder in
        while true { try yielder.yield(1) }
      }
      _ = ring.generator?.next()
      kept.value.append(ring)
    }
    guard case .leakedStacks(let count) = failure.kind else { throw failure }
    #expect(count == 1)
    kept.value = []
  }

  @Test func anUnjoinedErrorIsNamed() throws {
    struct Oops: Error {}
    let failure = try failure { Fiber(name: "fails") { throw Oops() } }
    guard case .unjoinedErrors(let texts) = failure.kind else { throw failure }
    #expect(texts.count == 1 && texts[0].contains("\"fails\"") && texts[0].contains("Oops"))
  }

  @Test func anErrorOfTheBodyIsKept() throws {
    struct Oops: Error, Equatable { let number: Int }
    let failure = try failure { throw Oops(number: 3) }
    guard case .threw(let error as Oops) = failure.kind else { throw failure }
    #expect(error == Oops(number: 3))
  }

  @Test(arguments: [1, 2]) func whatNeverEndsIsGivenUp(workers: Int) throws {
    var configuration = Simulation.Configuration(workers: workers)
    configuration.stepsMost = 5_000
    configuration.shrinksMost = 3
    let failure = try failure(configuration) {
      let stop = Shared(false)
      let fibers = (0..<2).map { _ in Fiber { while !stop.value { Fiber.yield() } } }
      for fiber in fibers { fiber.join() }
    }
    guard case .endless(5_000) = failure.kind else { throw failure }
  }

  @Test func aRequirementSaysWhere() throws {
    let failure = try failure { try Simulation.require(1 > 2, "one is less") }
    #expect("\(failure)".contains("SimulationTests.swift"))
    #expect("\(failure)".contains("one is less"))
  }

  // MARK: - The same again

  /// A lost update, which needs an interruption.
  private static func lostUpdate() throws {
    let count = Shared(0)
    let fibers = (0..<2).map { _ in
      Fiber {
        let old = count.value
        Simulation.point()
        count.value = old + 1
      }
    }
    for fiber in fibers { fiber.join() }
    try Simulation.require(count.value == 2, "\(count.value)")
  }

  @Test(arguments: [1, 2]) func aFailureIsReplayed(workers: Int) throws {
    let configuration = Simulation.Configuration(workers: workers)
    let failure = try failure(configuration, schedules: 1_000, Self.lostUpdate)
    let schedule = failure.schedule.description
    for _ in 0..<3 {
      let again = #expect(throws: SimulationFailure.self) {
        try Simulation.replay(schedule, configuration, Self.lostUpdate)
      }
      #expect(again?.timeline == failure.timeline)
      #expect(again?.schedule == failure.schedule)
    }
    // The seed alone does it too, the long way.
    #expect(throws: SimulationFailure.self) {
      try Simulation.run(seed: failure.seed, configuration, Self.lostUpdate)
    }
  }

  @Test func aSeedIsASchedule() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      func order() throws -> [Int] {
        try Simulation.run(seed: seed) {
          let order = Shared([Int]())
          let fibers = (0..<4).map { index in
            Fiber {
              for _ in 0..<3 {
                order.value.append(index)
                Fiber.yield()
              }
            }
          }
          for fiber in fibers { fiber.join() }
          return order.value
        }
      }
      let first = try order()
      #expect(try order() == first)
    }
  }

  @Test func seedsDiffer() throws {
    let orders = try (1...20).map { seed in
      try Simulation.run(seed: seed, .init(workers: 1)) {
        let order = Shared([Int]())
        let fibers = (0..<4).map { index in Fiber { order.value.append(index) } }
        for fiber in fibers { fiber.join() }
        return order.value
      }
    }
    #expect(Set(orders).count > 5)
  }

  @Test func aTextThatIsNoScheduleIsRefused() throws {
    for text in ["", "x", "1 2", "1 2:", "1 2:0", "1 -2:1", "1 2:1 2:2", "1 2:1:1"] {
      #expect(Simulation.Schedule(text) == nil, "\(text)")
      let failure = #expect(throws: SimulationFailure.self) { try Simulation.replay(text) {} }
      #expect(failure?.description.contains("is no schedule") == true)
    }
    for text in ["1", "42 7:1 19:2"] {
      #expect(Simulation.Schedule(text)?.description == text)
    }
  }

  private func failure(
    _ configuration: Simulation.Configuration = .init(), schedules: Int = 1,
    _ body: @escaping () throws -> Void
  ) throws -> SimulationFailure {
    do throws(SimulationFailure) {
      try Simulation.explore(schedules: schedules, configuration, body)
    } catch {
      return error
    }
    throw NoFailure()
  }

  private struct NoFailure: Error {}
}
