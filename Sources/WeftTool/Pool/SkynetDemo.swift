// SkynetDemo.swift - `weft demo skynet`: a tree of fibers, ten children each.
import Weft

/// The benchmark of that name: every leaf is its own number, every other fiber adds up its ten
/// children. A million leaves come to 499999500000.
enum SkynetDemo {
  static let leavesMax: Int64 = 100_000_000

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let workers = try FiberDemo.workers(invocation)
    let leaves =
      try invocation.number(
        "leaves", in: 1...leavesMax, why: "this would take minutes and more") ?? 1_000_000
    return try report(leaves: leaves, workers: workers).finish(invocation)
  }

  /// Sums the leaves from `first` on.
  static func tree(_ first: Int64, _ leaves: Int64) -> Int64 {
    guard leaves > 1 else { return first }
    let children = split(leaves).map { part in
      Fiber { tree(first + part.start, part.count) }
    }
    return children.reduce(0) { $0 + $1.join() }
  }

  /// The leaves dealt to ten children as evenly as possible; fewer leaves, fewer children.
  static func split(_ leaves: Int64) -> [(start: Int64, count: Int64)] {
    let children = min(10, leaves)
    return (0..<children).map { child in
      let start = leaves * child / children
      return (start, leaves * (child + 1) / children - start)
    }
  }

  /// How many fibers such a tree has.
  static func fibers(_ leaves: Int64) -> Int64 {
    guard leaves > 1 else { return 1 }
    // Children differ by one leaf at most, so that there are two sizes to work out.
    var known: [Int64: Int64] = [:]
    return split(leaves).reduce(1) { sum, part in
      let count = known[part.count] ?? fibers(part.count)
      known[part.count] = count
      return sum + count
    }
  }

  static func report(leaves: Int64, workers: Int?) -> FiberReport {
    let run = FiberDemo.run(workers: workers) { Fiber { tree(0, leaves) }.join() }
    let expected = PoolPlan(upto: leaves - 1, fibers: 1).expected
    let fibers = fibers(leaves)
    let made = Int64(run.counters.fibersMade - 1)
    var problem: String?
    if run.value != expected { problem = "the sum is \(run.value), but should be \(expected)" }
    if made != fibers { problem = "\(made) fibers were made, but should be \(fibers)" }
    let each = FiberDemo.each(run.elapsed, of: fibers)
    return FiberReport(
      name: "skynet",
      lines: ["sum: \(run.value)", "fibers: \(fibers)", "time a fiber: \(each) ns"],
      members: [
        JSON.Member(key: "leaves", value: .int(leaves)),
        JSON.Member(key: "fibers", value: .int(fibers)),
        JSON.Member(key: "sum", value: .int(run.value)),
        JSON.Member(key: "expected", value: .int(expected)),
        JSON.Member(key: "nanosecondsAFiber", value: .int(each)),
      ],
      problem: problem, counters: run.counters, elapsed: run.elapsed)
  }
}
