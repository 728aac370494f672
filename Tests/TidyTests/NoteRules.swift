// Rules about notes: constructs that need an argument beside them.

extension Rules {
  /// Each unsafe construct has its argument above it: all but those that only pass an unsafe value
  /// on, `return unsafe block`.
  static func safetyNotes(_ file: SourceFile) -> [Finding] {
    guard file.isSwift else { return [] }
    return unnoted(in: file, tag: "SAFETY:") { code in
      if code.contains("@unchecked Sendable") { return "@unchecked Sendable" }
      if code.contains("nonisolated(unsafe)") { return "nonisolated(unsafe)" }
      if code.contains("unowned(unsafe)") { return "unowned(unsafe)" }
      return usesUnsafeValue(code) ? "unsafe" : nil
    }
  }

  /// Whether the keyword stands before more than a name: a call, an element, what is pointed to.
  private static func usesUnsafeValue(_ code: String) -> Bool {
    // Not the attribute: it makes callers write the keyword.
    let code = code.replacing("@unsafe", with: "")
    guard contains(word: "unsafe", in: code), let keyword = code.firstRange(of: "unsafe") else {
      return false
    }
    let rest = code[keyword.upperBound...]
    return rest.contains { "([{&".contains($0) } || rest.contains("pointee")
      || rest.allSatisfy { $0 == " " }
  }

  /// Each atomic operation of the product says what its order pairs with, or the declaration of
  /// the atomic does, for all of them.
  static func orderingNotes(_ file: SourceFile) -> [Finding] {
    guard file.area == "Sources" || file.area == "asm", file.isSwift || file.isC else { return [] }
    let marks = file.isSwift ? ["rdering: ."] : ["memory_order_", "__ATOMIC_"]
    let explained = explainedAtomics(of: file)
    return unnoted(in: file, tag: "ORDERING:") { code in
      guard marks.contains(where: { code.contains($0) }) else { return nil }
      return explained.contains { contains(word: $0, in: code) } ? nil : "an atomic operation"
    }
  }

  /// Names of atomics that are declared right below a note about their order, without an empty
  /// line in between.
  private static func explainedAtomics(of file: SourceFile) -> [String] {
    var names: [String] = []
    var isNoted = false
    for (line, code) in zip(file.lines, file.code) {
      if line.allSatisfy({ $0 == " " }) { isNoted = false }
      if line.contains("ORDERING:") { isNoted = true }
      guard isNoted, code.contains("_Atomic") || code.contains("Atomic<") else { continue }
      // `static _Atomic(int) count = 0;`, `let count: Atomic<Int>`, `let count = Atomic<Int>(0)`
      let head = code.prefix { $0 != "=" && $0 != ";" && $0 != ":" }
      names += head.split { !isWordPart($0) }.suffix(1).map(String.init)
    }
    return names
  }

  /// How far above a construct its note may be.
  static let noteDistanceMax = 20
  /// How far apart the constructs of one run may be, which share a note.
  static let runGapMax = 2

  /// Lines with a construct and without a note. The note is a comment in that line or at most
  /// `noteDistanceMax` lines above it in the same declaration; a run of adjacent lines shares one.
  private static func unnoted(
    in file: SourceFile, tag: String, construct: (String) -> String?
  ) -> [Finding] {
    var findings: [Finding] = []
    var lastNoted: Int?
    for (index, code) in file.code.enumerated() {
      guard let what = construct(code) else { continue }
      let start = startOfDeclaration(around: index, in: file)
      let nearest = max(start, index - noteDistanceMax)
      let isNoted = file.lines[nearest...index].contains { $0.contains(tag) }
      let isInRun = lastNoted.map { $0 >= max(start, index - runGapMax) } ?? false
      if isNoted || isInRun {
        lastNoted = index
      } else {
        findings.append(
          Finding(path: file.path, line: index + 1, message: "\(what) without \(tag) above it"))
      }
    }
    return findings
  }

  /// The first line of the function that holds `index`, with its signature and what is written
  /// right above it; outside of functions, the line after the end of the previous declaration.
  private static func startOfDeclaration(around index: Int, in file: SourceFile) -> Int {
    var depth = 0
    var afterSibling = 0
    for line in stride(from: index - 1, through: 0, by: -1) {
      for character in file.code[line].reversed() {
        if character == "}" {
          if depth == 0 { afterSibling = max(afterSibling, line + 1) }
          depth += 1
        } else if character == "{" {
          if depth > 0 {
            depth -= 1
            continue
          }
          switch kind(of: line, in: file) {
          case .type: return max(afterSibling, line + 1)
          case .function: return head(of: line, in: file)
          // What ended in here ended inside the function.
          case .block: afterSibling = 0
          }
        }
      }
    }
    return afterSibling
  }

  private enum Kind { case type, function, block }

  /// What the brace in a line opens.
  private static func kind(of line: Int, in file: SourceFile) -> Kind {
    let code = file.code[line]
    guard file.isSwift else { return code.hasPrefix(" ") ? .block : .function }
    let types = ["struct", "class", "enum", "extension", "protocol", "actor"]
    if types.contains(where: { contains(word: $0, in: code) }) { return .type }
    let functions = ["func", "init", "deinit", "subscript", "var"]
    // The last line of a long signature, not of a call whose closure has parameters.
    let endsSignature = code.drop { $0 == " " }.hasPrefix(")") && !code.hasSuffix(" in")
    let isFunction = endsSignature || functions.contains { contains(word: $0, in: code) }
    return isFunction ? .function : .block
  }

  /// The first of the lines right above a brace that belong to it: signature and comments.
  private static func head(of line: Int, in file: SourceFile) -> Int {
    var line = line
    while line > 0 {
      let above = file.code[line - 1].filter { $0 != " " }
      let isEmpty = file.lines[line - 1].allSatisfy { $0 == " " }
      if isEmpty || above.hasSuffix("{") || above.hasSuffix("}") { break }
      line -= 1
    }
    return line
  }
}
