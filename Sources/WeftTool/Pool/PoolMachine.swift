// PoolMachine.swift - the pool as a program to step: choices, replay, and what may be asked.

/// A pool that stands still between two steps.
final class PoolMachine: Steppable {
  let plan: PoolPlan
  let workers: Int
  private(set) var model: PoolModel
  /// What was done since the beginning: a replay does it again.
  private var history: [PoolChoice] = []

  /// Most that can be stepped through: going back replays from the start.
  static let stepsMax = 10_000
  static let workersMax = 16
  static let fibersMax = 99

  init(_ plan: PoolPlan, workers: Int) throws {
    self.plan = plan
    self.workers = workers
    model = try PoolModel(plan, workers: workers)
  }

  var step: Int { history.count + 1 }
  var isAtEnd: Bool { model.result != nil }
  var unit: String { "step" }
  var output: [String] { model.result.map { ["sum: \($0)"] } ?? [] }
  var isCorrect: Bool { model.result == plan.expected }

  func advance() throws {
    if let choice = model.natural { try perform(choice) }
  }

  func go(to target: Int) throws {
    if target < step {
      let kept = history.prefix(max(0, target - 1))
      history = []
      model = try PoolModel(plan, workers: workers)
      for choice in kept { try perform(choice) }
    }
    while step < target, !isAtEnd { try advance() }
  }

  private func perform(_ choice: PoolChoice) throws {
    switch choice {
    case .run(let fiber): try model.run(fiber)
    case .steal(let worker): model.steal(worker)
    }
    history.append(choice)
  }

  // MARK: - Choosing

  var choiceMax: Int? { plan.fibers }

  var ownKeys: [KeyLegend] {
    [
      KeyLegend(
        label: "0-9", word: "fiber",
        meaning: "the fiber of that number goes next, wherever it waits (0: main)"),
      KeyLegend(
        label: "s", word: "steal",
        meaning: "the next idle worker steals half of another's queue, or a lone fiber"),
    ]
  }

  func handleOwn(_ key: StepKey) throws -> String? {
    if isAtEnd { return "All fibers have ended; b goes back." }
    switch key {
    case .choose(let fiber):
      if let reason = whyNot(fiber) { return reason }
      try perform(.run(fiber))
    case .steal:
      guard let thief = model.idleWorker else {
        return workers == 1 ? "There is nobody to steal from." : "No worker is idle."
      }
      guard model.victim(of: thief, evenLone: true) != nil else {
        return "Worker \(thief) is idle, but no queue has a fiber that may be stolen."
      }
      try perform(.steal(thief))
    default: break
    }
    return nil
  }

  /// Why a fiber cannot go next, nil if it can.
  private func whyNot(_ fiber: Int) -> String? {
    let name = PoolMachine.name(fiber)
    guard fiber <= plan.fibers else { return "There is no fiber \(fiber)." }
    guard fiber < model.fibers.count else { return "Main has not started \(name) yet." }
    switch model.fibers[fiber].state {
    case .ended: return "\(name.capitalizedFirst) has ended."
    case .joining(let other): return "Main waits for the end of \(PoolMachine.name(other))."
    case .fresh, .ready: break
    }
    guard let worker = model.place(of: fiber), model.runnable(on: worker).contains(fiber) else {
      return "\(name.capitalizedFirst) is in the queue of worker 0, which main holds until it "
        + "waits."
    }
    return nil
  }

  static func name(_ fiber: Int) -> String { fiber == 0 ? "main" : "fiber \(fiber)" }

  // MARK: - Showing

  private func view(_ glyphs: Glyphs, _ size: ScreenSize) -> PoolView {
    PoolView(machine: self, glyphs: glyphs, size: size)
  }

  func lines(glyphs: Glyphs, size: ScreenSize, footer: StyledLine?) -> [StyledLine] {
    view(glyphs, size).lines(footer: footer)
  }

  var json: JSON { view(.unicode, .plain).json }

  var helpParagraphs: [String] {
    [
      "You are the scheduler. The stepper runs the same bodies as the demo does, but as coroutines "
        + "that it drives by hand in one thread, so that a step is the same every time and you can "
        + "choose. Its run queues are a small model that follows the real rules.",
      "Enter takes what the scheduler would: workers in turn, each the head of its queue, or a "
        + "fiber that a join lets go past the queue. A yield sends a fiber to the tail. An idle "
        + "worker steals half of a queue, from the head, but leaves a lone fiber alone for some "
        + "microseconds. Real workers run at the same time, and a thief starts to look at a "
        + "random one.",
    ]
  }
}

extension String {
  var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}

extension PoolDemo {
  /// What is stepped through without options.
  static let small = PoolPlan(upto: 12, fibers: 4)

  static func step(_ invocation: Invocation, workers: Int?) throws -> ExitCode {
    let plan = try plan(invocation, default: small, fibersMax: fibersMax)
    let count = workers ?? 2
    guard plan.fibers <= PoolMachine.fibersMax, count <= PoolMachine.workersMax else {
      throw ToolError.usage(
        "--step: \(grouped(plan.fibers)) fibers on \(grouped(count)) workers are too many to watch",
        remedy: "Step through at most \(PoolMachine.fibersMax) fibers on "
          + "\(PoolMachine.workersMax) workers, or leave out --step.")
    }
    // An addition each, a spawn and a join for each fiber.
    let steps = plan.upto + 2 * Int64(plan.fibers)
    guard steps <= Int64(PoolMachine.stepsMax) else {
      throw ToolError.usage(
        "--step: some \(grouped(Int(steps))) steps are too many to walk through",
        remedy: "Step through at most \(grouped(PoolMachine.stepsMax)), or leave out --step.")
    }
    let machine = try PoolMachine(plan, workers: count)
    let code = try StepCommand(machine, invocation.console, json: invocation.has("json"))
      .run(isScripted: true)
    if machine.isAtEnd, !machine.isCorrect {
      throw ToolError.check("pool: N(N+1)/2 is \(plan.expected), but the steps made another sum")
    }
    return code
  }
}
