// Console.swift - where a command's output goes, and how wide and colourful it may be.
import CWeftDemo

/// When colour is used.
enum ColorChoice: String, CaseIterable {
  case auto, always, never

  /// `auto` means: on a terminal that can, unless `NO_COLOR` is set (no-color.org).
  func allows(terminal: Bool, _ variable: (String) -> String? = environmentVariable) -> Bool {
    switch self {
    case .always: true
    case .never: false
    case .auto: terminal && variable("NO_COLOR") == nil && variable("TERM") != "dumb"
    }
  }
}

/// Columns and rows of a screen.
struct ScreenSize: Equatable {
  var columns: Int
  /// Nil where there is no screen to overflow.
  var rows: Int?

  static let plain = ScreenSize(columns: 80, rows: nil)

  /// `COLUMNS` counts where there is no window to ask.
  static func current(_ output: Output) -> ScreenSize {
    var window = winsize()
    // SAFETY: TIOCGWINSZ fills the structure that it is given, which lives through the call.
    let failed = unsafe ioctl(output.descriptor, UInt(TIOCGWINSZ), &window) != 0
    if !failed, window.ws_col > 0 {
      return ScreenSize(
        columns: Int(window.ws_col), rows: window.ws_row > 0 ? Int(window.ws_row) : nil)
    }
    if let text = environmentVariable("COLUMNS"), let columns = Int(text), columns > 0 {
      return ScreenSize(columns: min(columns, 500), rows: nil)
    }
    return .plain
  }
}

/// The streams of one run of the command.
struct Console {
  var out = Output.standard
  var err = Output.error
  var color = false
  var glyphs = Glyphs.unicode

  var size: ScreenSize { .current(out) }

  init(color choice: ColorChoice = .auto) {
    color = choice.allows(terminal: out.isTerminal)
    glyphs = .forLocale()
  }

  func line(_ line: StyledLine) throws(OutputError) {
    try out.line(line.rendered(color: color))
  }

  func line(_ text: String = "") throws(OutputError) {
    try out.line(text)
  }

  func lines(_ lines: [StyledLine]) throws(OutputError) {
    try out.write(lines.map { $0.rendered(color: color) + "\n" }.joined())
  }

  func json(_ value: JSON) throws(OutputError) {
    try out.line(value.text)
  }
}
