/// What a figure is meant to be.
public enum Goal: Equatable, Sendable {
  /// Not more than this.
  case atMost(Double)
  /// Not less than this.
  case atLeast(Double)

  /// Whether a figure meets the goal. One that is not a number never does.
  public func isMet(by value: Double) -> Bool {
    switch self {
    case .atMost(let limit): value <= limit
    case .atLeast(let limit): value >= limit
    }
  }

  /// `≤ 2.2` or `≥ 8`.
  public var text: String {
    switch self {
    case .atMost(let limit): "≤ \(compact(limit))"
    case .atLeast(let limit): "≥ \(compact(limit))"
    }
  }
}

/// A figure computed from several jobs of one group: mostly a ratio.
///
/// It is computed once per round from the samples of that round, and the median of these is
/// reported. On a machine whose speed drifts, that holds where a quotient of two medians does not.
/// Computed from the minima as well, it says what an undisturbed machine would show.
public struct Relation: Sendable {
  /// Its name, dotted.
  public let name: String
  /// How it is computed, for the reader: `switch.textbook / switch.inline`.
  public let formula: String
  /// `×` for a ratio, else a unit.
  public let unit: String
  /// What it is meant to be, if anything.
  public let goal: Goal?
  /// The jobs that it needs.
  public let jobs: [String]
  /// Computes it from one sample of each of `jobs`, in that order.
  public let compute: @Sendable ([Double]) -> Double

  /// A relation of its own kind.
  public init(
    _ name: String, _ formula: String, unit: String, goal: Goal? = nil, jobs: [String],
    compute: @escaping @Sendable ([Double]) -> Double
  ) {
    self.name = name
    self.formula = formula
    self.unit = unit
    self.goal = goal
    self.jobs = jobs
    self.compute = compute
  }

  /// `numerator / (times × denominator)`.
  public static func ratio(
    _ name: String, _ numerator: String, over denominator: String, times: Double = 1,
    goal: Goal? = nil
  ) -> Relation {
    let below = times == 1 ? denominator : "(\(compact(times)) × \(denominator))"
    return Relation(
      name, "\(numerator) / \(below)", unit: "×", goal: goal, jobs: [numerator, denominator]
    ) { $0[0] / (times * $0[1]) }
  }

  /// A figure of one job that has a goal itself.
  public static func figure(_ job: String, unit: String, goal: Goal) -> Relation {
    Relation(job, job, unit: unit, goal: goal, jobs: [job]) { $0[0] }
  }

  /// Computes the relation for each round in which all its jobs have a sample.
  public func evaluate(_ samples: [String: [Double]]) -> RelationResult? {
    let columns = jobs.compactMap { samples[$0] }
    guard columns.count == jobs.count, let rounds = columns.map(\.count).min() else { return nil }
    let values = (0..<rounds).map { round in compute(columns.map { $0[round] }) }
    guard let summary = Summary(values) else { return nil }
    let minima = columns.compactMap { $0.filter(\.isFinite).min() }
    return RelationResult(
      name: name, formula: formula, unit: unit, goal: goal, median: summary.median,
      ofMinima: compute(minima))
  }
}
