// Glyphs.swift - the characters that pictures are drawn with.

/// Line-drawing characters, or their ASCII stand-ins where the locale has no UTF-8.
struct Glyphs: Equatable {
  var topLeft, topRight, bottomLeft, bottomRight, horizontal, vertical: String
  var up, right, left, pointer, pause, shade, dot, ellipsis, times: String

  static let unicode = Glyphs(
    topLeft: "┌", topRight: "┐", bottomLeft: "└", bottomRight: "┘", horizontal: "─",
    vertical: "│", up: "▲", right: "→", left: "←", pointer: "►", pause: "‖", shade: "░", dot: "·",
    ellipsis: "…", times: "×")

  static let ascii = Glyphs(
    topLeft: "+", topRight: "+", bottomLeft: "+", bottomRight: "+", horizontal: "-",
    vertical: "|", up: "^", right: "->", left: "<-", pointer: ">", pause: "=", shade: "#", dot: "-",
    ellipsis: "~", times: "x")

  /// ASCII only where the environment names a character set that is not UTF-8 (`LANG=C`); an
  /// environment that names none, as in most containers, is taken to be a modern terminal.
  static func forLocale(_ variable: (String) -> String? = environmentVariable) -> Glyphs {
    if variable("TERM") == "dumb" { return .ascii }
    guard let locale = variable("LC_ALL") ?? variable("LC_CTYPE") ?? variable("LANG") else {
      return .unicode
    }
    let name = locale.lowercased()
    return name.contains("utf-8") || name.contains("utf8") ? .unicode : .ascii
  }
}
