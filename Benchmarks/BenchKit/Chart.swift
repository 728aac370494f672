/// A bar chart of a report: self-contained SVG, or the same SVG in a page with the figures below.
///
/// Bars reach to the median, a thin line from the minimum to the 99th percentile. The scale is
/// logarithmic, because a switch and the creation of a million generators share the picture; so a
/// bar's length compares within the chart but does not start at zero, which the axis shows.
public struct Chart {
  private let report: Report
  private let bars: [JobResult]
  private let scale: LogScale

  private static let labelWidth = 250
  private static let plotWidth = 560
  private static let rowHeight = 20
  private static let topMargin = 66

  /// A chart of all jobs of a report that have a positive median.
  public init(_ report: Report) {
    self.report = report
    bars = report.jobs.filter { $0.statistics.median > 0 }
    scale = LogScale(
      smallest: bars.map { min($0.statistics.min, $0.statistics.median) }.min() ?? 1,
      largest: bars.map(\.statistics.p99).max() ?? 10)
  }

  /// The chart as an SVG document.
  public var svg: String {
    var rows = ""
    var y = Chart.topMargin
    var group = ""
    for bar in bars {
      if bar.group != group {
        group = bar.group
        y += Chart.rowHeight / 2
        rows += text(8, y + 14, "group", group)
        y += Chart.rowHeight
      }
      rows += row(bar, y)
      y += Chart.rowHeight
    }
    let width = Chart.labelWidth + Chart.plotWidth + 190
    let height = y + 24
    return """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" \
      viewBox="0 0 \(width) \(height)" role="img" aria-label="weft-bench figures">
      <style>
      svg { background: #ffffff; font: 12px system-ui, sans-serif; }
      text { fill: #24292f; } .title { font-size: 15px; font-weight: 600; }
      .note { fill: #57606a; } .group { font-weight: 600; } .name { text-anchor: end; }
      .grid { stroke: #d8dee4; } .bar { fill: #4c78a8; } .range { stroke: #1b2a3a; }
      .tick { fill: #57606a; text-anchor: middle; }
      </style>
      <rect width="\(width)" height="\(height)" fill="#ffffff"/>
      \(text(8, 20, "title", "weft-bench \(report.version)"))\
      \(text(8, 38, "note", subtitle))\(axis(to: y))\(rows)</svg>

      """
  }

  /// The chart in an HTML page with the figures and the relations as tables.
  public var html: String {
    """
    <!doctype html>
    <html lang="en"><head><meta charset="utf-8"/><title>weft-bench</title>
    <style>body { font: 14px system-ui, sans-serif; margin: 2em; color: #24292f; }
    pre { font: 12px ui-monospace, monospace; overflow-x: auto; }</style></head>
    <body>
    \(svg)<h2>Relations</h2>
    <pre>\(escaped(Tables.relations(report.relations)))</pre>
    <h2>Figures</h2>
    <pre>\(escaped(Tables.figures(report.jobs)))</pre>
    </body></html>

    """
  }

  private var subtitle: String {
    let machine = report.machine
    return "\(machine.processor), \(machine.processors) processors, \(machine.system) "
      + "\(machine.architecture), \(machine.build) build. Bar: median; line: minimum to p99; "
      + "logarithmic."
  }

  private func axis(to bottom: Int) -> String {
    var output = ""
    for decade in scale.decades {
      let x = position(decade)
      output += "<line class=\"grid\" x1=\"\(x)\" x2=\"\(x)\" y1=\"\(Chart.topMargin)\" "
      output += "y2=\"\(bottom)\"/>\n"
      output += text(x, Chart.topMargin - 6, "tick", axisLabel(decade))
    }
    return output
  }

  private func row(_ bar: JobResult, _ y: Int) -> String {
    let statistics = bar.statistics
    let start = Chart.labelWidth
    let end = position(statistics.median)
    let (low, high) = (position(statistics.min), position(statistics.p99))
    let figure = "\(readable(statistics.median)) \(bar.unit)"
    return text(start - 8, y + 14, "name", bar.name)
      + "<rect class=\"bar\" x=\"\(start)\" y=\"\(y + 4)\" width=\"\(max(end - start, 1))\" "
      + "height=\"\(Chart.rowHeight - 8)\"><title>\(escaped(bar.summary))</title></rect>\n"
      + "<line class=\"range\" x1=\"\(low)\" x2=\"\(high)\" y1=\"\(y + 10)\" y2=\"\(y + 10)\"/>\n"
      + text(max(end, high) + 6, y + 14, "note", figure)
  }

  private func position(_ value: Double) -> Int {
    Chart.labelWidth + Int((scale.fraction(value) * Double(Chart.plotWidth)).rounded())
  }

  private func axisLabel(_ value: Double) -> String {
    value < 1 ? compact(value) : readableCount(value)
  }

  private func readableCount(_ value: Double) -> String {
    grouped(fixed(value, decimals: 0))
  }

  private func text(_ x: Int, _ y: Int, _ style: String, _ content: String) -> String {
    "<text class=\"\(style)\" x=\"\(x)\" y=\"\(y)\">\(escaped(content))</text>\n"
  }
}

/// A logarithmic scale over whole decades.
struct LogScale: Equatable {
  /// The powers of ten from end to end, at least two.
  let decades: [Double]

  init(smallest: Double, largest: Double) {
    // A broken figure must not make a chart of a thousand decades.
    var low = 1.0
    let floor = min(max(smallest, 1e-6), 1e12)
    let ceiling = min(max(largest, floor), 1e15)
    while low > floor { low /= 10 }
    while low * 10 <= floor { low *= 10 }
    var all = [low]
    repeat { all.append(all[all.count - 1] * 10) } while all[all.count - 1] < ceiling
    decades = all.map { $0 < 1 ? ($0 * 1e6).rounded() / 1e6 : $0.rounded() }
  }

  /// Where a value is between the ends, 0 to 1.
  func fraction(_ value: Double) -> Double {
    guard value > decades[0] else { return 0 }
    for (index, decade) in decades.dropFirst().enumerated() where value <= decade {
      // Within a decade: log10 of 1 ... 10.
      return (Double(index) + log10Within(value / decades[index])) / Double(decades.count - 1)
    }
    return 1
  }
}

/// The decimal logarithm of a number from 1 to 10, by halving: a chart needs three digits, and
/// this needs no C library.
func log10Within(_ value: Double) -> Double {
  var (rest, bit, result) = (value, 0.5, 0.0)
  for _ in 0..<20 {
    rest *= rest
    if rest >= 10 {
      rest /= 10
      result += bit
    }
    bit /= 2
  }
  return value >= 10 ? 1 : result
}

/// Text as XML content or attribute.
func escaped(_ text: String) -> String {
  var output = ""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "&": output += "&amp;"
    case "<": output += "&lt;"
    case ">": output += "&gt;"
    case "\"": output += "&quot;"
    // XML 1.0 has no way to write the other control characters.
    case "\u{0}"..<"\u{9}", "\u{B}", "\u{C}", "\u{E}"..<"\u{20}": output += "\u{FFFD}"
    default: output.unicodeScalars.append(scalar)
    }
  }
  return output
}
