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
