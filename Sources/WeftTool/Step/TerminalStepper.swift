// TerminalStepper.swift - the stepper on a terminal: keys in, pictures drawn in place.
import CWeftDemo

/// Redraws the session's picture after every key.
struct TerminalStepper<Stepped: Steppable> {
  let session: StepSession<Stepped>
  let console: Console

  func run() throws {
    let failure = weft_tty_enter(STDIN_FILENO, console.out.descriptor)
    guard failure == 0 else {
      throw ToolError.failure("cannot read single keys: \(errorText(failure))")
    }
    do {
      defer { weft_tty_leave() }
      try draw()
      try keyLoop()
    }
    // What the program printed stays on the ordinary screen, as if it had simply run.
    for line in session.machine.isAtEnd ? session.machine.output : [] {
      try console.line(line)
    }
  }

  private func keyLoop() throws {
    while !session.isOver {
      switch weft_tty_wait() {
      case WEFT_TTY_RESIZED: try draw()
      case WEFT_TTY_KEY:
        guard let bytes = readKey() else { return }
        guard let key = StepKey(bytes: bytes), session.understands(key) else { continue }
        try session.handle(key)
        if !session.isOver { try draw() }
      default: return
      }
    }
  }

  private func draw() throws {
    let size = console.size
    let lines = session.lines(glyphs: console.glyphs, size: size)
    // Line by line from the top, each cleared behind its end: nothing flickers. No newline after
    // the last one, which would scroll a full screen.
    let body = lines.map { $0.rendered(color: console.color) + "\u{1B}[K" }
    try console.out.write("\u{1B}[H" + body.joined(separator: "\r\n") + "\u{1B}[J")
  }

  /// The bytes of one key; nil at the end of input.
  private func readKey() -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 16)
    // SAFETY: read() fills at most the count that it is given of a buffer that lives through it.
    let count = unsafe read(STDIN_FILENO, &buffer, 1)
    guard count == 1 else { return nil }
    guard buffer[0] == 0x1B else { return [buffer[0]] }
    // An arrow key is one escape sequence: what follows at once belongs to it.
    var more = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    // SAFETY: one structure, which lives through the call.
    guard unsafe poll(&more, 1, 20) == 1 else { return [buffer[0]] }
    // SAFETY: as for the first byte.
    let rest = unsafe read(STDIN_FILENO, &buffer, 2)
    return [0x1B] + buffer.prefix(max(0, rest))
  }
}
