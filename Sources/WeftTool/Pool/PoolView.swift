// PoolView.swift - a step of the pool as lines of text, fitted to a screen.

/// Lays out the queues and the fibers.
struct PoolView {
  var machine: PoolMachine
  var glyphs: Glyphs
  var size: ScreenSize

  private var model: PoolModel { machine.model }

  /// How much of each part is drawn.
  private struct Detail {
    var boxes: Bool
    var table: Table
    enum Table { case full, sums, none }
  }

  /// From rich to poor.
  private static let details = [
    Detail(boxes: true, table: .full), Detail(boxes: false, table: .full),
    Detail(boxes: true, table: .sums), Detail(boxes: false, table: .sums),
    Detail(boxes: false, table: .none),
  ]

  /// From this width on, two workers stand side by side.
  static let wideColumns = 78

  func lines(footer: StyledLine? = nil) -> [StyledLine] {
    let columns = max(20, size.columns)
    return size.richest(of: PoolView.details.count, footer: footer, ellipsis: glyphs.ellipsis) {
      picture(PoolView.details[$0], columns)
    }
  }

  private func picture(_ detail: Detail, _ columns: Int) -> [StyledLine] {
    var lines = [header]
    lines += wrapped(sentence, to: columns).map { StyledLine($0, .entering) }
    lines += detail.boxes ? workerBoxes(columns) : workerLines
    switch detail.table {
    case .full: lines += fiberTable
    case .sums: lines += fiberSums(columns)
    case .none: break
    }
    lines.append(totalLine)
    return lines + nextLines(columns)
  }

  private var header: StyledLine {
    let what = machine.isAtEnd ? "the end, after step \(machine.step - 1)" : "step \(machine.step)"
    let name = StyledLine("weft demo pool", .title)
    // A narrow screen has room for what changes, not for what does not.
    if size.columns < 50 { return StyledLine(what, .title) }
    return name + StyledLine("  1 to \(machine.plan.upto)  ", .dim) + StyledLine(what)
  }

  // MARK: - Workers

  /// "4 1 2", head first, with a mark before the one that goes past the others.
  private func queue(_ worker: PoolWorker) -> StyledLine {
    guard !worker.queue.isEmpty else { return StyledLine("empty", .dim) }
    return worker.queue.enumerated().reduce(StyledLine()) { line, item in
      let isNext = worker.favoured.map { $0 == item.element } ?? (item.offset == 0)
      let mark = isNext && worker.current != 0 ? glyphs.pointer : ""
      let name = item.element == 0 ? "main" : "\(item.element)"
      return line + StyledLine(item.offset == 0 ? "" : " ")
        + StyledLine(mark + name, isNext ? .entering : .value)
    }
  }

  private func runs(_ worker: PoolWorker) -> String {
    guard let current = worker.current else {
      return worker.queue.isEmpty ? "idle" : "between two fibers"
    }
    return "runs \(PoolMachine.name(current))"
  }

  private func hasActed(_ index: Int) -> Bool {
    switch model.last {
    case .begun, .spawned, .waits, .finished: index == 0
    case .ran(_, let worker, _), .ended(_, let worker, _, _), .stole(let worker, _, _, _):
      index == worker
    }
  }

  private func tone(_ index: Int) -> Tone {
    if hasActed(index) { return .entering }
    return model.isIdle(index) ? .dim : .plain
  }

  private func workerBoxes(_ columns: Int) -> [StyledLine] {
    let isWide = columns >= PoolView.wideColumns && model.workers.count > 1
    let width = isWide ? (columns - 2) / 2 : columns
    let boxes = model.workers.enumerated().map { index, worker in
      Frame(glyphs: glyphs, tone: tone(index)).lines(
        title: "worker \(index): \(runs(worker))", columns: width,
        rows: [StyledLine(" queue ", .dim) + queue(worker)])
    }
    guard isWide else { return boxes.flatMap { $0 } }
    return stride(from: 0, to: boxes.count, by: 2).flatMap { first -> [StyledLine] in
      guard first + 1 < boxes.count else { return boxes[first] }
      return zip(boxes[first], boxes[first + 1]).map { $0 + "  " + $1 }
    }
  }

  private var workerLines: [StyledLine] {
    let names = model.workers.map(runs)
    let width = names.map(\.count).max() ?? 0
    return zip(model.workers, names).enumerated().map { index, pair in
      StyledLine("worker \(index) ", tone(index)) + StyledLine(pair.1.padded(to: width + 2))
        + StyledLine("queue ", .dim) + queue(pair.0)
    }
  }

  // MARK: - Fibers

  private var fiberTable: [StyledLine] {
    model.fibers.map { fiber in
      let numbers = fiber.numbers.map { "\($0)" }.joined(separator: "+")
      // The sum first: of a long row, only numbers are cut off.
      let equation = fiber.numbers.count > 1 ? "\(fiber.sum) = \(numbers)" : "\(fiber.sum)"
      let verb = fiber.id == 0 ? "joined" : "added"
      return StyledLine((fiber.id == 0 ? "main" : "\(fiber.id)").leftPadded(to: 4), .strong)
        + StyledLine("  " + state(fiber).padded(to: 16))
        + (fiber.numbers.isEmpty
          ? StyledLine() : StyledLine("\(verb) ", .dim) + StyledLine(equation, .value))
    }
  }

  /// The partial sums alone, several in a line.
  private func fiberSums(_ columns: Int) -> [StyledLine] {
    let sums = model.fibers.dropFirst().map { "\($0.id):\($0.sum)" }.joined(separator: " ")
    return wrapped("added " + sums, to: columns).map { StyledLine($0, .value) }
  }

  private func state(_ fiber: PoolFiber) -> String {
    switch fiber.state {
    case .joining(let other): return "waits for \(other)"
    case .ended: return "ended"
    case .fresh, .ready:
      guard let worker = model.place(of: fiber.id) else { return "" }
      if model.workers[worker].current == fiber.id {
        return fiber.id == 0 ? "on worker \(worker)" : "yields on \(worker)"
      }
      return fiber.state == .fresh && fiber.id > 0 ? "new, queue \(worker)" : "queue \(worker)"
    }
  }

  private var totalLine: StyledLine {
    if let result = model.result {
      let verdict = machine.isCorrect ? "N(N+1)/2 agrees" : "N(N+1)/2 is \(machine.plan.expected)"
      return StyledLine("sum: \(result)", .strong)
        + StyledLine("  \(verdict)", machine.isCorrect ? .good : .bad)
    }
    let added = model.fibers.dropFirst().reduce(0) { $0 + $1.sum }
    return StyledLine("added so far: ", .dim) + StyledLine("\(added)", .value)
      + StyledLine(" of \(machine.plan.expected)", .dim)
  }

  private func nextLines(_ columns: Int) -> [StyledLine] {
    guard let natural = model.natural else { return [] }
    let others = model.workers.indices.flatMap { model.runnable(on: $0) }.sorted()
    let names = others.map { $0 == 0 ? "main (0)" : "\($0)" }.joined(separator: " ")
    let line = StyledLine("Enter: ", .strong) + StyledLine(text(natural))
    let choice = StyledLine("runnable: ", .dim) + StyledLine(names)
    return line.width + choice.width + 3 <= columns
      ? [line + StyledLine("   ") + choice] : [line, choice]
  }

  private func text(_ choice: PoolChoice) -> String {
    switch choice {
    case .run(let fiber):
      let worker = model.place(of: fiber) ?? 0
      return "\(PoolMachine.name(fiber)) on worker \(worker)"
    case .steal(let worker): return "worker \(worker) steals"
    }
  }
}
