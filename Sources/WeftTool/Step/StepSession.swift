// StepSession.swift - the stepper without its terminal.

/// A program being stepped, and what is on the screen.
final class StepSession<Stepped: Steppable> {
  let machine: Stepped
  private(set) var showsHelp = false
  private(set) var isOver = false
  /// Why the last key did nothing.
  private(set) var refusal: String?
  /// The digits so far of a number that has more.
  private(set) var typed = 0

  init(stepping machine: Stepped) {
    self.machine = machine
  }

  /// Whether a key means anything here.
  func understands(_ key: StepKey) -> Bool {
    switch key {
    case .digit, .choose: machine.choiceMax != nil
    case .steal: !machine.ownKeys.isEmpty
    default: true
    }
  }

  /// Does what a key asks for.
  func handle(_ key: StepKey) throws {
    refusal = nil
    // Any key leaves the help; Enter and ? do no more than that.
    if showsHelp {
      showsHelp = false
      if key == .next || key == .help { return }
    }
    let number = typed
    typed = 0
    switch key {
    case .next where number > 0: refusal = try machine.handleOwn(.choose(number))
    case .next:
      if machine.isAtEnd { isOver = true } else { try machine.advance() }
    // The key that goes back takes back what was typed.
    case .back where number > 0: break
    case .back: try machine.go(to: max(1, machine.step - 1))
    case .runOn: try machine.go(to: .max)
    case .quit: isOver = true
    case .help: showsHelp = true
    case .digit(let digit): try type(number * 10 + digit)
    case .steal, .choose:
      if understands(key) { refusal = try machine.handleOwn(key) }
    }
  }

  /// A number is complete once another digit would make it too large.
  private func type(_ number: Int) throws {
    guard let most = machine.choiceMax else { return }
    if number > 0, number * 10 <= most {
      typed = number
    } else {
      refusal = try machine.handleOwn(.choose(number))
    }
  }

  // MARK: - Pictures

  /// The picture for a screen.
  func lines(glyphs: Glyphs, size: ScreenSize) -> [StyledLine] {
    guard !showsHelp else { return helpLines(size) }
    return machine.lines(glyphs: glyphs, size: size, footer: footer(size))
  }

  private var keys: [KeyLegend] {
    let one = machine.unit
    return [
      KeyLegend(
        label: "Enter", word: machine.isAtEnd ? "leave" : "next", meaning: "the next \(one)")
    ] + machine.ownKeys + [
      KeyLegend(
        label: "b", word: "back",
        meaning: "one \(one) back (the program is replayed up to there)"),
      KeyLegend(label: "c", word: "run on", meaning: "run on to the end"),
      KeyLegend(label: "q", word: "quit", meaning: "leave"),
      KeyLegend(label: "?", word: "help", meaning: "this help"),
    ]
  }

  private func footer(_ size: ScreenSize) -> StyledLine {
    if let refusal { return StyledLine(refusal, .bad) }
    if typed > 0 {
      return StyledLine("\(typed)_", .strong)
        + StyledLine("  another digit, or Enter; Backspace takes it back", .dim)
    }
    let widths = keys.map { $0.label.count + $0.word.count + 3 }
    // Where there is no room for all words, the help knows them.
    let isWide = size.columns >= widths.reduce(0, +)
    return keys.reduce(StyledLine()) { line, key in
      guard isWide || key.label == "?" else {
        return line + StyledLine(key.label + " ", .strong)
      }
      return line + StyledLine(key.label, .strong) + StyledLine(" \(key.word)  ", .dim)
    }
  }

  func helpLines(_ size: ScreenSize) -> [StyledLine] {
    let columns = min(size.columns, 100)
    var lines: [StyledLine] = [StyledLine("Stepping", .title), ""]
    for key in keys {
      let text = wrapped(key.meaning, to: max(16, columns - 9))
      for (index, part) in text.enumerated() {
        lines.append(
          StyledLine("  " + (index == 0 ? key.label : "").padded(to: 7), .strong) + StyledLine(part)
        )
      }
    }
    lines.append("")
    for paragraph in machine.helpParagraphs {
      lines += wrapped(paragraph, to: columns).map { StyledLine($0) } + [""]
    }
    if let rows = size.rows { lines = Array(lines.prefix(max(1, rows - 1))) }
    return lines + [StyledLine("Enter", .strong) + StyledLine(" goes back to the picture", .dim)]
  }
}

extension StepSession where Stepped == Machine {
  convenience init(_ program: Program) throws {
    self.init(stepping: try Machine(program))
  }

  func view(glyphs: Glyphs, size: ScreenSize) -> StepView {
    machine.view(glyphs: glyphs, size: size)
  }
}
