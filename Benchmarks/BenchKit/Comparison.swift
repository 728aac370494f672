/// Two reports of one kind of machine, job by job.
public struct Comparison: Equatable, Sendable {
  /// One job in both reports.
  public struct Row: Equatable, Sendable {
    /// The job's name.
    public let name: String
    /// The unit of its figures.
    public let unit: String
    /// The figures of the older report.
    public let old: Summary
    /// The figures of the newer one.
    public let new: Summary

    /// By how many percent the minimum grew; negative if it shrank.
    public var minPercent: Double { growth(from: old.min, to: new.min) }
    /// By how many percent the median grew.
    public var medianPercent: Double { growth(from: old.median, to: new.median) }

    /// Whether the job got worse by more than a threshold. Both minimum and median have to say so:
    /// a busy machine moves the median alone, a lucky sample the minimum alone.
    public func isPast(thresholdPercent: Double) -> Bool {
      minPercent > thresholdPercent && medianPercent > thresholdPercent
    }
  }

  /// The jobs in both.
  public let rows: [Row]
  /// The jobs only in the newer report.
  public let added: [String]
  /// The jobs only in the older one.
  public let missing: [String]

  /// Compares the jobs that `filter` accepts, and refuses reports that do not compare.
  public init(old: Report, new: Report, filter: (String) -> Bool = { _ in true }) throws {
    let kinds = [
      ("system", old.machine.system, new.machine.system),
      ("architecture", old.machine.architecture, new.machine.architecture),
      ("processor", old.machine.processor, new.machine.processor),
      ("number of processors", "\(old.machine.processors)", "\(new.machine.processors)"),
      ("build", old.machine.build, new.machine.build),
    ]
    for (what, before, now) in kinds where before != now {
      throw ReportError(
        "the two reports do not compare: the \(what) was \"\(before)\" and is \"\(now)\" now")
    }
    rows = new.jobs.compactMap { job in
      guard let before = old.jobs.first(where: { $0.name == job.name && $0.unit == job.unit })
      else { return nil }
      return Row(name: job.name, unit: job.unit, old: before.statistics, new: job.statistics)
    }
    let both = Set(rows.map(\.name))
    added = new.jobs.map(\.name).filter { !both.contains($0) }
    missing = old.jobs.map(\.name).filter { filter($0) && !both.contains($0) }
  }

  /// The jobs that got worse by more than the threshold.
  public func past(thresholdPercent: Double) -> [Row] {
    rows.filter { $0.isPast(thresholdPercent: thresholdPercent) }
  }
}

/// Growth in percent. From zero to zero there is none; from zero to anything it is infinite.
private func growth(from old: Double, to new: Double) -> Double {
  if old == new { return 0 }
  return old == 0 ? .infinity : (new - old) / old * 100
}
