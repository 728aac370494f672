// StepCommand.swift - `--step`: on a terminal, from a script, or into a file.
import CWeftDemo

/// Runs the stepper where it finds itself.
struct StepCommand<Stepped: Steppable> {
  let session: StepSession<Stepped>
  let console: Console
  /// One object a step instead of a picture.
  let isJSON: Bool

  init(_ machine: Stepped, _ console: Console, json: Bool) {
    session = StepSession(stepping: machine)
    self.console = console
    isJSON = json
  }

  private var machine: Stepped { session.machine }

  /// - Parameter isScripted: whether standard input may hold a script.
  func run(isScripted: Bool) throws -> ExitCode {
    let hasKeyboard = isatty(STDIN_FILENO) == 1
    if !isScripted {
      try printAll()
    } else if hasKeyboard, !isJSON, console.out.isTerminal, environmentVariable("TERM") != "dumb" {
      try TerminalStepper(session: session, console: console).run()
    } else if hasKeyboard, isJSON || !console.out.isTerminal {
      // Nobody can see what they would press Enter for.
      try printAll()
    } else {
      try runScript()
    }
    return .success
  }

  private func printAll() throws {
    try show()
    while !machine.isAtEnd {
      try machine.advance()
      try show()
    }
  }

  private func show() throws {
    if isJSON {
      try console.json(machine.json)
    } else {
      var size = console.size
      size.rows = nil
      try console.lines(machine.lines(glyphs: console.glyphs, size: size, footer: nil) + [""])
    }
  }

  /// A line of standard input is a key. An input without a single line, such as /dev/null, cannot
  /// ask for anything: then all steps are printed.
  private func runScript() throws {
    try show()
    var hasLines = false
    while !session.isOver, let line = readLine() {
      hasLines = true
      guard let key = StepKey(line: line), session.understands(key) else {
        try console.err.line("weft: '\(line)' is no key here; ? lists them")
        continue
      }
      try session.handle(key)
      if session.isOver { return }
      if let refusal = session.refusal {
        try console.err.line("weft: \(refusal)")
      } else if session.showsHelp {
        let size = ScreenSize(columns: console.size.columns)
        try console.lines(session.helpLines(size) + [""])
        try session.handle(.help)
      } else {
        try show()
      }
    }
    guard !hasLines else { return }
    while !machine.isAtEnd {
      try machine.advance()
      try show()
    }
  }
}
