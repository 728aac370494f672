// TerminalTests.swift - the stepper on a real pseudo-terminal, and from a script.
import Testing

@testable import WeftTool

/// One at a time, so that the names of pseudo-terminals are not mixed up.
@Suite(.serialized) struct TerminalTests {
  private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
  private static let leave = "\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"

  /// Starts the stepper and waits for its first picture.
  private func started(
    _ demo: String, columns: UInt16 = 80, rows: UInt16 = 24, environment: [String: String] = [:]
  ) throws -> (child: TerminalChild, before: [UInt32]) {
    let child = try TerminalChild(
      "demo", demo, "--step", columns: columns, rows: rows, environment: environment)
    try child.expect("? help")
    return (child, child.settings)
  }

  /// What the terminal was like before a child changed it.
  private func freshSettings() throws -> [UInt32] {
    let child = try TerminalChild("--version")
    try child.expect("weft")
    _ = child.finish()
    return child.settings
  }

  @Test func keysWalkBackAndForth() throws {
    let fresh = try freshSettings()
    let (child, during) = try started("sum")
    #expect(during != fresh, "keys come one by one while the stepper runs")
    #expect(child.seen.contains(Self.enter))
    try child.send("\n")
    #expect(try child.expect("? help").contains("switch 2 of 22"))
    try child.send("\n")
    #expect(try child.expect("? help").contains("switch 3 of 22"))
    try child.send("b")
    #expect(try child.expect("? help").contains("switch 2 of 22"))
    try child.send("?")
    try child.expect("goes back to the picture")
    try child.send("\n")
    #expect(try child.expect("? help").contains("switch 2 of 22"))
    try child.send("c")
    #expect(try child.expect("? help").contains("the end, after 22 switches"))
    try child.send("q")
    #expect(child.finish() == 0)
    #expect(child.seen.contains(Self.leave))
    #expect(child.settings == fresh)
    // What the program printed stays on the ordinary screen.
    let after = child.seen.components(after: Self.leave)
    #expect(after.contains("sum: 45"))
  }

  @Test(arguments: ["q", "\u{4}"]) func quittingRestores(_ key: String) throws {
    let fresh = try freshSettings()
    let (child, _) = try started("swap")
    try child.send(key)
    #expect(child.finish() == 0)
    #expect(child.seen.hasSuffix(Self.leave))
    #expect(child.settings == fresh)
  }

  /// It would leave the shell a terminal in our settings.
  @Test func suspendingIsOff() throws {
    let (child, _) = try started("sum")
    try child.send("\u{1A}\n")
    #expect(try child.expect("? help").contains("switch 2 of 22"))
    try child.send("q")
    #expect(child.finish() == 0)
  }

  @Test func controlCRestores() throws {
    let fresh = try freshSettings()
    let (child, _) = try started("sum")
    child.settle()
    try child.send("\u{3}")
    // Ended by the signal itself, as shells expect.
    #expect(child.finish() == 128 + SIGINT)
    #expect(child.seen.hasSuffix(Self.leave))
    #expect(child.settings == fresh)
  }

  @Test(arguments: [SIGTERM, SIGHUP]) func signalsRestore(_ number: Int32) throws {
    let fresh = try freshSettings()
    let (child, _) = try started("sum")
    child.settle()
    child.sendSignal(number)
    #expect(child.finish() == 128 + number)
    #expect(child.seen.hasSuffix(Self.leave))
    #expect(child.settings == fresh)
  }

  @Test func colourOnlyWithoutNoColor() throws {
    let (colourful, _) = try started("swap")
    #expect(colourful.seen.contains("\u{1B}[1;36m"))
    try colourful.send("q")
    _ = colourful.finish()
    let (plain, _) = try started("swap", environment: ["NO_COLOR": "1"])
    #expect(!plain.seen.contains("\u{1B}[1;36m"))
    try plain.send("q")
    _ = plain.finish()
  }

  @Test func resizingRedraws() throws {
    let (child, _) = try started("sum", columns: 120, rows: 40)
    child.resize(columns: 40, rows: 20)
    let picture = try child.expect("? help")
    let lines = picture.split(whereSeparator: \.isNewline)
    #expect(lines.allSatisfy { $0.count <= 40 })
    #expect(lines.count <= 20)
    try child.send("q")
    #expect(child.finish() == 0)
  }

  @Test func narrowTerminalShowsOneStack() throws {
    let (child, _) = try started("sum", columns: 40, rows: 20)
    try child.send("\n\n\n")
    let picture = try child.expect("switch 4")
    #expect(picture.split(whereSeparator: \.isNewline).allSatisfy { $0.count <= 40 })
    try child.send("q")
    #expect(child.finish() == 0)
  }
}

@Suite struct ScriptTests {
  private func steps(_ run: Outcome) -> [String] {
    run.lines.filter { $0.hasPrefix("weft demo") }.compactMap { line in
      line.firstRange(of: "switch ").map { String(line[$0.upperBound...].prefix { $0.isNumber }) }
    }
  }

  @Test func linesAreKeys() throws {
    let run = try weft("demo", "sum", "--step", input: "\n\nb\n\nq\n")
    #expect(steps(run).prefix(5) == ["1", "2", "3", "2", "3"])
    #expect(steps(run).count == 5)
    #expect(run.status == 0)
    #expect(run.err == "")
  }

  @Test func endOfScriptEnds() throws {
    let run = try weft("demo", "swap", "--step", input: "\n")
    #expect(steps(run) == ["1", "2"])
    #expect(run.status == 0)
  }

  @Test func emptyInputPrintsAllSteps() throws {
    let run = try weft("demo", "swap", "--step")
    #expect(steps(run) == ["1", "2", "3", "4"])
    #expect(run.out.contains("the end, after 4 switches"))
    #expect(run.out.contains("main routine"))
    #expect(run.status == 0)
  }

  @Test func runOnGoesToTheEnd() throws {
    let run = try weft("demo", "sum", "--step", input: "c\n")
    #expect(steps(run) == ["1"])
    #expect(run.out.contains("sum: 45"))
    #expect(run.status == 0)
  }

  @Test func helpAndUnknownKeys() throws {
    let run = try weft("demo", "sum", "--step", input: "?\nfoo\n\n")
    #expect(run.out.contains("run on to the end"))
    #expect(run.err.contains("'foo' is no key here"))
    #expect(steps(run) == ["1", "2"])
  }

  @Test func narrowPlainStepsAreCut() throws {
    let run = try weft("demo", "sum", "--step", environment: ["COLUMNS": "40"])
    #expect(run.lines.allSatisfy { $0.count <= 40 })
  }

  @Test func plainAsciiWhereTheLocaleHasNoMore() throws {
    let run = try weft("demo", "swap", "--step", environment: ["LANG": "C"])
    #expect(run.out.utf8.allSatisfy { $0 < 0x80 })
    #expect(run.out.contains("+- routine: is entered"))
  }
}

extension String {
  /// All that follows the last occurrence of a text.
  fileprivate func components(after text: String) -> String {
    guard let range = ranges(of: text).last else { return "" }
    return String(self[range.upperBound...])
  }
}
