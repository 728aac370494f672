// Help.swift - the help of a command, made from its entry in the table.

/// Help texts.
enum Help {
  static func text(for command: Command, _ console: Console) -> [StyledLine] {
    let columns = min(console.size.columns, 100)
    var lines = [
      StyledLine("\(command.name)", .title) + StyledLine(" - \(command.summary)")
    ]
    for paragraph in command.details {
      lines.append("")
      lines += wrapped(paragraph, to: columns).map { StyledLine($0) }
    }
    let children = CommandTable.children(of: command.path)
    lines += section(
      "Usage", usage(command, hasChildren: !children.isEmpty).map { ($0, "") }, columns)
    lines += section("Commands", children.map { ($0.path.last ?? "", $0.summary) }, columns)
    lines += section("Options", (command.options + CommandTable.common).map(row), columns)
    lines += section("Examples", command.examples.map { ($0.line, $0.meaning) }, columns)
    if command.path.isEmpty {
      let codes = ExitCode.allCases.map { (String($0.rawValue), $0.meaning) }
      lines += section("Exit codes", codes, columns)
    }
    return lines
  }

  private static func usage(_ command: Command, hasChildren: Bool) -> [String] {
    var forms = ["\(command.name) [options]"]
    if hasChildren { forms.append("\(command.name) <command> [options]") }
    if command.takesWords { forms = ["\(command.name) [command ...]"] }
    return forms
  }

  private static func row(_ option: CommandOption) -> (String, String) {
    let short = option.short.map { "-\($0), " } ?? "    "
    return (short + option.spelled, option.summary)
  }

  /// A heading and two columns; where the screen is narrow, the second goes under the first.
  private static func section(
    _ title: String, _ rows: [(String, String)], _ columns: Int
  ) -> [StyledLine] {
    guard !rows.isEmpty else { return [] }
    var lines = ["", StyledLine("\(title):", .strong)]
    let widest = rows.map(\.0.count).max() ?? 0
    let left = widest + 4
    let isStacked = columns - left < 24
    for (name, meaning) in rows {
      let indent = isStacked ? 6 : left
      let texts = wrapped(meaning, to: max(20, columns - indent))
      let first = StyledLine("  " + name.padded(to: isStacked ? 0 : widest + 2), .register)
      if isStacked || texts.isEmpty {
        lines.append(first)
        lines += texts.map { StyledLine(String(repeating: " ", count: 6) + $0) }
      } else {
        lines.append(first + StyledLine(texts[0]))
        lines += texts.dropFirst().map { StyledLine(String(repeating: " ", count: left) + $0) }
      }
    }
    return lines
  }
}
