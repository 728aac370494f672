// The rules of the tree, each a function from a file (or the tree) to what it finds.

/// A rule that looks at one file at a time.
typealias Rule = @Sendable (SourceFile) -> [Finding]

enum Rules {
  // MARK: Layers

  /// Who may import whom: only what is further down here.
  static let layers: [String: Int] = [
    "CWeft": 0,
    "WeftContext": 1,
    "WeftRuntime": 2,
    "WeftSync": 3, "WeftIO": 3, "WeftConcurrency": 3, "WeftTesting": 3, "WeftTrace": 3,
    "Weft": 4,
    // The demos' C programs, for the tool.
    "CWeftDemo": 4,
    "WeftTool": 5,
    "WeftCommand": 6,
  ]
  /// The one arrow between siblings.
  static let siblingImports = ["WeftIO": "WeftSync"]
  /// What comes with the compiler, the kernel and the C library.
  static let outsideModules: Set = [
    "Swift", "Synchronization", "_Concurrency", "Glibc", "Musl", "Darwin",
  ]

  static func layering(_ file: SourceFile) -> [Finding] {
    let parts = file.path.split(separator: "/").map(String.init)
    guard file.isSwift, parts.count > 2, parts[0] == "Sources" else { return [] }
    guard let own = layers[parts[1]] else {
      return [Finding(path: file.path, line: 1, message: "\(parts[1]) has no layer")]
    }
    let foundation: Set = own >= 5 ? ["Foundation"] : []
    return findings(in: file) { _, code in
      guard let module = importedModule(code) else { return nil }
      if let layer = layers[module] {
        let isAllowed = layer < own || siblingImports[parts[1]] == module
        return isAllowed ? nil : "\(parts[1]) is not above \(module)"
      }
      let isAllowed = outsideModules.contains(module) || foundation.contains(module)
      return isAllowed ? nil : "\(parts[1]) may not import \(module)"
    }
  }

  /// `Weft` of `@_exported public import struct Weft.Fiber`.
  static func importedModule(_ code: String) -> String? {
    let words = code.split { $0 == " " || $0 == "." }
    guard let keyword = words.firstIndex(of: "import") else { return nil }
    let modifiers: Set<Substring> = [
      "public", "package", "internal", "fileprivate", "private",
    ]
    guard words[..<keyword].allSatisfy({ $0.hasPrefix("@") || modifiers.contains($0) }) else {
      return nil
    }
    let kinds: Set<Substring> = [
      "struct", "class", "enum", "protocol", "func", "var", "let", "typealias",
    ]
    return words[(keyword + 1)...].first { !kinds.contains($0) }.map(String.init)
  }

  // MARK: Text

  static let linesMax = 600
  static let columnsMax = 100

  static func length(_ file: SourceFile) -> [Finding] {
    guard file.isSwift || file.isC || file.isAssembly else { return [] }
    // The text ends with a newline, after which there is an empty rest.
    let count = file.lines.last == "" ? file.lines.count - 1 : file.lines.count
    guard count > linesMax else { return [] }
    return [
      Finding(path: file.path, line: linesMax + 1, message: "\(count) lines, at most \(linesMax)")
    ]
  }

  static func columns(_ file: SourceFile) -> [Finding] {
    guard file.isSwift || file.isC || file.isAssembly else { return [] }
    return findings(in: file) { line, _ in
      line.count > columnsMax ? "\(line.count) columns, at most \(columnsMax)" : nil
    }
  }

  static func trailingBlanks(_ file: SourceFile) -> [Finding] {
    // An empty line of what a patch leaves as it is has one.
    if file.path.hasSuffix(".patch") { return [] }
    return findings(in: file) { line, _ in
      line.hasSuffix(" ") || line.hasSuffix("\t") || line.hasSuffix("\r")
        ? "blanks at the end of the line" : nil
    }
  }

  static func tabs(_ file: SourceFile) -> [Finding] {
    guard file.isSwift else { return [] }
    return findings(in: file) { line, _ in line.contains("\t") ? "a tab" : nil }
  }

  // Both lists are spelt in pieces, so that this file does not break the rule.

  static func unfinished(_ file: SourceFile) -> [Finding] {
    let marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X"]
    return findings(in: file) { line, _ in
      marks.first { contains(word: $0, in: line) }.map { "\($0): finish it, or say why not" }
    }
  }

  /// Places that exist on one machine only.
  static func machinePaths(_ file: SourceFile) -> [Finding] {
    let paths = ["home", "root", "work", "Users"].map { "/" + $0 + "/" }
    return findings(in: file) { line, _ in
      paths.first { line.contains($0) }.map { "\($0) is a path of some machine" }
    }
  }

  static func silentStops(_ file: SourceFile) -> [Finding] {
    guard file.isSwift else { return [] }
    return findings(in: file) { _, code in
      ["fatalError()", "preconditionFailure()", "assertionFailure()"]
        .first { code.contains($0) }.map { "\($0) without a message" }
    }
  }

  // MARK: The tree

  static let topLevel: Set = [
    "Package.swift", "Sources", "Tests", "Benchmarks", "asm", "README.md",
  ]

  static func topLevelEntries(_ entries: [String]) -> [Finding] {
    entries.filter { !$0.hasPrefix(".") && !topLevel.contains($0) }
      .map { Finding(path: $0, line: 1, message: "does not belong at the top") }
  }

  /// The umbrella, which the tests of all layers import, and the command's one line.
  static let untested: Set = ["Weft", "WeftCommand"]

  /// Modules with Swift code and no test folder.
  static func untestedModules(sources: [String], testFolders: [String]) -> [Finding] {
    let modules = Set(
      sources.filter { $0.hasPrefix("Sources/") && $0.hasSuffix(".swift") }
        .map { String($0.split(separator: "/")[1]) })
    return modules.subtracting(untested).sorted()
      .filter { !testFolders.contains($0 + "Tests") }
      .map { Finding(path: "Sources/\($0)", line: 1, message: "has no Tests/\($0)Tests") }
  }

  /// Test folders that the package does not build: their tests would never run.
  static func unbuiltTests(testFolders: [String], package: String) -> [Finding] {
    testFolders.filter { $0.hasSuffix("Tests") && !package.contains("\"\($0)\"") }
      .map { Finding(path: "Tests/\($0)", line: 1, message: "is not in Package.swift") }
  }

  // MARK: Helpers

  private static func findings(
    in file: SourceFile, message: (_ line: String, _ code: String) -> String?
  ) -> [Finding] {
    zip(file.lines, file.code).enumerated().compactMap { index, line in
      message(line.0, line.1).map { Finding(path: file.path, line: index + 1, message: $0) }
    }
  }

  /// Whether `word` is in `text`, not as a part of a longer one.
  static func contains(word: String, in text: String) -> Bool {
    text.ranges(of: word).contains { range in
      let before = text[..<range.lowerBound].last
      let after = text[range.upperBound...].first
      return !isWordPart(before) && !isWordPart(after)
    }
  }

  static func isWordPart(_ character: Character?) -> Bool {
    character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
  }
}
