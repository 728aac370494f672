// Tool.swift - the weft command: one call in, one exit code out.

/// The `weft` command.
public enum Tool {
  /// Runs the command and returns its exit code.
  ///
  /// - Parameter arguments: The command line, beginning with the program's name.
  /// - Returns: 0 for success, 1 for a failure, 2 for a failed check, 64 for a bad command line.
  public static func run(_ arguments: [String]) -> Int32 {
    // A reader that has left is reported by write(), and ends the command without a word.
    _ = signal(SIGPIPE, SIG_IGN)
    do {
      let invocation = try Parser.parse(Array(arguments.dropFirst()))
      if invocation.has("help") {
        let console = invocation.console
        try console.lines(Help.text(for: invocation.command, console))
        return ExitCode.success.rawValue
      }
      return try invocation.command.run(invocation).rawValue
    } catch OutputError.closed {
      return ExitCode.success.rawValue
    } catch OutputError.failed(let number) {
      return report(.failure("cannot write: \(errorText(number))"))
    } catch let error as ToolError {
      return report(error)
    } catch {
      return report(.failure("\(error)"))
    }
  }

  private static func report(_ error: ToolError) -> Int32 {
    let remedy = error.remedy.map { "\n      \($0)" } ?? ""
    // Standard error may be closed as well; the exit code still tells.
    try? Output.error.line("weft: \(error.message)\(remedy)")
    return error.code.rawValue
  }
}
