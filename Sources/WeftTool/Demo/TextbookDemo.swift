// TextbookDemo.swift - `weft demo swap` and `weft demo sum`, in each of their forms.
import CWeftDemo

/// What a run of the dealt sum came to.
struct DealReport: Equatable {
  var upto: Int64
  var coroutines: Int
  var total: Int64
  var switches: Int64

  /// N(N+1)/2, without overflow on the way: one of the two factors is even.
  var expected: Int64 {
    upto.isMultiple(of: 2) ? upto / 2 * (upto + 1) : (upto + 1) / 2 * upto
  }

  var isCorrect: Bool { total == expected }
  var exitCode: ExitCode { isCorrect ? .success : .checkFailed }

  var json: JSON {
    [
      "schema": "weft.demo.sum/1", "upto": .int(upto), "coroutines": .int(coroutines),
      "sum": .int(total), "expected": .int(expected), "correct": .bool(isCorrect),
      "switches": .int(switches),
    ]
  }
}

/// A demo that runs one of the C programs.
struct TextbookDemo {
  /// The largest N whose sum fits 64 bits with a sign.
  static let uptoMax: Int64 = 4_294_967_295

  let program: Program
  let invocation: Invocation

  init(_ program: Program, _ invocation: Invocation) throws {
    self.program = try TextbookDemo.dealt(invocation) ?? program
    self.invocation = invocation
  }

  /// The program that --upto and --coroutines ask for, nil without them.
  private static func dealt(_ invocation: Invocation) throws -> Program? {
    let upto = try invocation.number(
      "upto", in: 0...uptoMax, why: "the sum would overflow 64 bits")
    let most = Int64(WEFT_DEMO_COROUTINES_MAX)
    let coroutines = try invocation.number(
      "coroutines", in: 1...most, why: "each one maps a stack of its own")
    guard upto != nil || coroutines != nil else { return nil }
    // --coroutines alone deals the article's numbers; its 0 adds nothing.
    let last = upto ?? 9
    let workers = coroutines ?? min(2, max(1, last))
    guard workers <= max(1, last) else {
      throw ToolError.usage(
        "--coroutines \(workers): more than there are numbers to add (\(last))",
        remedy: "Give at most \(max(1, last)), or a larger --upto.")
    }
    return .deal(upto: last, coroutines: Int(workers))
  }

  func run() throws -> ExitCode {
    if invocation.has("asm") {
      return try ListingCommand(program, invocation.console).run(
        json: invocation.has("json"))
    }
    if invocation.has("step") || (invocation.has("json") && !isDealt) {
      try checkStepLimit()
      return try StepCommand(
        try Machine(program), invocation.console, json: invocation.has("json")
      ).run(isScripted: invocation.has("step"))
    }
    return try runThrough()
  }

  private var isDealt: Bool {
    if case .deal = program { return true }
    return false
  }

  private func checkStepLimit() throws {
    guard case .deal(let upto, let coroutines) = program else { return }
    let switches = upto + Int64(coroutines) + 1
    guard switches <= Int64(Machine.switchesMax) else {
      throw ToolError.usage(
        "--step: \(grouped(Int(switches))) switches are too many to walk through",
        remedy: "Step through at most \(grouped(Machine.switchesMax)), or leave out --step.")
    }
  }

  /// The program as it is, at full speed.
  private func runThrough() throws -> ExitCode {
    try Machine.open(program)
    defer { weft_demo_close() }
    let asJSON = invocation.has("json")
    let failure = weft_demo_run(asJSON ? 0 : 1)
    if failure == EPIPE { throw OutputError.closed }
    if failure != 0 { throw OutputError.failed(errno: failure) }
    guard case .deal(let upto, let coroutines) = program else { return .success }
    let report = DealReport(
      upto: upto, coroutines: coroutines, total: weft_demo_total(), switches: weft_demo_switches())
    if asJSON { try invocation.console.json(report.json) }
    guard report.isCorrect else {
      throw ToolError.check("the sum is \(report.total), but N(N+1)/2 is \(report.expected)")
    }
    if !asJSON {
      let workers = counted(coroutines, "coroutine", "coroutines")
      let switches = counted(Int(report.switches), "switch", "switches")
      try invocation.console.err.line("\(workers), \(switches); N(N+1)/2 agrees.")
    }
    return .success
  }
}

/// `weft demo`.
enum DemoList {
  static func run(_ invocation: Invocation) throws -> ExitCode {
    let console = invocation.console
    if invocation.has("json") {
      let demos = CommandTable.demos.map { command -> JSON in
        [
          "name": .string(command.path.last ?? ""), "summary": .string(command.summary),
          "run": .string(command.name),
          "options": .array(command.options.map { .string("--" + $0.name) }),
        ]
      }
      try console.json(["schema": "weft.demos/1", "demos": .array(demos)])
      return .success
    }
    let width = CommandTable.demos.map(\.name.count).max() ?? 0
    for command in CommandTable.demos {
      try console.line(
        StyledLine(command.name.padded(to: width + 2), .register) + StyledLine(command.summary))
    }
    try console.line()
    try console.line("Walk through one with --step: weft demo sum --step")
    return .success
  }
}
