/// Text grids for people. Everything here returns text and prints nothing.
public enum Tables {
  /// The figures of every job, by group.
  public static func figures(_ jobs: [JobResult]) -> String {
    var rows = [["job", "min", "median", "p90", "p99", "unit"]]
    var group = ""
    for job in jobs {
      if job.group != group {
        group = job.group
        rows.append([])
      }
      let statistics = job.statistics
      rows.append(
        [job.name]
          + [statistics.min, statistics.median, statistics.p90, statistics.p99].map(readable)
          + [job.unit])
    }
    return grid(rows, numbers: 1...4)
  }

  /// The relations and their goals.
  public static func relations(_ relations: [RelationResult]) -> String {
    var rows = [["relation", "median", "of minima", "", "goal", "", "computed as"]]
    for relation in relations {
      let verdict = relation.verdict == .missed ? "MISSED" : relation.verdict?.rawValue ?? ""
      rows.append(
        [relation.name]
          + [relation.median, relation.ofMinima].map(readable)
          + [relation.unit, relation.goal?.text ?? "", verdict, relation.formula])
    }
    return grid(rows, numbers: 1...2)
  }

  /// A comparison, with the rows past the threshold marked.
  public static func comparison(_ comparison: Comparison, thresholdPercent: Double) -> String {
    var rows = [["job", "min", "was", "", "median", "was", "", ""]]
    for row in comparison.rows {
      let past = row.isPast(thresholdPercent: thresholdPercent)
      rows.append([
        row.name, readable(row.new.min), readable(row.old.min), signed(row.minPercent),
        readable(row.new.median), readable(row.old.median), signed(row.medianPercent),
        past ? "SLOWER" : "",
      ])
    }
    var text = grid(rows, numbers: 1...6)
    if !comparison.added.isEmpty {
      text += "Only in this run: " + comparison.added.joined(separator: ", ") + "\n"
    }
    if !comparison.missing.isEmpty {
      text += "Only in the older report: " + comparison.missing.joined(separator: ", ") + "\n"
    }
    let count = comparison.past(thresholdPercent: thresholdPercent).count
    text += "\(count) of \(comparison.rows.count) jobs past the threshold of "
    return text + "\(compact(thresholdPercent)) % (on both minimum and median).\n"
  }

  /// What can be run.
  public static func list(_ groups: [Group], filter: (String) -> Bool) -> String {
    var text = ""
    for group in groups {
      let jobs = group.jobs.filter { filter($0.name) }
      guard !jobs.isEmpty else { continue }
      text += text.isEmpty ? "" : "\n"
      for job in jobs {
        text += "\(job.name)  (\(job.unit), \(job.purpose.rawValue))\n"
        text += "    \(job.summary)\n"
        if !job.excludes.isEmpty { text += "    Excludes \(job.excludes).\n" }
      }
    }
    return text
  }

  /// Columns as wide as their widest cell, two spaces apart; an empty row is an empty line.
  static func grid(_ rows: [[String]], numbers: ClosedRange<Int>) -> String {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    var text = ""
    for row in rows {
      let cells = row.enumerated().map { column, cell in
        numbers.contains(column)
          ? aligned(cell, to: widths[column]) : padded(cell, to: widths[column])
      }
      var line = cells.joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      text += line + "\n"
    }
    return text
  }

  static func signed(_ percent: Double) -> String {
    guard percent.isFinite else { return "from 0" }
    return (percent > 0 ? "+" : "") + fixed(percent, decimals: 1) + " %"
  }
}

extension Tables {
  /// A row for each job and a column for each runtime: best, and in brackets the median.
  public static func peers(_ report: PeerReport) -> String {
    let names = report.runtimes.map(\.name)
    var rows = [["job", "unit"] + names + ["ratio", "spread", "first"]]
    for row in report.rows {
      let figures = names.map { name in
        row[name].map { "\(readable($0.summary.min)) (\(readable($0.summary.median)))" } ?? ""
      }
      rows.append(
        [row.job.title, row.job.unit] + figures + [
          row.ratio.map { fixed($0, decimals: 2) } ?? "",
          row.spreadPercent.map { fixed($0, decimals: 0) + " %" } ?? "",
          row.cells.count > 1 ? row.winner ?? "unclear" : "",
        ])
    }
    var text = grid(rows, numbers: 2...(names.count + 3))
    text += """

      Best (median). Ratio: Weft's median over that of the best peer, less than 1 where Weft is
      ahead. Spread: how far the median is above the best, the larger of these two. First: who is
      by both median and best; unclear where they disagree.

      """
    for runtime in report.runtimes { text += "\(runtime.name): \(runtime.version)\n" }
    return text + omissions(report.omissions)
  }

  /// What was left out, a line each.
  public static func omissions(_ omissions: [PeerOmission]) -> String {
    omissions.reduce(into: "") { $0 += "Left out: \($1.what): \($1.reason)\n" }
  }

  /// The rows that can be run.
  public static func list(_ jobs: [PeerJob]) -> String {
    jobs.reduce(into: "") { $0 += "\($1.title)  (\($1.unit))\n    \($1.summary)\n" }
  }
}
