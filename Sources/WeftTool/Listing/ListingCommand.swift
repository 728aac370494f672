// ListingCommand.swift - `--asm`: the loop and the switch, as compiled, and where they come from.
import CWeftDemo

/// Prints the annotated listings of a program.
struct ListingCommand {
  let program: Program
  let console: Console

  init(_ program: Program, _ console: Console) {
    self.program = program
    self.console = console
  }

  func run(json: Bool) throws -> ExitCode {
    let locations = try Locations.find(in: program)
    let operands = try variableOperands(locations)
    try Machine.open(program)
    defer { weft_demo_close() }
    guard let loop = CodeReader.function(program.loopFunction, in: program),
      let swap = CodeReader.function("weft_swapcontext", in: program)
    else { throw ToolError.failure("the functions to list cannot be found") }
    let annotator = LoopAnnotator(
      function: loop, counter: operands.counter, sum: operands.sum, symbol: Self.symbol)
    let first = view(loop, annotator.annotate(), annotator.loop)
    let second = view(swap, SwitchAnnotator.annotate(swap), nil)
    if json {
      try console.json([
        "schema": "weft.demo.asm/1", "demo": .string(program.name),
        "architecture": .string(CodeReader.architecture),
        "functions": .array([first.json, second.json]),
        "sources": .object(
          [SourceFile.x86, .arm].map { file in
            JSON.Member(
              key: file.rawValue,
              value: .string(SwitchSource.textbook(file).lines.joined(separator: "\n")))
          }),
      ])
    } else {
      try console.lines(
        loopSection(first, operands.place) + [""] + switchSection(second) + [""] + sourceSection())
    }
    return .success
  }

  /// A listing in a file has the room that it needs.
  private var columns: Int {
    let isSized = console.out.isTerminal || environmentVariable("COLUMNS") != nil
    return isSized ? console.size.columns : 168
  }

  private func view(
    _ function: DecodedFunction, _ notes: [Annotation], _ loop: Range<Int>?
  ) -> ListingView {
    ListingView(
      function: function, notes: notes, loop: loop, columns: columns, glyphs: console.glyphs,
      symbol: Self.symbol)
  }

  private static func symbol(_ address: UInt64) -> String? {
    let code = StackReader.code(address)
    return code.function == nil ? nil : code.symbol
  }

  /// How the variables are written in the code, and where they are in words.
  private func variableOperands(
    _ locations: Locations
  ) throws -> (counter: Set<String>, sum: Set<String>, place: String?) {
    guard program.hasSum else { return ([], [], nil) }
    // The first switch inside the loop shows the frame pointer that memory operands count from.
    let machine = try Machine(program)
    while !machine.isAtEnd {
      let images = machine.snapshot().shown
      if let image = images.first(where: { $0.counter != nil }) {
        return (
          Self.operands(image.counter, image), Self.operands(image.sum, image),
          image.counter.map(Self.place)
        )
      }
      machine.advance()
    }
    return ([], [], nil)
  }

  private static func operands(_ found: FoundValue?, _ image: SideImage) -> Set<String> {
    switch found?.place {
    case nil: return []
    case .register(let name): return Set(X86Register.aliases(of: name).map { "%" + $0 } + [name])
    case .memory(let address):
      let pointer = image.registers.first { ["rbp", "x29"].contains($0.name) }?.word.value ?? 0
      let offset = Int64(bitPattern: address &- pointer)
      return [X86Reader.offset(offset) + "(%rbp)", "[x29, #\(offset)]"]
    }
  }

  private static func place(_ found: FoundValue) -> String {
    switch found.place {
    case .register(let name):
      "The loop counter is in \(name), which the switch keeps for its caller: no instruction of "
        + "the loop stores it."
    case .memory:
      "A debug build keeps the loop counter in memory; build with -c release to see it in a "
        + "register that the switch keeps."
    }
  }

  // MARK: - Sections

  private func heading(_ text: String) -> StyledLine { StyledLine(text, .title) }

  private func wrappedHeading(_ text: String) -> [StyledLine] {
    wrapped(text, to: columns).map(heading)
  }

  private func loopSection(_ view: ListingView, _ place: String?) -> [StyledLine] {
    let function = view.function
    let bytes = counted(Int(function.end - function.start), "byte", "bytes")
    let title =
      "\(function.name) of \(program.source.rawValue), as compiled "
      + "(\(CodeReader.architecture), \(bytes) at \(hex(function.start)))"
    let words = place.map { wrapped($0, to: columns).map { StyledLine($0) } } ?? []
    return wrappedHeading(title) + fitted(view.lines()) + words
  }

  private func switchSection(_ view: ListingView) -> [StyledLine] {
    let function = view.function
    let bytes = counted(Int(function.end - function.start), "byte", "bytes")
    let title = "weft_swapcontext(from, to), as it runs (\(bytes) at \(hex(function.start)))"
    return wrappedHeading(title) + fitted(view.lines())
  }

  /// Both sources, beside each other where there is room.
  private func sourceSection() -> [StyledLine] {
    let sides = [SourceFile.x86, .arm].map { file in
      [heading(file.rawValue)] + SwitchSource.instructions(file).map(sourceLine)
    }
    guard columns >= 100 else { return fitted(sides[0] + [""] + sides[1]) }
    let left = (columns - 2) / 2
    let rows = max(sides[0].count, sides[1].count)
    return (0..<rows).map { row in
      let first = row < sides[0].count ? sides[0][row] : StyledLine()
      let second = row < sides[1].count ? sides[1][row] : StyledLine()
      return first.fitted(to: left, ellipsis: console.glyphs.ellipsis) + "  "
        + second.clipped(to: columns - left - 2, ellipsis: console.glyphs.ellipsis)
    }
  }

  private func sourceLine(_ text: String) -> StyledLine {
    StyledLine(text, text.contains("/*") ? .dim : .plain)
  }

  private func fitted(_ lines: [StyledLine]) -> [StyledLine] {
    lines.map { $0.clipped(to: columns, ellipsis: console.glyphs.ellipsis) }
  }
}
