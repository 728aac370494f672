// InfoCommand.swift - `weft info`: one table of facts, as text or as JSON.

/// Prints what the runtime and the machine are like.
enum InfoCommand {
  static func run(_ invocation: Invocation) throws -> ExitCode {
    let groups = RuntimeFacts.groups + HostFacts.groups
    let console = invocation.console
    if invocation.has("json") {
      try console.json(json(groups))
    } else {
      try console.lines(text(groups, columns: console.size.columns))
    }
    return .success
  }

  static func json(_ groups: [FactGroup]) -> JSON {
    let members = groups.map { group in
      JSON.Member(
        key: group.key,
        value: .object(group.facts.map { JSON.Member(key: $0.key, value: $0.value) }))
    }
    let head = [
      JSON.Member(key: "schema", value: "weft.info/1"),
      JSON.Member(key: "version", value: .string(CommandTable.version)),
    ]
    return .object(head + members)
  }

  static func text(_ groups: [FactGroup], columns: Int) -> [StyledLine] {
    let width = groups.flatMap(\.facts).map(\.label.count).max() ?? 0
    var lines = [StyledLine("weft \(CommandTable.version)", .title)]
    for group in groups {
      lines += ["", StyledLine(group.title, .strong)]
      for fact in group.facts {
        let label = StyledLine("  " + fact.label.padded(to: width + 2), .register)
        let value = StyledLine(fact.shownText)
        let note = fact.note.map { StyledLine("  (\($0))", .dim) } ?? StyledLine()
        let whole = label + value + note
        if whole.width <= columns {
          lines.append(whole)
        } else {
          // A note that has no room goes into lines of its own.
          lines.append((label + value).clipped(to: columns))
          let indent = min(width + 4, columns / 3)
          lines += wrapped(fact.note ?? "", to: max(16, columns - indent)).map {
            StyledLine(String(repeating: " ", count: indent) + $0, .dim)
          }
        }
      }
    }
    return lines.map { $0.clipped(to: columns) }
  }
}
