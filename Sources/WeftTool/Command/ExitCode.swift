// ExitCode.swift - how the command ends.

/// The exit codes, as `weft --help` lists them.
enum ExitCode: Int32, CaseIterable {
  case success = 0
  case failure = 1
  case checkFailed = 2
  case usage = 64

  var meaning: String {
    switch self {
    case .success: "all is well"
    case .failure: "something failed that should not, such as mapping a stack"
    case .checkFailed: "a demo computed something wrong"
    case .usage: "the command line makes no sense"
    }
  }
}

/// An end of the command that needs a word on standard error.
struct ToolError: Error, Equatable {
  var code: ExitCode
  var message: String
  /// What to do about it.
  var remedy: String?

  static func usage(_ message: String, remedy: String? = nil) -> ToolError {
    ToolError(code: .usage, message: message, remedy: remedy)
  }

  static func failure(_ message: String, remedy: String? = nil) -> ToolError {
    ToolError(code: .failure, message: message, remedy: remedy)
  }

  static func check(_ message: String) -> ToolError {
    ToolError(code: .checkFailed, message: message, remedy: nil)
  }
}
