/// Why a job exists.
public enum Purpose: String, Sendable {
  /// It guards against getting slower.
  case regression
  /// It supports a claim that the documentation makes.
  case claim
}

/// A result that was not what the job had to compute.
public struct CheckFailure: Error, CustomStringConvertible, Sendable {
  /// What went wrong, in one sentence.
  public let description: String

  /// A failure with a sentence to print.
  public init(_ description: String) { self.description = description }
}

/// Thrown by a job that can't be done on this machine. The run goes on and says so.
public struct Skipped: Error, CustomStringConvertible, Sendable {
  /// Why.
  public let description: String

  /// A reason to print.
  public init(_ description: String) { self.description = description }
}

/// Throws unless the job computed what it had to: a benchmark whose work was optimised away or
/// went wrong must not report a time.
public func check<Value: Equatable>(_ got: Value, is expected: Value) throws {
  guard got == expected else {
    throw CheckFailure("got \(got) where \(expected) was to come out")
  }
}

/// One thing to measure.
public struct Job: Sendable {
  /// How a sample is taken.
  public enum Method: Sendable {
    /// Runs so many iterations and returns the nanoseconds that they took.
    case timed(@Sendable (_ iterations: Int) throws -> Double)
    /// Measures something else, or something that can be done only so many times.
    case gauge(samples: Int, @Sendable () throws -> Double)
  }

  /// Its name, dotted: `switch.inline`.
  public let name: String
  /// What it measures, in one sentence.
  public let summary: String
  /// What one is counted in: `ns/switch`.
  public let unit: String
  /// What is not in the figure.
  public let excludes: String
  /// Regression or claim.
  public let purpose: Purpose
  /// How many of `unit` one iteration is, for a timed job.
  public let perIteration: Double
  /// How a sample is taken.
  public let method: Method

  /// A job with a method of its own.
  public init(
    _ name: String, _ summary: String, unit: String, excludes: String, purpose: Purpose,
    perIteration: Double = 1, method: Method
  ) {
    self.name = name
    self.summary = summary
    self.unit = unit
    self.excludes = excludes
    self.purpose = purpose
    self.perIteration = perIteration
    self.method = method
  }

  /// A job whose body is timed by the harness.
  public init(
    _ name: String, _ summary: String, unit: String, excludes: String, purpose: Purpose,
    perIteration: Double = 1, body: @escaping @Sendable (_ iterations: Int) throws -> Void
  ) {
    self.init(
      name, summary, unit: unit, excludes: excludes, purpose: purpose, perIteration: perIteration,
      method: .timed { iterations in
        try Stopwatch.nanoseconds { try body(iterations) }
      })
  }
}

/// Measures elapsed time on the monotonic clock.
public enum Stopwatch {
  /// How long `body` takes, in nanoseconds.
  public static func nanoseconds(_ body: () throws -> Void) rethrows -> Double {
    let start = SuspendingClock.now
    try body()
    return nanoseconds(since: start)
  }

  /// How long ago `start` was, in nanoseconds.
  public static func nanoseconds(since start: SuspendingClock.Instant) -> Double {
    let (seconds, attoseconds) = start.duration(to: .now).components
    return Double(seconds) * 1e9 + Double(attoseconds) * 1e-9
  }
}

/// Jobs whose samples are interleaved, so that what disturbs one disturbs the others too.
public struct Group: Sendable {
  /// Its name.
  public let name: String
  /// The jobs that belong to it.
  public let jobs: [Job]
  /// Names of jobs of other groups that run along here, for the relations.
  public let references: [String]
  /// What is compared within the group.
  public let relations: [Relation]

  /// A group.
  public init(
    _ name: String, references: [String] = [], jobs: [Job], relations: [Relation] = []
  ) {
    self.name = name
    self.references = references
    self.jobs = jobs
    self.relations = relations
  }
}
