// Guards against simulations that a user's mistake makes hang, crash without a word, or disturb
// what is no part of them.

import Testing
import Weft
import WeftScenarios
import WeftTestSupport
import WeftTesting

/// Three fibers that count under a lock.
private func simulateALock(schedules: Int, seed: UInt64) throws {
  try Simulation.explore(schedules: schedules, seed: seed) {
    let lock = FiberMutex(0)
    let fibers = (0..<3).map { _ in Fiber { lock.withLock { $0 += 1 } } }
    for fiber in fibers { fiber.join() }
    try Simulation.require(lock.withLock { $0 } == 3)
  }
}

@Suite struct HostileTests {
  private struct Oops: Error {}

  private func refusal(_ body: () throws -> Void) -> String? {
    guard let failure = #expect(throws: SimulationFailure.self, performing: body),
      case .refused(let text) = failure.kind
    else { return nil }
    return text
  }

  // MARK: - What can't be run

  @Test func aSimulationInsideOfOneIsRefused() throws {
    try Simulation.run(seed: 1) {
      for text in [
        self.refusal { try Simulation.run(seed: 2) {} },
        self.refusal { try Simulation.explore(schedules: 2) {} },
        self.refusal { try Simulation.replay("1") {} },
      ] {
        try Simulation.require(text?.contains("inside of another") == true)
      }
      // And this one goes on.
      try Simulation.require(Fiber { 7 }.join() == 7)
    }
    #expect(!Simulation.isRunning)
  }

  @Test(arguments: [0, -1, 257]) func soManyWorkersAreRefused(workers: Int) {
    let text = refusal { try Simulation.run(seed: 1, .init(workers: workers)) {} }
    #expect(text == "workers is \(workers); 1 to 256 are possible")
  }

  @Test(arguments: [0, -1, 4_096]) func suchAStackIsRefused(bytes: Int) {
    var configuration = Simulation.Configuration()
    configuration.stackSize = .bytes(bytes)
    let text = refusal { try Simulation.run(seed: 1, configuration) {} }
    #expect(text?.contains("sizes from 16 KiB") == true)
  }

  @Test func noSchedulesAreNone() throws {
    for schedules in [0, -5] {
      #expect(try Simulation.explore(schedules: schedules) { throw Oops() }.schedules == 0)
    }
  }

  // MARK: - Extremes

  /// Idle workers once kept each other awake for ever.
  @Test(arguments: [8, 16, 64]) func manyWorkersCome(workers: Int) throws {
    var configuration = Simulation.Configuration(workers: workers)
    configuration.stepsMost = 400_000
    try Simulation.explore(schedules: 5, configuration) {
      let fibers = (0..<3).map { index in Fiber { index } }
      try Simulation.require(fibers.reduce(0) { $0 + $1.join() } == 3)
      try Fiber.sleep(for: .milliseconds(1))
    }
  }

  /// As many places as there can be once were frames of a recursion, and tries without end.
  @Test(arguments: [Int.min, 0, 100_000, .max]) func anyDepthWill(depth: Int) throws {
    var configuration = Simulation.Configuration()
    configuration.policy = .priorities(depth: depth)
    try Simulation.explore(schedules: 2, configuration) {
      let fibers = (0..<100).map { _ in Fiber { for _ in 0..<10 { Fiber.yield() } } }
      for fiber in fibers { fiber.join() }
    }
  }

  /// By priorities, two that wait in loops once kept a third from running for ever.
  @Test(arguments: [1, 2, 3]) func thoseThatYieldStarveNobody(workers: Int) throws {
    var configuration = Simulation.Configuration(workers: workers)
    configuration.stepsMost = 20_000
    try Simulation.explore(schedules: 200, configuration) {
      let isSet = Shared(false)
      let loops = (0..<2).map { _ in Fiber { while !isSet.value { Fiber.yield() } } }
      let setter = Fiber { isSet.value = true }
      for loop in loops { loop.join() }
      setter.join()
    }
  }

