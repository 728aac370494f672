// Supports claims: what it costs to make and end a coroutine, in time and in allocations.

import BenchKit
import BenchVariants
import Weft

private func creationJob(
  _ name: String, _ summary: String, purpose: Purpose = .claim,
  body: @escaping @Sendable (Int) throws -> Void
) -> Job {
  Job(
    name, summary, unit: "ns each", excludes: "the stack's first use: it is warm",
    purpose: purpose, body: body)
}

/// Makes a coroutine whose body captures a value, runs it to its end, and drops it.
private func runCoroutine(_ number: Int) throws -> Int {
  var coroutine = try Coroutine<Int, Int, Int> { _, input in input + number }
  guard case .returned(let result) = try coroutine.resume(1) else { return 0 }
  return result
}

/// Makes a generator of one element, takes it and the end, and drops it.
private func runGenerator(_ number: Int) -> Int {
  let generator = Generator<Int> { y in try y.yield(number + 1) }
  var sum = 0
  for element in generator { sum += element }
  return sum
}

/// Makes a generator, takes an element, and drops it while it is suspended: its body unwinds.
private func dropSuspended(_ number: Int) -> Int {
  let generator = Generator<Int> { y in
    while true { try y.yield(number + 1) }
  }
  return generator.next() ?? 0
}

private func repeated(_ count: Int, _ body: (Int) throws -> Int) throws {
  var sum = 0
  for number in 0..<count { sum += try body(number) }
  try check(sum, is: count * (count + 1) / 2)
}

/// How many blocks malloc gives out for one run of `body`.
private func allocationGauge(
  _ name: String, _ summary: String, _ body: @escaping @Sendable (Int) throws -> Int
) -> Job {
  Job(
    name, summary, unit: "allocations", excludes: "the first run, which fills caches",
    purpose: .regression,
    method: .gauge(samples: 3) {
      guard bench_allocations_are_counted() else {
        throw Skipped("this platform or build does not count allocations")
      }
      let count = 1000
      try repeated(10, body)
      let before = bench_allocation_count()
      try repeated(count, body)
      return Double(bench_allocation_count() - before) / Double(count)
    })
}

/// Creation and destruction with a warm stack.
let creationGroup = Group(
  "create", references: ["switch.inline"],
  jobs: [
    creationJob(
      "create.coroutine", "Make a Coroutine, run it to its end, drop it.", purpose: .regression
    ) { try repeated($0, runCoroutine) },
    creationJob("create.generator", "Make a Generator, take its one element and the end, drop it.")
    {
      try repeated($0, runGenerator)
    },
    creationJob("create.dropped", "Make a Generator, take one element, drop it suspended.") {
      try repeated($0, dropSuspended)
    },
    creationJob("create.unstarted", "Make a Coroutine and drop it before it starts.") { count in
      try repeated(count) { number in
        let coroutine = try Coroutine<Int, Int, Int> { _, input in input + number }
        return coroutine.isFinished ? 0 : number + 1
      }
    },
    creationJob("create.largestack", "A call on another stack by withLargeStack.") { count in
      try repeated(count) { number in
        withLargeStack(.mebibytes(1)) { Int(bench_opaque(UInt64(number))) + 1 }
      }
    },
    allocationGauge(
      "create.allocations", "Allocations of create.coroutine.", runCoroutine),
    allocationGauge(
      "create.generator.allocations", "Allocations of create.generator.", runGenerator),
  ],
  relations: [
    .ratio("create.cost", "create.coroutine", over: "switch.inline", goal: .atMost(40)),
    .ratio("create.unstarted.cost", "create.unstarted", over: "switch.inline"),
    .figure("create.allocations", unit: "allocations", goal: .atMost(2)),
    .figure("create.generator.allocations", unit: "allocations", goal: .atMost(2)),
  ])
