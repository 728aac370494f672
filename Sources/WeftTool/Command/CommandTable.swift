// CommandTable.swift - every command there is. Help, validation and suggestions come from here.

/// The table.
enum CommandTable {
  static let version = "0.1.0"

  /// What every command takes.
  static let common = [
    CommandOption(name: "help", short: "h", summary: "show this help"),
    CommandOption(
      name: "color", value: "WHEN", summary: "colour: auto, always or never (NO_COLOR is heeded)",
      choices: ColorChoice.allCases.map(\.rawValue)),
  ]

  static let json = CommandOption(name: "json", summary: "print JSON instead of text")

  static var all: [Command] { [root, demo] + demos + [info, help] }

  static var demos: [Command] { [swap, sum] + libraryDemos + poolDemos + syncDemos }

  static func command(at path: [String]) -> Command? { all.first { $0.path == path } }

  /// The commands one word further than `path`.
  static func children(of path: [String]) -> [Command] {
    all.filter { $0.path.count == path.count + 1 && $0.path.starts(with: path) }
  }

  static var root: Command {
    Command(
      path: [], summary: "stackful coroutines for Swift: demos and facts",
      options: [CommandOption(name: "version", summary: "print the version")],
      examples: [
        CommandExample(line: "weft demo", meaning: "list the demos"),
        CommandExample(line: "weft demo sum --step", meaning: "watch two stacks, switch by switch"),
        CommandExample(line: "weft info", meaning: "what the runtime found on this machine"),
      ],
      run: { invocation in
        if invocation.has("version") {
          try invocation.console.line("weft \(version)")
        } else {
          try invocation.console.lines(Help.text(for: invocation.command, invocation.console))
        }
        return .success
      })
  }

  static var help: Command {
    Command(
      path: ["help"], summary: "show the help of a command",
      examples: [CommandExample(line: "weft help demo sum", meaning: "the same as --help there")],
      takesWords: true,
      run: { invocation in
        guard let command = command(at: invocation.words) else {
          throw Parser.unknown(invocation.words)
        }
        try invocation.console.lines(Help.text(for: command, invocation.console))
        return .success
      })
  }

  static var info: Command {
    Command(
      path: ["info"], summary: "what the runtime found on this machine",
      details: [
        "Architecture, the switch in use, stacks and guards, the scheduler, cores and limits."
      ],
      options: [json],
      examples: [
        CommandExample(line: "weft info", meaning: "a table"),
        CommandExample(line: "weft info --json", meaning: "one JSON object"),
      ],
      run: InfoCommand.run)
  }
}
