// The source tree as text, for the rules of Rules.swift.

import Foundation

/// A text file of the tree.
struct SourceFile {
  /// From the root: `Sources/Weft/Weft.swift`.
  let path: String
  let lines: [String]
  /// The same lines with comments and the insides of string literals blanked, so that a word in
  /// them is a word of the program.
  let code: [String]

  init(path: String, text: String) {
    self.path = path
    lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    code = Blanking(text: text, rawStrings: path.hasSuffix(".swift")).lines
  }

  var isSwift: Bool { path.hasSuffix(".swift") }
  var isC: Bool { path.hasSuffix(".c") || path.hasSuffix(".h") }
  var isAssembly: Bool { path.hasSuffix(".S") }
  /// `Sources` of `Sources/Weft/Weft.swift`.
  var area: Substring { path.prefix { $0 != "/" } }
}

/// A broken rule.
struct Finding: CustomStringConvertible, Equatable {
  let path: String
  let line: Int
  let message: String

  var description: String { "\(path):\(line): \(message)" }
}

/// Everything under the root but dot-folders.
struct SourceTree {
  let root: URL
  let files: [SourceFile]

  /// The tree that this file belongs to.
  static let current = SourceTree(
    root: URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent())

  init(root: URL) {
    self.root = root
    let prefix = root.path(percentEncoded: false)
    let found = FileManager.default.enumerator(
      at: root, includingPropertiesForKeys: nil, options: [.skipsHiddenFiles])
    var files: [SourceFile] = []
    while let url = found?.nextObject() as? URL {
      // Whatever is not UTF-8 text (folders, pictures) has no lines to check.
      guard let text = try? String(contentsOf: url, encoding: .utf8) else { continue }
      let path = url.path(percentEncoded: false).dropFirst(prefix.count)
      files.append(SourceFile(path: String(path.drop { $0 == "/" }), text: text))
    }
    self.files = files.sorted { $0.path < $1.path }
  }

  /// Names in a folder of the tree, in order; none if there is no such folder.
  func entries(of folder: String) -> [String] {
    let url = root.appending(path: folder)
    return (try? FileManager.default.contentsOfDirectory(atPath: url.path).sorted()) ?? []
  }
}

/// Blanks comments and string literals, of Swift as well as of C and of assembly that goes through
/// the C preprocessor. What an interpolation computes is blanked with its string.
private struct Blanking {
  private(set) var lines: [String] = []
  private var line = ""
  private let text: [Character]
  private let rawStrings: Bool
  private var position = 0

  init(text: String, rawStrings: Bool) {
    self.text = Array(text)
    self.rawStrings = rawStrings
    while position < self.text.count { step() }
    lines.append(line)
  }

  private func starts(with word: String) -> Bool {
    text[position...].starts(with: word)
  }

  /// Takes characters over, as they are or as blanks. Lines stay lines.
  private mutating func take(_ count: Int, blank: Bool) {
    for character in text[position..<min(position + count, text.count)] {
      if character == "\n" {
        lines.append(line)
        line = ""
      } else {
        line.append(blank ? " " : character)
      }
    }
    position += count
  }

  private mutating func step() {
    if starts(with: "//") {
      while position < text.count, text[position] != "\n" { take(1, blank: true) }
    } else if starts(with: "/*") {
      comment()
    } else if starts(with: "\"") || (rawStrings && starts(with: "#\"")) {
      string()
    } else if !rawStrings, starts(with: "'\"'") {
      take(3, blank: true)
    } else {
      take(1, blank: false)
    }
  }

  private mutating func comment() {
    var depth = 0
    while position < text.count {
      if starts(with: "/*") {
        // They nest in Swift only.
        depth = rawStrings ? depth + 1 : 1
        take(2, blank: true)
      } else if starts(with: "*/") {
        depth -= 1
        take(2, blank: true)
        if depth == 0 { return }
      } else {
        take(1, blank: true)
      }
    }
  }

  private mutating func string() {
    let pounds = String(text[position...].prefix { $0 == "#" })
    let quotes = text[(position + pounds.count)...].starts(with: "\"\"\"") ? "\"\"\"" : "\""
    take(pounds.count + quotes.count, blank: true)
    while position < text.count {
      if starts(with: "\\" + pounds) {
        take(pounds.count + 2, blank: true)
      } else if starts(with: quotes + pounds) {
        take(quotes.count + pounds.count, blank: true)
        return
      } else if quotes.count == 1, text[position] == "\n" {
        // No literal of one quote goes on in the next line: this was none.
        return
      } else {
        take(1, blank: true)
      }
    }
  }
}
