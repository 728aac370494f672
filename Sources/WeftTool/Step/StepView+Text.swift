// StepView+Text.swift - the parts of a step that are sentences: the switch, the values, the output.

extension StepView {
  /// The five groups of the switch and where it stands among them.
  var groups: [SwitchGroup] {
    let from = snapshot.image(of: snapshot.from)
    let to = snapshot.image(of: snapshot.to)
    let count = from?.registers.count ?? 6
    return [
      SwitchGroup(
        name: "push", isDone: true,
        text: "\(count) registers onto the stack of \(program.sideName(snapshot.from))"),
      SwitchGroup(
        name: "save", isDone: true, text: "stack pointer \(hex(from?.stackPointer ?? 0))"),
      SwitchGroup(name: "load", isDone: false, text: "stack pointer \(hex(to?.stackPointer ?? 0))"),
      SwitchGroup(
        name: "pop", isDone: false,
        text: "\(count) registers of \(program.sideName(snapshot.to ?? 0))"),
      SwitchGroup(name: "ret", isDone: false, text: to.map(landing) ?? "?"),
    ]
  }

  private func landing(_ image: SideImage) -> String {
    let symbol = image.returnsTo.symbol
    guard image.line > 0 else { return "to \(symbol)" }
    return image.hasBegun ? "to \(symbol), back in line \(image.line)" : "to \(symbol): enters it"
  }

  var strip: [StyledLine] {
    groups.enumerated().map { index, group in
      let state = group.isDone ? " ran  " : index == 2 ? " next " : "      "
      return StyledLine(state, group.isDone ? .leaving : .entering)
        + StyledLine("\(index + 1) \(group.name.padded(to: 5))", .strong) + StyledLine(group.text)
    }
  }

  var shortStrip: [StyledLine] {
    let done = groups.filter(\.isDone).map(\.name).joined(separator: " ")
    let next = groups.filter { !$0.isDone }.map(\.name).joined(separator: " ")
    return [
      StyledLine("ran: ", .leaving) + StyledLine(done, .strong) + StyledLine("  next: ", .entering)
        + StyledLine(next, .strong) + StyledLine(" \(groups[4].text)")
    ]
  }

  /// The counter and the sum, and who keeps them.
  func values(_ columns: Int, full: Bool) -> [StyledLine] {
    let adding = snapshot.shown.filter { $0.counter != nil || $0.sum != nil }
    // The side that takes part is the one to speak of.
    guard
      let image = adding.first(where: { $0.side == snapshot.from })
        ?? adding.first(where: { $0.side == snapshot.to }) ?? adding.first
    else { return [] }
    let parts = [(image.counter, "i"), (image.sum, "sum")].compactMap { found, name in
      found.map { "\(name) = \($0.value)\(StepView.place($0.place))" }
    }
    let facts = StyledLine("\(image.name): ") + StyledLine(parts.joined(separator: ", "), .value)
    guard full, let counter = image.counter else { return [facts] }
    return [facts]
      + wrapped(StepView.keeper(counter.place), to: columns).map { StyledLine($0, .dim) }
  }

  private static func place(_ place: FoundValue.Place) -> String {
    switch place {
    case .register(let name): " in \(name)"
    case .memory: " in its frame"
    }
  }

  private static func keeper(_ place: FoundValue.Place) -> String {
    switch place {
    case .register(let name):
      "The counter lives in \(name), a callee-saved register: the caller does not store it, "
        + "the switch does (push) and brings it back (pop)."
    case .memory(let address):
      "A debug build keeps the counter in memory at \(hex(address)); build with "
        + "-c release to see it in a register that the switch keeps."
    }
  }

  /// What the program has printed, equal lines in a row counted.
  func printed(_ columns: Int, full: Bool) -> [StyledLine] {
    var runs: [(text: String, count: Int)] = []
    for line in snapshot.output {
      if runs.last?.text == line { runs[runs.count - 1].count += 1 } else { runs.append((line, 1)) }
    }
    let texts = runs.map { $0.count > 1 ? "\($0.text) \(glyphs.times)\($0.count)" : $0.text }
    guard !texts.isEmpty else { return [StyledLine("printed: nothing yet", .dim)] }
    let label = StyledLine("printed: ", .dim)
    let whole = texts.joined(separator: " \(glyphs.dot) ")
    if full {
      let lines = wrapped(whole, to: columns - 9)
      return lines.enumerated().map { index, text in
        (index == 0 ? label : "         ") + StyledLine(text, .good)
      }
    }
    // The newest lines matter most where there is room for one.
    let room = columns - 9
    let tail = whole.count > room ? glyphs.ellipsis + String(whole.suffix(room - 1)) : whole
    return [label + StyledLine(tail, .good)]
  }

  func ending(_ columns: Int) -> [StyledLine] {
    let text =
      "Main has come back. After every switch each routine went on exactly where it had left, with "
      + "its registers as they were."
    return wrapped(text, to: columns).map { StyledLine($0) } + [""]
  }
}

/// A group of instructions of the switch.
struct SwitchGroup: Equatable {
  var name: String
  var isDone: Bool
  var text: String
}
