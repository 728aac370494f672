// LibraryDemo.swift - what the demos of the library's API share.

/// What one of them found, and what it should have found.
struct LibraryResult: Equatable {
  var name: String
  var elements: [Int64]
  /// Computed in another way.
  var expected: [Int64]
  /// Numbers about the run, for JSON and for the closing remark.
  var details: [JSON.Member]
  var remark: String
  /// A picture above the elements.
  var picture: [StyledLine] = []
  var isOnePerLine = false

  var isCorrect: Bool { elements == expected }

  var json: JSON {
    .object(
      [
        JSON.Member(key: "schema", value: .string("weft.demo.\(name)/1")),
        JSON.Member(key: "elements", value: .array(elements.map { .int($0) })),
        JSON.Member(key: "correct", value: .bool(isCorrect)),
      ] + details)
  }

  /// Prints it, and ends with exit code 2 if it is wrong.
  func finish(_ invocation: Invocation) throws -> ExitCode {
    let console = invocation.console
    if invocation.has("json") {
      try console.json(json)
    } else {
      try console.lines(picture)
      let texts = elements.map { String($0) }
      let columns = min(console.size.columns, 100)
      let lines = isOnePerLine ? texts : wrapped(texts.joined(separator: " "), to: columns)
      try console.lines(lines.map { StyledLine($0) })
    }
    guard isCorrect else { throw ToolError.check("\(name): \(difference)") }
    if !invocation.has("json") { try console.err.line(remark) }
    return .success
  }

  /// Where it went wrong.
  var difference: String {
    if let index = zip(elements, expected).enumerated().first(where: { $1.0 != $1.1 })?.offset {
      return "element \(index) is \(elements[index]), but should be \(expected[index])"
    }
    return "\(elements.count) elements, but there should be \(expected.count)"
  }
}
