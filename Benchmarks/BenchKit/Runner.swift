/// How a run samples.
public struct Settings: Equatable, Sendable {
  /// Rounds, each with one sample of each job of the group.
  public var samples: Int
  /// Rounds before those, thrown away.
  public var warmUps: Int
  /// How long one sample is to take.
  public var sampleNanoseconds: Double

  /// Settings.
  public init(samples: Int = 30, warmUps: Int = 2, sampleNanoseconds: Double = 3_000_000) {
    self.samples = samples
    self.warmUps = warmUps
    self.sampleNanoseconds = sampleNanoseconds
  }

  /// For a look, not for a figure.
  public static let quick = Settings(samples: 7, warmUps: 1, sampleNanoseconds: 400_000)
}

/// Where a run is.
public struct Progress: Equatable, Sendable {
  /// The group at work.
  public let group: String
  /// The job at work.
  public let job: String
  /// The fraction of the whole run that is done, by rounds.
  public let fraction: Double
}

/// Runs groups of jobs.
public struct Runner {
  let settings: Settings
  let progress: (Progress) -> Void
  private var iterations: [String: Int] = [:]
  private var samples: [String: [Double]] = [:]
  /// The jobs that could not be done here, and why.
  public private(set) var skipped: [(name: String, reason: String)] = []

  /// A runner that tells `progress` where it is.
  public init(settings: Settings, progress: @escaping (Progress) -> Void = { _ in }) {
    self.settings = settings
    self.progress = progress
  }

  /// Runs the jobs whose names `filter` accepts. Throws what a job throws, with its name.
  public mutating func run(
    _ groups: [Group], filter: (String) -> Bool
  ) throws -> (jobs: [JobResult], relations: [RelationResult]) {
    let known = groups.flatMap(\.jobs)
    let selected = groups.map { group in
      let own = group.jobs.map(\.name).filter(filter)
      // References are there for relations: a group with no job of its own needs none.
      let references = own.isEmpty ? [] : group.references.filter(filter)
      return (references + own).compactMap { name in known.first { $0.name == name } }
    }
    let rounds = Double(max(selected.filter { !$0.isEmpty }.count, 1))
    var relations: [RelationResult] = []
    var groupsDone = 0.0
    for (group, jobs) in zip(groups, selected) where !jobs.isEmpty {
      let base = groupsDone
      let own = try run(jobs, in: group.name) { (base + $0) / rounds }
      relations += group.relations.compactMap { $0.evaluate(own) }
      groupsDone += 1
    }
    let jobs = groups.flatMap { group in
      group.jobs.compactMap { job in result(of: job, in: group.name) }
    }
    return (jobs, relations)
  }

  /// Runs one group, round by round, and returns the samples taken in it.
  private mutating func run(
    _ jobs: [Job], in group: String, fraction: (Double) -> Double
  ) throws -> [String: [Double]] {
    var own: [String: [Double]] = [:]
    for round in -settings.warmUps..<settings.samples {
      for (index, job) in jobs.enumerated() where takesPart(job, in: round) && !isSkipped(job) {
        let done =
          (Double(round + settings.warmUps) + Double(index) / Double(jobs.count))
          / Double(settings.warmUps + settings.samples)
        progress(Progress(group: group, job: job.name, fraction: fraction(done)))
        guard let sample = try sampleUnlessSkipped(job) else { continue }
        if round >= 0 { own[job.name, default: []].append(sample) }
      }
    }
    for (name, values) in own { samples[name, default: []] += values }
    return own
  }

  /// Gauges need no warm-up and say themselves how often they run.
  private func takesPart(_ job: Job, in round: Int) -> Bool {
    switch job.method {
    case .timed: true
    case .gauge(let count, _): round >= 0 && round < count
    }
  }

  private mutating func sample(_ job: Job) throws -> Double {
    switch job.method {
    case .gauge(_, let measure):
      return try measure()
    case .timed(let measure):
      var count = iterations[job.name] ?? 0
      if count == 0 {
        count = try Calibrator(targetNanoseconds: settings.sampleNanoseconds).calibrate(measure)
        iterations[job.name] = count
      }
      return try measure(count) / (Double(count) * job.perIteration)
    }
  }

  private mutating func sampleUnlessSkipped(_ job: Job) throws -> Double? {
    do {
      return try sample(job)
    } catch let reason as Skipped {
      skipped.append((job.name, reason.description))
      return nil
    } catch {
      throw CheckFailure("\(job.name): \(error)")
    }
  }

  private func isSkipped(_ job: Job) -> Bool { skipped.contains { $0.name == job.name } }

  private func result(of job: Job, in group: String) -> JobResult? {
    guard let summary = Summary(samples[job.name] ?? []) else { return nil }
    return JobResult(
      name: job.name, group: group, unit: job.unit, summary: job.summary, excludes: job.excludes,
      purpose: job.purpose, iterations: iterations[job.name] ?? 1, statistics: summary)
  }
}
