// Regression guard: how fast runnable fibers take turns.

import BenchKit
import BenchVariants
import Weft

// Bodies that yield. In each the switch is inlined at a place of its own, so that fibers with
// different bodies jump to different places, and each has its own constant, so that the linker
// can't make one of two.

@inline(never)
private func turnsA(_ count: Int) {
  for _ in 0..<count {
    Fiber.yield()
    bench_black_hole(1)
  }
}

@inline(never)
private func turnsB(_ count: Int) {
  for _ in 0..<count {
    Fiber.yield()
    bench_black_hole(2)
  }
}

@inline(never)
private func turnsC(_ count: Int) {
  for _ in 0..<count {
    Fiber.yield()
    bench_black_hole(3)
  }
}

@inline(never)
private func turnsD(_ count: Int) {
  for _ in 0..<count {
    Fiber.yield()
    bench_black_hole(4)
  }
}

/// Yields from three calls deep, each of which returns.
@inline(never)
private func turnsDeep(_ count: Int) {
  for _ in 0..<count { deepFirst() }
}

@inline(never)
private func deepFirst() {
  deepSecond()
  bench_black_hole(5)
}

@inline(never)
private func deepSecond() {
  deepThird()
  bench_black_hole(6)
}

@inline(never)
private func deepThird() {
  Fiber.yield()
  bench_black_hole(7)
}

/// Where the fibers' yields are in the code.
private enum Sites {
  case same, different, deep
}

private func takeTurns(_ number: Int, _ sites: Sites, _ count: Int) {
  switch (sites, number & 3) {
  case (.deep, _): turnsDeep(count)
  case (.same, _), (.different, 0): turnsA(count)
  case (.different, 1): turnsB(count)
  case (.different, 2): turnsC(count)
  default: turnsD(count)
  }
}

/// Time for `count` yields, shared out among so many fibers.
private func yields(_ count: Int, among fibers: Int, _ sites: Sites) throws -> Double {
  // Whole rounds, and so many that where the clock starts and stops does not matter.
  let rounds = max(count / fibers, 50)
  let span = Span(fibers)
  let all = (0..<fibers).map { number in
    Fiber { () -> Int in
      span.begin()
      while !span.isOpen { takeTurns(number, sites, 1) }
      takeTurns(number, sites, rounds)
      span.finish()
      return number
    }
  }
  var sum = 0
  for fiber in all { sum += fiber.join() }
  try check(sum, is: triangle(fibers))
  return span.nanoseconds * Double(count) / Double(rounds * fibers)
}

private func turnJobs(
  _ name: String, _ summary: String, fibers: Int, _ sites: Sites, purpose: Purpose = .claim
) -> [Job] {
  poolJobs(
    name, summary, unit: "ns/yield", excludes: "making and ending the fibers", purpose: purpose
  ) { try yields($0, among: fibers, sites) }
}

private var yieldJobs: [Job] {
  poolJobs(
    "pool.yield.one", "Fiber.yield where nothing else is runnable: Arachne's null yield.",
    unit: "ns/yield"
  ) { count in Stopwatch.nanoseconds { turnsA(count) } }
    + turnJobs(
      "pool.yield.two.same", "Two fibers yield to each other, at the same place in the code.",
      fibers: 2, .same)
    + turnJobs(
      "pool.yield.two.different", "Two fibers yield at different places: Arachne's one-way yield.",
      fibers: 2, .different, purpose: .regression)
    + turnJobs(
      "pool.yield.thousand.same", "1,000 fibers yield, all at the same place.",
      fibers: 1000, .same)
    + turnJobs(
      "pool.yield.thousand.different", "1,000 fibers yield, at four places in turn.",
      fibers: 1000, .different, purpose: .regression)
    + turnJobs(
      "pool.yield.thousand.deep", "1,000 fibers yield from three calls deep, and return.",
      fibers: 1000, .deep)
}

/// Yields, next to those of tasks.
let poolYieldGroup = Group(
  "pool.yield", references: ["switch.kept.fiber"], jobs: yieldJobs + taskYieldJobs,
  relations: [
    .ratio(
      "pool.yield.speedup.same", "task.yield.thousand.w1", over: "pool.yield.thousand.same.w1",
      goal: .atLeast(50)),
    .ratio(
      "pool.yield.speedup.different", "task.yield.thousand.w1",
      over: "pool.yield.thousand.different.w1", goal: .atLeast(50)),
    .ratio(
      "pool.yield.speedup.two", "task.yield.thousand.w2",
      over: "pool.yield.thousand.different.w2"),
    .ratio("pool.yield.speedup.one", "task.yield.one.w1", over: "pool.yield.one.w1"),
    .ratio(
      "pool.yield.cost", "pool.yield.two.different.w1", over: "switch.kept.fiber"),
  ])
