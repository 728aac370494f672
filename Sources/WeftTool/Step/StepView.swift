// StepView.swift - one step as lines of text, fitted to a screen.
//
// A picture has parts that can be had in several sizes. The richest arrangement that fits the
// rows of the screen is taken; without a screen (a file, a pipe) there is room for everything.

/// Lays out a step.
struct StepView {
  var snapshot: Snapshot
  var program: Program
  var glyphs: Glyphs
  var size: ScreenSize

  /// How much of each part is drawn.
  private struct Detail {
    var context: Int
    var fullStrip: Bool
    var boxes: Int
    var keeper: Bool
    var isCompact = false
  }

  /// From rich to poor.
  private static let details = [
    Detail(context: 3, fullStrip: true, boxes: 2, keeper: true),
    Detail(context: 2, fullStrip: true, boxes: 2, keeper: true),
    Detail(context: 1, fullStrip: true, boxes: 2, keeper: true),
    Detail(context: 1, fullStrip: false, boxes: 2, keeper: true),
    Detail(context: 0, fullStrip: false, boxes: 2, keeper: true),
    Detail(context: 0, fullStrip: false, boxes: 2, keeper: false),
    Detail(context: 1, fullStrip: false, boxes: 1, keeper: true),
    Detail(context: 0, fullStrip: false, boxes: 1, keeper: false),
    Detail(context: 0, fullStrip: false, boxes: 1, keeper: false, isCompact: true),
    Detail(context: 0, fullStrip: false, boxes: 0, keeper: false),
  ]

  /// From this width on, two boxes stand side by side.
  static let wideColumns = 78

  /// The picture. `footer` is the line at its bottom, if there is one.
  func lines(footer: StyledLine? = nil) -> [StyledLine] {
    let columns = max(20, size.columns)
    return size.richest(of: StepView.details.count, footer: footer, ellipsis: glyphs.ellipsis) {
      picture(StepView.details[$0], columns)
    }
  }

  private func picture(_ detail: Detail, _ columns: Int) -> [StyledLine] {
    if snapshot.isEnd { return header + [""] + ending(columns) + printed(columns, full: true) }
    let isWide = columns >= StepView.wideColumns && snapshot.shown.count > 1
    var lines = header
    if isWide, detail.boxes == 2 {
      let left = (columns - 2) / 2
      lines += beside(boxes(left), left, columns)
      lines += beside(snapshot.shown.map { source($0, detail.context, left) }, left, columns)
    } else {
      lines += stacked(detail, columns)
    }
    lines += mainLine
    lines += detail.fullStrip ? strip : shortStrip
    lines += values(columns, full: detail.keeper)
    return lines + printed(columns, full: detail.context > 1)
  }

  // MARK: - Parts

  private var header: [StyledLine] {
    let name = StyledLine("weft demo \(program.name)", .title)
    guard let to = snapshot.to else {
      return [
        name + StyledLine("  the end, after \(counted(snapshot.switches, "switch", "switches"))")
      ]
    }
    let sides =
      StyledLine("switch \(grouped(snapshot.step)) of \(grouped(snapshot.switches)): ")
      + StyledLine(program.sideName(snapshot.from), .leaving) + StyledLine(" \(glyphs.right) ")
      + StyledLine(program.sideName(to), .entering)
    // A narrow screen has room for what changes, not for what does not.
    if size.columns < 60 { return [sides] }
    return [name + StyledLine(" (\(program.source.rawValue))  ", .dim) + sides]
  }

  private func role(_ image: SideImage) -> StackBox.Role {
    if image.side == snapshot.to { return .entering }
    return image.side == snapshot.from ? .leaving : .waiting
  }

  private func boxes(_ columns: Int) -> [[StyledLine]] {
    snapshot.shown.map {
      StackBox(image: $0, glyphs: glyphs, role: role($0)).lines(columns: columns)
    }
  }

  /// Two columns of lines; the shorter one is filled up.
  private func beside(_ parts: [[StyledLine]], _ left: Int, _ columns: Int) -> [StyledLine] {
    guard parts.count == 2 else { return parts.flatMap { $0 } }
    let rows = max(parts[0].count, parts[1].count)
    return (0..<rows).map { row in
      let first = row < parts[0].count ? parts[0][row] : StyledLine()
      let second = row < parts[1].count ? parts[1][row] : StyledLine()
      return first.fitted(to: left, ellipsis: glyphs.ellipsis) + "  "
        + second.clipped(to: columns - left - 2, ellipsis: glyphs.ellipsis)
    }
  }

  /// One under the other: each stack with its source. With less room, the one that goes on.
  private func stacked(_ detail: Detail, _ columns: Int) -> [StyledLine] {
    let target = snapshot.to
    var lines: [StyledLine] = []
    for image in snapshot.shown {
      let isTarget = image.side == target || (target == 0 && image.side == snapshot.from)
      if detail.boxes == 2 || (detail.boxes == 1 && isTarget) {
        let box = StackBox(
          image: image, glyphs: glyphs, role: role(image), isCompact: detail.isCompact)
        lines += box.lines(columns: columns)
      } else {
        lines.append(summary(image))
      }
      if detail.context > 0 || isTarget { lines += source(image, detail.context, columns) }
    }
    return lines
  }

  /// A stack in one line.
  private func summary(_ image: SideImage) -> StyledLine {
    StyledLine("\(image.name): ", role(image).tone) + StyledLine(image.returnsTo.symbol, .symbol)
      + StyledLine(" \(StackReader.stackPointerName) \(hex(image.stackPointer))", .dim)
  }

  /// The source around the line in which a side stands.
  private func source(_ image: SideImage, _ context: Int, _ columns: Int) -> [StyledLine] {
    guard image.line > 0 else { return [] }
    let all = program.source.lines
    let first = max(1, image.line - context)
    let last = min(all.count, image.line + context)
    guard first <= last else { return [] }
    return (first...last).map { number in
      let isHere = number == image.line
      let mark = !isHere ? " " : image.side == snapshot.to ? glyphs.pointer : glyphs.pause
      let tone = isHere ? role(image).tone : .dim
      return StyledLine(mark + " ", tone) + StyledLine("\(number)".leftPadded(to: 3) + "  ", .dim)
        + StyledLine(all[number - 1], isHere ? tone : .plain)
    }
  }

  /// Main has a stack too, but no box.
  private var mainLine: [StyledLine] {
    guard let main = snapshot.main else { return [] }
    let what = snapshot.to == 0 ? "goes on at" : "waits at"
    return [
      StyledLine("main ", role(main).tone) + StyledLine("\(what) ")
        + StyledLine(main.returnsTo.symbol, .symbol)
        + StyledLine(
          ", line \(main.line); \(StackReader.stackPointerName) \(hex(main.stackPointer))", .dim)
    ]
  }
}

extension String {
  func leftPadded(to columns: Int) -> String {
    String(repeating: " ", count: max(0, columns - count)) + self
  }
}
