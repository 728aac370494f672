// StyledText.swift - lines of text whose parts have a tone, cut and padded by columns.
//
// Layout works on these, so that it never has to look past escape codes; only the last step turns
// tones into colour, or leaves them out.

/// What a piece of text means. Colour is chosen in one place, `Palette`.
enum Tone: Equatable {
  case plain, dim, strong, title, leaving, entering, register, symbol, value, guardArea, good, bad
}

/// A piece of text in one tone. Every character in use is one column wide.
struct Span: Equatable {
  var text: String
  var tone: Tone = .plain
}

/// One line on the screen.
struct StyledLine: Equatable, ExpressibleByStringInterpolation {
  var spans: [Span]

  init(_ spans: [Span] = []) { self.spans = spans }
  init(_ text: String, _ tone: Tone = .plain) { spans = [Span(text: text, tone: tone)] }
  init(stringLiteral text: String) { self.init(text) }

  var width: Int { spans.reduce(0) { $0 + $1.text.count } }
  var text: String { spans.map(\.text).joined() }

  static func + (left: StyledLine, right: StyledLine) -> StyledLine {
    StyledLine(left.spans + right.spans)
  }

  /// The line cut to a width. What is cut off shows as an ellipsis.
  func clipped(to columns: Int, ellipsis: String = "…") -> StyledLine {
    guard width > columns else { return self }
    guard columns > 0 else { return StyledLine() }
    var kept: [Span] = []
    var room = columns - 1
    for span in spans where room > 0 {
      let text = String(span.text.prefix(room))
      kept.append(Span(text: text, tone: span.tone))
      room -= text.count
    }
    kept.append(Span(text: ellipsis, tone: .dim))
    return StyledLine(kept)
  }

  /// The line cut or filled with blanks to exactly a width.
  func fitted(to columns: Int, ellipsis: String = "…") -> StyledLine {
    let cut = clipped(to: columns, ellipsis: ellipsis)
    let missing = columns - cut.width
    return missing > 0 ? cut + StyledLine(String(repeating: " ", count: missing)) : cut
  }

  /// The line as it goes to a terminal or a file.
  func rendered(color: Bool) -> String {
    guard color else {
      // Blanks at the end are layout; in a file they would be noise.
      let whole = text
      guard let last = whole.lastIndex(where: { $0 != " " }) else { return "" }
      return String(whole[...last])
    }
    return spans.map { Palette.paint($0) }.joined()
  }
}

/// The colours: the sixteen that every terminal has, so that the user's theme decides the rest.
enum Palette {
  static func code(_ tone: Tone) -> String? {
    switch tone {
    case .plain: nil
    case .dim: "2"
    case .strong: "1"
    case .title: "1;36"
    case .leaving: "33"
    case .entering: "1;32"
    case .register: "36"
    case .symbol: "35"
    case .value: "1;33"
    case .guardArea: "31"
    case .good: "32"
    case .bad: "1;31"
    }
  }

  static func paint(_ span: Span) -> String {
    guard let code = code(span.tone), !span.text.isEmpty else { return span.text }
    return "\u{1B}[\(code)m\(span.text)\u{1B}[0m"
  }
}
