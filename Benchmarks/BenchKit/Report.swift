/// What one job measured.
public struct JobResult: Equatable, Sendable {
  /// The job's name.
  public let name: String
  /// The group that it belongs to.
  public let group: String
  /// What one is counted in.
  public let unit: String
  /// What it measures.
  public let summary: String
  /// What is not in the figure.
  public let excludes: String
  /// Regression or claim.
  public let purpose: Purpose
  /// Iterations per sample.
  public let iterations: Int
  /// The figures.
  public let statistics: Summary
}

/// Whether a goal is met.
public enum Verdict: String, Sendable {
  /// By the median and by the minima.
  case met
  /// By neither.
  case missed
  /// By one of them: the machine was too busy to tell.
  case unclear
}

/// What one relation came to.
public struct RelationResult: Equatable, Sendable {
  /// The relation's name.
  public let name: String
  /// How it is computed.
  public let formula: String
  /// `×` or a unit.
  public let unit: String
  /// What it is meant to be.
  public let goal: Goal?
  /// The median of the rounds: the figure.
  public let median: Double
  /// The same computed from each job's minimum: the figure of a quiet machine.
  public let ofMinima: Double

  /// Whether the goal is met, or nil where there is none.
  public var verdict: Verdict? {
    goal.map { goal in
      switch (goal.isMet(by: median), goal.isMet(by: ofMinima)) {
      case (true, true): .met
      case (false, false): .missed
      default: .unclear
      }
    }
  }
}

/// The kind of machine and build that a report comes from: figures of another kind are no baseline.
public struct Machine: Equatable, Sendable {
  /// `linux`, `macos`.
  public let system: String
  /// `x86_64`, `aarch64`.
  public let architecture: String
  /// The processor's model, as the system names it.
  public let processor: String
  /// How many processors the system has.
  public let processors: Int
  /// `release` or `debug`.
  public let build: String

  /// A machine.
  public init(
    system: String, architecture: String, processor: String, processors: Int, build: String
  ) {
    self.system = system
    self.architecture = architecture
    self.processor = processor
    self.processors = processors
    self.build = build
  }
}

/// All that a run found out.
public struct Report: Equatable, Sendable {
  /// Grows when a reader of an older report could misread a newer one.
  public static let schema = "weft-bench/1"

  /// The version of weft-bench.
  public let version: String
  /// Where it ran.
  public let machine: Machine
  /// How it sampled.
  public let settings: Settings
  /// Every job that ran.
  public let jobs: [JobResult]
  /// Every relation whose jobs all ran.
  public let relations: [RelationResult]

  /// A report.
  public init(
    version: String, machine: Machine, settings: Settings, jobs: [JobResult],
    relations: [RelationResult]
  ) {
    self.version = version
    self.machine = machine
    self.settings = settings
    self.jobs = jobs
    self.relations = relations
  }
}
