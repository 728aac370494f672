// PipelineDemo.swift - `weft demo pipeline`: stages with fibers of their own, between channels.
import Synchronization
import Weft

/// For each number its steps to 1 by Collatz's rule, worked out by several fibers at once; the odd
/// ones of these; in chunks; summed.
enum PipelineDemo {
  static let countMax: Int64 = 1_000_000
  static let fibersMax: Int64 = 10_000
  /// Up to so many numbers the stages are shown element by element.
  static let shownMax = 40

  struct Plan: Equatable {
    var count = 20
    /// How many numbers are worked on at once.
    var fibers = 4
    /// How many elements make a chunk.
    var chunk = 3
  }

  /// What went through the channel after each stage.
  struct Flow: Equatable {
    var numbers: [Int64] = []
    var steps: [Int64] = []
    var odd: [Int64] = []
    var chunks: [[Int64]] = []
    var sums: [Int64] { chunks.map { $0.reduce(0, +) } }
  }

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let workers = try FiberDemo.workers(invocation)
    var plan = Plan()
    if let count = try invocation.number(
      "count", in: 1...countMax, why: "this would take minutes and more")
    {
      plan.count = Int(count)
    }
    if let fibers = try invocation.number(
      "fibers", in: 1...fibersMax, why: "each one has a stack of its own")
    {
      plan.fibers = Int(fibers)
    }
    if let chunk = try invocation.number(
      "chunk", in: 1...countMax, why: "there are no more numbers than that")
    {
      plan.chunk = Int(chunk)
    }
    return try report(
      plan, workers: workers, columns: min(invocation.console.size.columns, 100)
    ).finish(invocation)
  }

  static func report(_ plan: Plan, workers: Int?, columns: Int = 80) throws -> FiberReport {
    let gauge = Gauge()
    let run = try FiberDemo.run(workers: workers) { try stream(plan, gauge) }
    let (flow, most) = (run.value, gauge.most)
    var problem: String?
    if flow != expected(plan) { problem = "what came out is not what a loop finds" }
    if most > plan.fibers { problem = "\(most) worked at once, not \(plan.fibers) at most" }
    return FiberReport(
      name: "pipeline", lines: lines(flow, plan, columns: columns),
      members: [
        JSON.Member(key: "count", value: .int(plan.count)),
        JSON.Member(key: "fibers", value: .int(plan.fibers)),
        JSON.Member(key: "chunk", value: .int(plan.chunk)),
        JSON.Member(key: "sums", value: .array(flow.sums.map { .int($0) })),
        JSON.Member(key: "total", value: .int(flow.sums.reduce(0, +))),
        JSON.Member(key: "atWorkMax", value: .int(most)),
      ],
      problem: problem, counters: run.counters, elapsed: run.elapsed)
  }

  // MARK: The pipeline

  private static func stream(_ plan: Plan, _ gauge: Gauge) throws -> Flow {
    let source = Channel<Int64>()
    Fiber(name: "source") {
      for number in 1...Int64(plan.count) { try source.send(number) }
      source.close()
    }
    let numbers = Tap(source)
    let steps = Tap(
      numbers.output.map(fibers: plan.fibers) { number in
        gauge.measure { stepsToOne(from: number) { Fiber.yield() } }
      })
    let odd = Tap(steps.output.filter(fibers: plan.fibers) { $0 % 2 == 1 })
    var flow = Flow()
    let chunks = odd.output.chunked(into: plan.chunk)
    while let chunk = try chunks.receive() { flow.chunks.append(chunk) }
    flow.numbers = numbers.seen.join()
    flow.steps = steps.seen.join()
    flow.odd = odd.seen.join()
    return flow
  }

  /// A stage that passes on what it gets, and remembers it: that is the fiber's result, so that
  /// nothing is shared.
  private struct Tap {
    let output = Channel<Int64>()
    let seen: Fiber<[Int64], Never>

    init(_ input: Channel<Int64>) {
      seen = Fiber(name: "tap") { [output] in
        var seen: [Int64] = []
        while let element = try? input.receive() {
          seen.append(element)
          guard (try? output.send(element)) != nil else { break }
        }
        output.close()
        return seen
      }
    }
  }

  /// How many are inside at once, and were at most.
  private final class Gauge: Sendable {
    // ORDERING: relaxed: each is a figure of its own; the run's end orders the last look.
    private let inside = Atomic<Int>(0)
    private let peak = Atomic<Int>(0)

    var most: Int { peak.load(ordering: .relaxed) }

    func measure<Result>(_ body: () -> Result) -> Result {
      peak.max(inside.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
      defer { inside.subtract(1, ordering: .relaxed) }
      return body()
    }
  }

  /// Halve what is even, else triple it and add one. Some numbers take far longer than those after
  /// them, and each step lets others run: without an order they would overtake each other.
  private static func stepsToOne(
    from number: Int64, afterEach: () -> Void
  ) -> Int64 {
    var (number, steps) = (number, Int64(0))
    while number != 1 {
      number = number % 2 == 0 ? number / 2 : 3 * number + 1
      steps += 1
      afterEach()
    }
    return steps
  }

  /// The same in a loop.
  static func expected(_ plan: Plan) -> Flow {
    var flow = Flow()
    flow.numbers = (1...Int64(plan.count)).map { $0 }
    flow.steps = flow.numbers.map { stepsToOne(from: $0) {} }
    flow.odd = flow.steps.filter { $0 % 2 == 1 }
    flow.chunks = stride(from: 0, to: flow.odd.count, by: plan.chunk).map {
      Array(flow.odd[$0..<min($0 + plan.chunk, flow.odd.count)])
    }
    return flow
  }

  // MARK: What is shown

  private static func lines(_ flow: Flow, _ plan: Plan, columns: Int) -> [String] {
    let isShown = plan.count <= shownMax
    func texts(_ values: [Int64]) -> [String] {
      isShown
        ? values.map { String($0) } : ["\(values.count) elements, sum \(values.reduce(0, +))"]
    }
    let chunks = flow.chunks.map { "[" + $0.map { String($0) }.joined(separator: " ") + "]" }
    let sizes =
      "\(flow.chunks.count) chunks of \(plan.chunk), the last of \(flow.chunks.last?.count ?? 0)"
    let rows = [
      ("numbers", texts(flow.numbers)), ("steps", texts(flow.steps)), ("odd", texts(flow.odd)),
      ("chunks", isShown ? chunks : [sizes]), ("sums", texts(flow.sums)),
      ("total", [String(flow.sums.reduce(0, +))]),
    ]
    let left = 9
    return rows.flatMap { name, texts -> [String] in
      let lines = wrapped(texts.joined(separator: " "), to: max(20, columns - left))
      return zip([name] + lines.dropFirst().map { _ in "" }, lines.isEmpty ? ["-"] : lines)
        .map { $0.padded(to: left) + $1 }
    }
  }
}