  @Test func theSmallestStacksWillDo() throws {
    var configuration = Simulation.Configuration()
    configuration.stackSize = .kibibytes(16)
    let failure = #expect(throws: SimulationFailure.self) {
      try Simulation.explore(schedules: 50, configuration) {
        let channel = Channel<Int>()
        _ = try Fiber(name: "waits") { try channel.receive() }.join()
      }
    }
    #expect(failure?.timeline.contains("\"waits\" waits for an element") == true)
  }

  /// A timeline of years has its columns all the same.
  @Test func longTimesHaveRoom() throws {
    let failure = #expect(throws: SimulationFailure.self) {
      try Simulation.run(seed: 1, .init(workers: 1)) {
        try Fiber.sleep(for: .milliseconds(100_000_000_123))
        throw Oops()
      }
    }
    let lines = failure?.timeline.split(separator: "\n") ?? []
    let last = try #require(lines.last { $0.contains("runs") })
    #expect(last.contains("100000000.123 s  fiber"))
    let column = try #require(lines.first?.firstRange(of: "thread 0")).lowerBound
    let event = try #require(last.firstRange(of: "fiber")).lowerBound
    let (head, line) = (lines[0], last)
    #expect(
      head.distance(from: head.startIndex, to: column)
        == line.distance(from: line.startIndex, to: event))
  }

  /// Not even past the bound of what busy waiting adds.
  @Test func timeNeverGoesBack() throws {
    try Simulation.run(seed: 1, .init(workers: 1)) {
      try Fiber.sleep(for: .seconds(10_000_000_000))
      let before = Fiber.now
      for _ in 0..<2_000 { Fiber.yield() }
      try Simulation.require(Fiber.now >= before)
    }
  }

  // MARK: - What is no part of it

  /// Its threads were once simulated, and gone with the simulation that used it first.
  @Test func theSharedSchedulerIsNotSimulated() async {
    await #expect(processExitsWith: .success) {
      try Simulation.explore(schedules: 5) { _ = Scheduler.shared.statistics }
      let done = Box(false)
      Fiber { done.value = true }.join()
      #expect(done.value)
    }
  }

  /// Fibers of plain threads belong to the run's scheduler, whatever others have come and gone.
  @Test func anotherSchedulerComesAndGoes() throws {
    try Simulation.explore(schedules: 20) {
      let turn = FiberSemaphore(0)
      let sum = Shared(0)
      try Simulation.thread {
        sum.value += Scheduler.run(.init(workers: 2)) { Fiber { 1 }.join() }
        turn.signal()
      }
      try turn.wait()
      try Simulation.thread {
        sum.value += Fiber { 2 }.join()
        turn.signal()
      }
      try turn.wait()
      try Simulation.require(sum.value == 3)
    }
  }

  /// Real schedulers, and simulations in their fibers, side by side.
  @Test func realSchedulersGoOn() throws {
    let stops = Box(false)
    let rounds = Counter()
    let other = try Simulation.thread {
      Scheduler.run(.init(workers: 2)) {
        while !stops.value {
          let channel = Channel<Int>(capacity: 1)
          let fiber = Fiber { try? channel.send(1) }
          _ = try? channel.receive()
          fiber.join()
          _ = try? blocking { rounds.add() }
        }
      }
    }
    defer { other.join() }
    defer { stops.value = true }
    for seed in 0..<UInt64(scaled(100)) {
      _ = try Scheduler.run(.init(workers: 2)) {
        try Fiber { try simulateALock(schedules: 3, seed: seed) }.join()
      }
    }
    waitUntil { rounds.value > 0 }
  }

  /// The watchdog of a real scheduler stops the thread wherever a simulation on one of its fibers
  /// is: its handler must not enter the simulation again.
  @Test func aWatchdogMayInterruptASimulation() async {
    await #expect(processExitsWith: .success) {
      var configuration = Scheduler.Configuration(workers: 1)
      configuration.watchdog = true
      configuration.watchdogLimit = .milliseconds(1)
      try Scheduler.run(configuration) {
        for round in 0..<UInt64(scaled(200)) {
          try Fiber { try simulateALock(schedules: 40, seed: round) }.join()
        }
      }
    }
  }

  /// The report must know the thread: it reads what stands at the top of the stack.
  @Test func anOverflowOnAThreadIsNamed() async throws {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      try Simulation.run(seed: 1) { try blocking { _ = endless(0) } }
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    if sanitizer == nil { #expect(text.contains("stack overflow in \"a simulated thread")) }
  }
}

/// Recursion without end, in frames of some kilobytes, that no optimiser turns into a loop.
@inline(never) @_optimize(none)
private func endless(_ n: Int) -> Int {
  var frame = InlineArray<512, Int>(repeating: n)
  frame[n & 511] = n < 0 ? 0 : endless(n &+ 1)
  return frame[0] &+ frame[511]
}
