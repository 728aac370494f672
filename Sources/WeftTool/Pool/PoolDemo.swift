// PoolDemo.swift - `weft demo pool`: a sum by many fibers on many workers.
import Weft

enum PoolDemo {
  static let fibersMax: Int64 = 100_000
  /// What is run without options: enough to keep the workers busy for a moment.
  static let ordinary = PoolPlan(upto: 1_000_000, fibers: 1000)

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let workers = try FiberDemo.workers(invocation)
    if invocation.has("step") { return try step(invocation, workers: workers) }
    let plan = try plan(invocation, default: ordinary, fibersMax: fibersMax)
    return try report(plan, workers: workers).finish(invocation)
  }

  /// The plan that --upto and --fibers ask for.
  static func plan(
    _ invocation: Invocation, default ordinary: PoolPlan, fibersMax: Int64
  ) throws -> PoolPlan {
    let upto =
      try invocation.number(
        "upto", in: 0...TextbookDemo.uptoMax, why: "the sum would overflow 64 bits")
      ?? ordinary.upto
    let given = try invocation.number(
      "fibers", in: 1...fibersMax, why: "each one has a stack of its own")
    let fibers = given ?? min(Int64(ordinary.fibers), max(1, upto))
    guard fibers <= max(1, upto) else {
      throw ToolError.usage(
        "--fibers \(fibers): more than there are numbers to add (\(upto))",
        remedy: "Give at most \(max(1, upto)), or a larger --upto.")
    }
    return PoolPlan(upto: upto, fibers: Int(fibers))
  }

  /// The sum, by fibers.
  static func report(_ plan: PoolPlan, workers: Int?) -> FiberReport {
    let run = FiberDemo.run(workers: workers) {
      PoolSum.main(
        plan,
        spawn: { fiber in Fiber { PoolSum.add(plan.share(fiber)) { _ in Fiber.yield() } } },
        join: { $0.join() })
    }
    return FiberReport(
      name: "pool", lines: ["sum: \(run.value)"],
      members: [
        JSON.Member(key: "upto", value: .int(plan.upto)),
        JSON.Member(key: "fibers", value: .int(plan.fibers)),
        JSON.Member(key: "sum", value: .int(run.value)),
        JSON.Member(key: "expected", value: .int(plan.expected)),
      ],
      problem: run.value == plan.expected
        ? nil : "the sum is \(run.value), but N(N+1)/2 is \(plan.expected)",
      counters: run.counters, elapsed: run.elapsed)
  }
}
