/// What one runtime came to in one row.
public struct PeerCell: Equatable, Sendable {
  /// The runtime.
  public let runtime: String
  /// All its samples, in the order in which they were taken.
  public let samples: [Double]
  /// Their order statistics.
  public let summary: Summary

  /// Nil if there are no samples.
  init?(runtime: String, samples: [Double]) {
    guard let summary = Summary(samples) else { return nil }
    self.runtime = runtime
    self.samples = samples
    self.summary = summary
  }

  /// How far the median is above the best, in percent.
  public var spreadPercent: Double {
    summary.min > 0 ? (summary.median / summary.min - 1) * 100 : 0
  }
}

/// One row: a job, and what each runtime that has it came to.
public struct PeerRow: Equatable, Sendable {
  /// The name that Weft itself has among the runtimes.
  public static let weft = "weft"

  /// The job.
  public let job: PeerJob
  /// The runtimes that have it and did not fail.
  public let cells: [PeerCell]

  /// What a runtime came to.
  public subscript(runtime: String) -> PeerCell? { cells.first { $0.runtime == runtime } }

  /// The peer with the least median.
  public var bestPeer: PeerCell? {
    cells.filter { $0.runtime != PeerRow.weft }
      .min { $0.summary.median < $1.summary.median }
  }

  /// Weft's median over that of the best peer: below one, Weft is ahead.
  public var ratio: Double? {
    guard let weft = self[PeerRow.weft], let bestPeer, bestPeer.summary.median > 0 else {
      return nil
    }
    return weft.summary.median / bestPeer.summary.median
  }

  /// The larger spread of the two that the ratio is made of.
  public var spreadPercent: Double? {
    guard let weft = self[PeerRow.weft], let bestPeer else { return nil }
    return max(weft.spreadPercent, bestPeer.spreadPercent)
  }

  /// The runtime that is first both by the medians and by the bests; nil where these disagree,
  /// or where there is nothing to compare with.
  public var winner: String? {
    guard cells.count > 1 else { return nil }
    let byMedian = cells.min { $0.summary.median < $1.summary.median }
    let byBest = cells.min { $0.summary.min < $1.summary.min }
    return byMedian?.runtime == byBest?.runtime ? byMedian?.runtime : nil
  }
}

/// A runtime that took part, or was to.
public struct PeerRuntime: Equatable, Sendable {
  /// Its name.
  public let name: String
  /// What its toolchain calls itself.
  public let version: String
  /// The jobs that its program has.
  public let jobs: Set<String>

  /// A runtime.
  public init(name: String, version: String, jobs: Set<String>) {
    self.name = name
    self.version = version
    self.jobs = jobs
  }
}

/// Something that was left out, and why.
public struct PeerOmission: Equatable, Sendable {
  /// A peer, or a peer and a job.
  public let what: String
  /// Why.
  public let reason: String

  /// An omission.
  public init(what: String, reason: String) {
    self.what = what
    self.reason = reason
  }
}

/// All that a run beside the peers found out.
public struct PeerReport: Equatable, Sendable {
  /// Grows when a reader of an older report could misread a newer one.
  public static let schema = "weft-bench-peers/1"

  /// The version of weft-bench.
  public let version: String
  /// Where it ran.
  public let machine: Machine
  /// How often each program was started for each row.
  public let rounds: Int
  /// The runtimes that took part, Weft first.
  public let runtimes: [PeerRuntime]
  /// The rows that any runtime has a figure in.
  public let rows: [PeerRow]
  /// What was left out.
  public let omissions: [PeerOmission]

  /// A report.
  public init(
    version: String, machine: Machine, rounds: Int, runtimes: [PeerRuntime], rows: [PeerRow],
    omissions: [PeerOmission]
  ) {
    self.version = version
    self.machine = machine
    self.rounds = rounds
    self.runtimes = runtimes
    self.rows = rows
    self.omissions = omissions
  }

  /// The same as a report that the chart can draw: a group for each row, a bar for each runtime.
  public var chartable: Report {
    let jobs = rows.flatMap { row in
      row.cells.map { cell in
        JobResult(
          name: cell.runtime, group: row.job.title, unit: row.job.unit, summary: row.job.summary,
          excludes: "", purpose: .claim, iterations: 1, statistics: cell.summary)
      }
    }
    return Report(
      version: version, machine: machine, settings: Settings(samples: rounds), jobs: jobs,
      relations: [])
  }

  /// The report as JSON.
  public var json: JSON {
    .object([
      .init("schema", .string(PeerReport.schema)),
      .init("version", .string(version)),
      .init("machine", machine.json),
      .init("rounds", .number(Double(rounds))),
      .init("runtimes", .array(runtimes.map(\.json))),
      .init("rows", .array(rows.map(\.json))),
      .init("omissions", .array(omissions.map(\.json))),
    ])
  }
}

extension PeerRuntime {
  fileprivate var json: JSON {
    .object([.init("name", .string(name)), .init("version", .string(version))])
  }
}

extension PeerOmission {
  fileprivate var json: JSON {
    .object([.init("what", .string(what)), .init("reason", .string(reason))])
  }
}

extension PeerRow {
  fileprivate var json: JSON {
    .object([
      .init("name", .string(job.title)),
      .init("workers", .number(Double(job.workers))),
      .init("unit", .string(job.unit)),
      .init("summary", .string(job.summary)),
      .init("figures", .array(cells.map(\.json))),
      .init("best_peer", bestPeer.map { .string($0.runtime) } ?? .null),
      .init("ratio", ratio.map(rounded) ?? .null),
      .init("spread_percent", spreadPercent.map(rounded) ?? .null),
      .init("winner", winner.map(JSON.string) ?? .null),
    ])
  }
}

extension PeerCell {
  fileprivate var json: JSON {
    .object([
      .init("runtime", .string(runtime)),
      .init("best", rounded(summary.min)),
      .init("median", rounded(summary.median)),
      .init("spread_percent", rounded(spreadPercent)),
      .init("samples", .array(samples.map(rounded))),
    ])
  }
}
