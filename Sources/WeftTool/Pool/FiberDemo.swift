// FiberDemo.swift - what the demos of the scheduler share: workers, timing, and the report.
import Weft
import WeftRuntime

/// What the workers counted during a run.
struct PoolCounters: Equatable {
  var workers = 0
  /// The main fiber is among them.
  var fibersMade = 0
  var switches = 0
  var steals = 0

  init() {}

  init(_ statistics: Scheduler.Statistics) {
    workers = statistics.workers.count
    fibersMade = statistics.total.fibersMade
    switches = statistics.total.switches
    steals = statistics.total.steals
  }
}

/// What a demo of the scheduler found out.
struct FiberReport {
  var name: String
  /// The result, for people: a line each.
  var lines: [String]
  /// The result, for programs.
  var members: [JSON.Member]
  /// What is wrong with it, nil if it is as it should be.
  var problem: String?
  var counters: PoolCounters
  var elapsed: Duration

  var json: JSON {
    .object(
      [JSON.Member(key: "schema", value: .string("weft.demo.\(name)/1"))] + members + [
        JSON.Member(key: "correct", value: .bool(problem == nil)),
        JSON.Member(key: "workers", value: .int(counters.workers)),
        JSON.Member(key: "switches", value: .int(counters.switches)),
        JSON.Member(key: "steals", value: .int(counters.steals)),
        JSON.Member(key: "nanoseconds", value: .int(elapsed.wholeNanoseconds)),
      ])
  }

  /// The main fiber is not counted: it is there in every run.
  var remark: String {
    let fibers = counted(max(0, counters.fibersMade - 1), "fiber", "fibers")
    let workers = counted(counters.workers, "worker", "workers")
    let switches = counted(counters.switches, "switch", "switches")
    return "\(fibers) on \(workers), \(switches), \(grouped(counters.steals)) stolen; "
      + "\(milliseconds) ms."
  }

  private var milliseconds: String {
    let tenths = elapsed.wholeNanoseconds / 100_000
    return "\(grouped(Int(tenths / 10))).\(tenths % 10)"
  }

  /// Prints it, and ends with exit code 2 if it is wrong.
  func finish(_ invocation: Invocation) throws -> ExitCode {
    let console = invocation.console
    if invocation.has("json") {
      try console.json(json)
    } else {
      try console.lines(lines.map { StyledLine($0) })
    }
    if let problem { throw ToolError.check("\(name): \(problem)") }
    if !invocation.has("json") { try console.err.line(remark) }
    return .success
  }
}

/// Starts schedulers for the demos.
enum FiberDemo {
  static let workersMax: Int64 = 256

  /// The number of workers asked for, nil for the default.
  static func workers(_ invocation: Invocation) throws -> Int? {
    let given = try invocation.number(
      "workers", in: 1...workersMax, why: "each one is a thread")
    return given.map { Int($0) }
  }

  /// A run of a scheduler: what `main` returned, what was counted, how long it took.
  struct Run<Value> {
    var value: Value
    var counters: PoolCounters
    var elapsed: Duration
  }

  /// Runs a function as the main fiber. The time is that of the function: starting and stopping
  /// the workers is not in it.
  static func run<Value, Failure: Error>(
    workers: Int?, _ main: () throws(Failure) -> Value
  ) throws(Failure) -> Run<Value> {
    // As the runtime does, the environment overrides what is asked for.
    var configuration = workers.map { Scheduler.Configuration(workers: $0) } ?? .init()
    // On a busy machine it would name fibers that only the kernel keeps waiting.
    configuration.watchdog = false
    return try Scheduler.run(configuration) { () throws(Failure) -> Run<Value> in
      let clock = ContinuousClock()
      let start = clock.now
      let value = try main()
      let elapsed = start.duration(to: clock.now)
      let counters = Scheduler.currentStatistics.map { PoolCounters($0) } ?? PoolCounters()
      return Run(value: value, counters: counters, elapsed: elapsed)
    }
  }

  /// "87 ns": a share of the time.
  static func each(_ elapsed: Duration, of count: Int64) -> Int64 {
    elapsed.wholeNanoseconds / max(1, count)
  }
}

extension Duration {
  var wholeNanoseconds: Int64 {
    components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
  }
}
