// The examples of the documentation, and whether a test has them.

extension Rules {
  /// Code of a doc comment, or of an article: the line that its fence begins in, and its text.
  struct Example: Equatable {
    let path: String
    let line: Int
    let text: String
  }

  /// What stands above a block of an article that a test runs.
  static let exampleMark = "<!-- example -->"

  /// The blocks between "/// ```swift" and "/// ```"; of an article those below `exampleMark`.
  static func examples(in file: SourceFile) -> [Example] {
    let isArticle = file.path.hasSuffix(".md")
    var examples: [Example] = []
    var open: (line: Int, lines: [Substring])?
    for (index, line) in file.lines.enumerated() {
      let text = isArticle ? line[...] : line.drop { $0 == " " }
      guard isArticle || text.hasPrefix("///") else { continue }
      let content = isArticle ? text : text.dropFirst(4)
      if let (start, lines) = open {
        if content == "```" {
          examples.append(
            Example(path: file.path, line: start, text: lines.joined(separator: "\n")))
          open = nil
        } else {
          open = (start, lines + [content])
        }
      } else if content == "```swift", !isArticle || file.lines[..<index].last == exampleMark {
        open = (index + 1, [])
      }
    }
    return examples
  }

  /// Those whose code is not in the file of tests. The formatter's blanks and line breaks, and
  /// semicolons for these, don't count, and neither do comments.
  static func untestedExamples(_ files: [SourceFile], tests: SourceFile?) -> [Finding] {
    let tested = bare(tests?.lines.joined(separator: "\n") ?? "")
    return files.flatMap(examples)
      .filter { !tested.contains(bare($0.text)) }
      .map { Finding(path: $0.path, line: $0.line, message: "this example is in no test") }
  }

  private static func bare(_ code: String) -> String {
    code.split(separator: "\n")
      .map { line in line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line }
      .joined().filter { $0 != " " && $0 != ";" }
  }
}
