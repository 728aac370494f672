// Command.swift - what the command table is made of.

/// An option of a command.
struct CommandOption: Equatable {
  /// Without the dashes.
  var name: String
  /// One letter, without the dash.
  var short: Character?
  /// What the value stands for (`N`), nil for an option without one.
  var value: String?
  var summary: String
  /// The values it takes, if they can be listed.
  var choices: [String] = []
  /// Options that it cannot be combined with.
  var excludes: [String] = []

  var spelled: String {
    "--" + name + (value.map { " " + $0 } ?? "")
  }
}

/// A line of `Examples:` in a command's help.
struct CommandExample: Equatable {
  var line: String
  var meaning: String
}

/// One command. Parsing, help and suggestions all read it.
struct Command {
  /// The words that name it: `["demo", "sum"]`. Empty: the tool itself.
  var path: [String]
  var summary: String
  /// A paragraph each.
  var details: [String] = []
  var options: [CommandOption] = []
  var examples: [CommandExample] = []
  /// Whether words may follow (`weft help demo sum`).
  var takesWords = false
  var run: (Invocation) throws -> ExitCode

  var name: String { (["weft"] + path).joined(separator: " ") }
}

/// A command line that was understood.
struct Invocation {
  var command: Command
  /// The value given for each option, empty for options without one.
  var values: [String: String] = [:]
  var words: [String] = []
  var console: Console

  func has(_ option: String) -> Bool { values[option] != nil }

  /// A whole number within bounds, nil if the option was not given.
  func number(_ option: String, in bounds: ClosedRange<Int64>, why: String) throws -> Int64? {
    guard let text = values[option] else { return nil }
    let digits = text.first == "-" ? text.dropFirst() : text[...]
    guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && $0.isNumber }) else {
      throw ToolError.usage(
        "--\(option) \(text): not a whole number", remedy: "Give digits, as in --\(option) 100.")
    }
    guard let value = Int64(text), bounds.contains(value) else {
      let low = text.first == "-" || Int64(text).map { $0 < bounds.lowerBound } ?? false
      throw ToolError.usage(
        "--\(option) \(text): too \(low ? "small" : "large")\(low ? "" : ", \(why)")",
        remedy: "Give a number from \(bounds.lowerBound) to \(bounds.upperBound).")
    }
    return value
  }
}
