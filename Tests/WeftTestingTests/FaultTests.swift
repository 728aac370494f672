// Guards against faults that never happen, or that the simulation itself trips over.

import Testing
import Weft
import WeftScenarios
import WeftTesting

@Suite struct FaultTests {
  /// How often a body said yes in so many schedules.
  private func count(
    _ faults: Simulation.Faults, workers: Int = 2, schedules: Int = 100,
    _ body: @escaping () throws -> Bool
  ) throws -> Int {
    var configuration = Simulation.Configuration(workers: workers)
    configuration.faults = faults
    configuration.faultPercent = 20
    let seen = Shared(0)
    try Simulation.explore(schedules: schedules, configuration) {
      if try body() { seen.value += 1 }
    }
    return seen.value
  }

  private func coroutineIsRefused() throws -> Bool {
    do {
      _ = try Coroutine<Void, Int, Void> { _, _ in }
    } catch {
      return true
    }
    return false
  }

  @Test func noStack() throws {
    let refused = try count(.noStack, coroutineIsRefused)
    #expect(refused > 0 && refused < 100)
    #expect(try count([], coroutineIsRefused) == 0)
  }

  @Test func noStackForFibers() throws {
    _ = try count(.noStack) {
      let fibers = (0..<5).map { index in Fiber { index } }
      return fibers.reduce(0) { $0 + $1.join() } == 10
    }
  }

  /// Where no thread can be had, the worker makes the call itself.
  @Test func noThread() throws {
    let alone = try count(.noThread) {
      let start = Fiber.current
      return try blocking { Fiber.current == start }
    }
    #expect(alone > 0 && alone < 100)
  }

  private func isCancelled() throws -> Bool {
    let fiber = Fiber { () -> Bool in
      do { try Fiber.sleep(for: .milliseconds(1)) } catch { return true }
      return false
    }
    return fiber.join()
  }

  @Test func cancellations() throws {
    let cancelled = try count(.cancellations, isCancelled)
    #expect(cancelled > 0 && cancelled < 100)
    #expect(try count([], isCancelled) == 0)
  }

  private func timeIsUpEarly() throws -> Bool {
    let channel = Channel<Int>()
    let sender = Fiber { () throws -> Bool in
      for _ in 0..<10 { Fiber.yield() }
      return try channel.sendIfAvailable(1)
    }
    let got = try? withTimeout(.milliseconds(1)) { try channel.receive() }
    return try sender.join() != (got != nil) || got == nil
  }

  /// Time that nothing takes passes all the same.
  @Test func clockJumps() throws {
    let early = try count(.clockJumps, timeIsUpEarly)
    #expect(early > 0 && early < 100)
    #expect(try count([], timeIsUpEarly) == 0)
  }

  private func orderIsTurned() throws -> Bool {
    let order = Shared([Int]())
    let first = Fiber(placement: .worker(0)) { order.value.append(0) }
    let second = Fiber(placement: .worker(1)) { order.value.append(1) }
    try Fiber.sleep(for: .milliseconds(1))
    first.join()
    second.join()
    return order.value == [1, 0]
  }

  @Test func slowAndLateWorkersChangeTheOrder() throws {
    for fault in [Simulation.Faults.slowWorkers, .delayedWakes] {
      let turned = try count(fault, orderIsTurned)
      #expect(turned > 0 && turned < 100, "\(fault)")
    }
  }

  @Test func spuriousWakesAreNotNoticed() throws {
    let all = try count(.spuriousWakes) {
      let fibers = (0..<3).map { index in
        Fiber {
          try Fiber.sleep(for: .milliseconds(index))
          return index
        }
      }
      return try fibers.reduce(0) { try $0 + $1.join() } == 3
    }
    #expect(all == 100)
  }

  /// A failure that takes a fault is replayed with it.
  @Test func faultsAreReplayed() throws {
    var configuration = Simulation.Configuration()
    configuration.faults = .cancellations
    let body = {
      let fiber = Fiber { try Fiber.sleep(for: .milliseconds(1)) }
      try fiber.join()
    }
    let failure = #expect(throws: SimulationFailure.self) {
      try Simulation.explore(schedules: 500, configuration, body)
    }
    guard let failure else { return }
    #expect(failure.schedule.description.split(separator: " ").count <= 6)
    #expect(throws: SimulationFailure.self) {
      try Simulation.replay(failure.schedule.description, configuration, body)
    }
  }

  /// Every schedule with one fault.
  @Test func faultsAreExhausted() throws {
    var configuration = Simulation.Configuration(workers: 1)
    configuration.faults = .cancellations
    configuration.policy = .exhaustive(preemptions: 1)
    let seen = Shared(Set<[Bool]>())
    let result = try Simulation.explore(schedules: 10_000, configuration) {
      let fibers = (0..<2).map { _ in
        Fiber { () -> Bool in (try? Fiber.sleep(for: .milliseconds(1))) == nil }
      }
      seen.value.insert(fibers.map { $0.join() })
    }
    #expect(result.isComplete)
    #expect(seen.value == [[false, false], [true, false], [false, true]])
  }
}
