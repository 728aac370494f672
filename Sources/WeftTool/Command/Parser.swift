// Parser.swift - from words to an invocation, by the command table.

/// Reads a command line.
struct Parser {
  private var words: ArraySlice<String>
  private var path: [String] = []
  private var command: Command
  private var values: [String: String] = [:]
  private var extra: [String] = []

  /// Understands the words after the program's name, or throws a `ToolError`.
  static func parse(_ words: [String]) throws -> Invocation {
    guard let root = CommandTable.command(at: []) else {
      throw ToolError.failure("the command table has no root")
    }
    var parser = Parser(words: words[...], command: root)
    return try parser.parse()
  }

  private init(words: ArraySlice<String>, command: Command) {
    self.words = words
    self.command = command
  }

  private mutating func parse() throws -> Invocation {
    var optionsEnded = false
    var pending: [(name: String, value: String?)] = []
    while let word = words.popFirst() {
      if word == "--" {
        optionsEnded = true
      } else if word.hasPrefix("-"), word != "-", !optionsEnded {
        pending.append(try takeOption(word))
      } else {
        do {
          try takeWord(word)
        } catch {
          // The value of a misspelt option is no command: the option is what is wrong.
          guard let slip = pending.first(where: { !Parser.isOption($0.name) }) else { throw error }
          throw Parser.unknownOption(slip.name, of: command)
        }
      }
    }
    for (name, value) in pending { try accept(name, value) }
    try checkCombinations()
    let color = ColorChoice(rawValue: values["color"] ?? "auto") ?? .auto
    return Invocation(
      command: command, values: values, words: extra, console: Console(color: color))
  }

  private mutating func takeWord(_ word: String) throws {
    if command.takesWords {
      extra.append(word)
    } else if let next = CommandTable.command(at: path + [word]) {
      command = next
      path.append(word)
    } else {
      throw Parser.unknown(path + [word])
    }
  }

  /// Splits `--name=value`, and takes the next word as the value of an option that wants one.
  /// Which command the option belongs to is known only at the end, so it is looked up in all.
  private mutating func takeOption(_ word: String) throws -> (name: String, value: String?) {
    let isLong = word.hasPrefix("--")
    let body = word.drop { $0 == "-" }
    let parts = body.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let given = String(parts.first ?? "")
    let known = CommandTable.all.flatMap { $0.options + CommandTable.common }
    let match = known.first { option in
      isLong ? option.name == given : given.count == 1 && option.short == given.first
    }
    guard let option = match else { return (given, nil) }
    if parts.count == 2 { return (option.name, String(parts[1])) }
    guard option.value != nil else { return (option.name, nil) }
    // A single dash may start a value: --upto -5 is to be refused as a number, not as an option.
    guard let next = words.first, !next.hasPrefix("--") else { return (option.name, nil) }
    words.removeFirst()
    return (option.name, next)
  }

  /// Whether any command has an option of this name.
  private static func isOption(_ name: String) -> Bool {
    CommandTable.all.contains { ($0.options + CommandTable.common).contains { $0.name == name } }
  }

  private mutating func accept(_ name: String, _ value: String?) throws {
    let options = command.options + CommandTable.common
    guard let option = options.first(where: { $0.name == name }) else {
      throw Parser.unknownOption(name, of: command)
    }
    guard values[name] == nil else {
      throw ToolError.usage("--\(name) is given twice", remedy: "Keep one of them.")
    }
    switch (option.value, value) {
    case (nil, nil): values[name] = ""
    case (nil, .some(let value)):
      throw ToolError.usage("--\(name) takes no value, but got '\(value)'")
    case (.some(let placeholder), nil):
      throw ToolError.usage(
        "--\(name) needs a value", remedy: "As in: \(command.name) --\(name) \(placeholder)")
    case (.some, .some(let value)):
      guard option.choices.isEmpty || option.choices.contains(value) else {
        throw ToolError.usage(
          "--\(name) \(value): no such choice",
          remedy: Suggestion.remedy(for: value, among: option.choices)
            ?? "It is one of: \(option.choices.joined(separator: ", ")).")
      }
      values[name] = value
    }
  }

  private func checkCombinations() throws {
    for option in command.options where values[option.name] != nil {
      for other in option.excludes where values[other] != nil {
        throw ToolError.usage("--\(option.name) and --\(other) do not go together")
      }
    }
  }

  static func unknown(_ path: [String]) -> ToolError {
    let known = path.indices.reversed().map { Array(path[..<$0]) }.first {
      CommandTable.command(at: $0) != nil
    }
    let parent = known ?? []
    let word = path[parent.count]
    let names = CommandTable.children(of: parent).compactMap(\.path.last)
    let place = (["weft"] + parent).joined(separator: " ")
    return .usage(
      "'\(word)' is no command of '\(place)'",
      remedy: Suggestion.remedy(for: word, among: names) ?? "Try '\(place) --help'.")
  }

  private static func unknownOption(_ name: String, of command: Command) -> ToolError {
    let names = (command.options + CommandTable.common).map(\.name)
    let suggestion = Suggestion.closest(to: name, among: names).map { "Did you mean '--\($0)'?" }
    let dashes = name.count == 1 ? "-" : "--"
    return .usage(
      "'\(command.name)' has no option '\(dashes)\(name)'",
      remedy: suggestion ?? "Try '\(command.name) --help'.")
  }
}
