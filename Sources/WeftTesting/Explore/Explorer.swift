import CWeft
import WeftRuntime

/// Runs one body under one schedule after the other.
struct Explorer {
  private let configuration: Simulation.Configuration
  private let seed: UInt64
  private let place: (fileID: StaticString, line: UInt)
  private let body: () throws -> Void

  init(
    _ configuration: Simulation.Configuration, seed: UInt64,
    place: (fileID: StaticString, line: UInt), _ body: @escaping () throws -> Void
  ) {
    self.configuration = configuration
    self.seed = seed
    self.place = place
    self.body = body
  }

  // MARK: - One run

  /// How one run went.
  struct Outcome {
    let failure: SimulationFailure.Kind?
    let decisions: [Decision]
    let choices: Int
    let timeline: String
  }

  /// - Parameters:
  ///   - forced: what is done at the first `free` places; the policy decides from there on.
  private func run(
    seed: UInt64, _ policy: RunPolicy, forced: [Int: UInt32] = [:], free: Int = 0,
    traces: Bool = false
  ) -> Outcome {
    let decider = Decider(seed: seed, policy: policy, forced: forced, free: free)
    let machine = Machine(configuration, decider: decider, traces: traces)
    var scheduler = Scheduler.Configuration(workers: configuration.workers)
    scheduler.stackSize = configuration.stackSize
    scheduler.mainStackSize = .mebibytes(1)
    scheduler.watchdog = false
    scheduler.seed = seed
    machine.run {
      Scheduler.run(scheduler, fileID: place.fileID, line: place.line) {
        machine.begin()
        do {
          try body()
          machine.end(nil)
        } catch {
          machine.end(error)
        }
      }
    }
    if machine.isAbandoned { Abandoned.keep(machine) }
    return Outcome(
      failure: machine.failure, decisions: machine.decider.made, choices: machine.choices,
      timeline: machine.timeline?.text() ?? "")
  }

  /// The policy that a seed's run has.
  private func policy(_ seed: UInt64) -> RunPolicy {
    switch configuration.policy {
    case .roundRobin, .exhaustive: return .first
    case .random: return .random(interruptions: Explorer.interruptions(seed))
    case .priorities(let depth): return .priorities(depth: depth)
    case .mixed:
      if seed % 2 == 0 { return .random(interruptions: Explorer.interruptions(seed)) }
      return .priorities(depth: 1 + Int(seed / 2 % 4))
    }
  }

  private static func interruptions(_ seed: UInt64) -> Int { [128, 48, 16, 4][Int(seed / 2 % 4)] }

  // MARK: - The entrances

  func runOnce() -> SimulationFailure? {
    let outcome = run(seed: seed, policy(seed))
    guard let kind = outcome.failure else { return nil }
    return failure(kind, seed, outcome.decisions)
  }

  func replay(_ schedule: Simulation.Schedule) -> SimulationFailure? {
    let outcome = run(seed: schedule.seed, .first, forced: schedule.choices, free: .max)
    guard let kind = outcome.failure else { return nil }
    return failure(kind, schedule.seed, outcome.decisions)
  }

  /// Runs it once more, to see what happens when.
  private func failure(
    _ kind: SimulationFailure.Kind, _ seed: UInt64, _ decisions: [Decision]
  ) -> SimulationFailure {
    let schedule = Simulation.Schedule(seed: seed, decisions: decisions)
    let outcome = run(
      seed: seed, .first, forced: schedule.choices, free: .max, traces: true)
    let isSame = outcome.failure?.name == kind.name
    return SimulationFailure(
      kind: isSame ? outcome.failure ?? kind : kind, seed: seed, schedule: schedule,
      timeline: isSame
        ? outcome.timeline
        : "  (done again it ended otherwise: something besides the schedule decides, too)")
  }

  func explore(_ schedules: Int) throws(SimulationFailure) -> Simulation.Exploration {
    if case .exhaustive(let preemptions) = configuration.policy {
      return try exploreAll(schedules, preemptions)
    }
    let schedules = max(schedules, 0)
    var choices = 0
    for index in 0..<UInt64(schedules) {
      let seed = seed &+ index
      let outcome = run(seed: seed, policy(seed))
      choices += outcome.choices
      if let kind = outcome.failure { throw shrunk(kind, seed, outcome.decisions) }
    }
    return Simulation.Exploration(schedules: schedules, isComplete: false, choices: choices)
  }

  // MARK: - All schedules

  /// Depth first: the last choice that has an alternative within the bound takes the next one.
  private func exploreAll(
    _ schedules: Int, _ preemptions: Int
  ) throws(SimulationFailure) -> Simulation.Exploration {
    var forced: [UInt32] = []
    var (count, choices) = (0, 0)
    while count < schedules {
      let outcome = run(
        seed: seed, .first, forced: Explorer.places(forced), free: forced.count)
      count += 1
      choices += outcome.choices
      if let kind = outcome.failure { throw shrunk(kind, seed, outcome.decisions) }
      guard let next = Explorer.nextSchedule(after: outcome.decisions, preemptions) else {
        return Simulation.Exploration(schedules: count, isComplete: true, choices: choices)
      }
      forced = next
    }
    return Simulation.Exploration(schedules: count, isComplete: false, choices: choices)
  }

  private static func places(_ choices: [UInt32]) -> [Int: UInt32] {
    Dictionary(
      uniqueKeysWithValues: choices.enumerated().filter { $1 != 0 }.map { ($0, $1) })
  }

  static func nextSchedule(after decisions: [Decision], _ preemptions: Int) -> [UInt32]? {
    // Interruptions before each place.
    var spent = decisions.reduce(0) { $0 + ($1.costs && $1.chosen != 0 ? 1 : 0) }
    for place in decisions.indices.reversed() {
      let decision = decisions[place]
      if decision.costs && decision.chosen != 0 { spent -= 1 }
      let isAffordable = !decision.costs || spent < preemptions
      if decision.chosen + 1 < decision.count && isAffordable {
        return decisions[..<place].map(\.chosen) + [decision.chosen + 1]
      }
    }
    return nil
  }

  // MARK: - Shorter schedules

  /// The same failure with as few choices that are not the first one as a bounded search finds.
  private func shrunk(
    _ kind: SimulationFailure.Kind, _ seed: UInt64, _ decisions: [Decision]
  ) -> SimulationFailure {
    var kept = Simulation.Schedule(seed: seed, decisions: decisions).choices
    var best = decisions
    var runs = 0
    // Delta debugging: without a part of them, then without smaller parts.
    var size = max(1, kept.count / 2)
    while runs < configuration.shrinksMost && !kept.isEmpty {
      var isShorter = false
      let places = kept.keys.sorted()
      for start in stride(from: 0, to: places.count, by: size) {
        if runs == configuration.shrinksMost { break }
        let part = Set(places[start..<min(start + size, places.count)])
        let rest = kept.filter { !part.contains($0.key) }
        if rest.count == kept.count { continue }
        runs += 1
        let outcome = run(seed: seed, .first, forced: rest, free: .max)
        guard outcome.failure?.name == kind.name else { continue }
        best = outcome.decisions
        kept = Simulation.Schedule(seed: seed, decisions: best).choices
        isShorter = true
      }
      if size == 1 && !isShorter { break }
      size = max(1, isShorter ? min(size, max(1, kept.count / 2)) : size / 2)
    }
    return failure(kind, seed, best)
  }
}
