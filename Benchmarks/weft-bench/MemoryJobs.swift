// Supports claims: what many suspended generators cost in memory, and what fresh memory costs.

import BenchKit
import BenchVariants
import Weft

private func naturals(from start: Int) -> Generator<Int> {
  Generator { y in
    var number = start
    while true {
      try y.yield(number)
      number += 1
    }
  }
}

/// So many generators, each suspended after its first element.
private func suspended(_ count: Int) throws -> [Generator<Int>] {
  var generators: [Generator<Int>] = []
  generators.reserveCapacity(count)
  var sum = 0
  for number in 0..<count {
    let generator = naturals(from: number)
    sum += generator.next() ?? 0
    generators.append(generator)
  }
  try check(sum, is: count * (count - 1) / 2)
  return generators
}

/// All of them resumed once more, so that each has shown that it is alive.
private func resumeAll(_ generators: [Generator<Int>]) throws {
  var sum = 0
  for generator in generators { sum += generator.next() ?? 0 }
  let count = generators.count
  try check(sum, is: count * (count + 1) / 2)
}

/// Time for each of `count` generators on stacks whose pages the kernel has taken back.
private func firstTouch(_ count: Int) throws -> Double {
  StackPool.trim()
  var generators: [Generator<Int>] = []
  let elapsed = try Stopwatch.nanoseconds { generators = try suspended(count) }
  try resumeAll(generators)
  return elapsed
}

/// Resident bytes for each of 100,000 suspended generators.
private func residentEach() throws -> Double {
  let count = 100_000
  StackPool.trim()
  guard let before = residentBytes() else { throw Skipped("this system has no /proc/self/statm") }
  let generators = try suspended(count)
  guard let after = residentBytes() else { throw Skipped("this system has no /proc/self/statm") }
  try resumeAll(generators)
  return Double(after - before) / Double(count)
}

/// Time for each of a million generators: made, run to their first and second element, dropped.
private func million() throws -> Double {
  let count = 1_000_000
  let needed = 12 << 30
  guard (availableBytes() ?? 0) >= needed else { throw Skipped("12 GiB of memory are not free") }
  guard RuntimeInfo.current.stackGuard == .madvise else {
    throw Skipped("this kernel guards stacks by mappings, whose number vm.max_map_count limits")
  }
  StackPool.trim()
  let elapsed = try Stopwatch.nanoseconds {
    let generators = try suspended(count)
    try resumeAll(generators)
  }
  StackPool.trim()
  return elapsed / Double(count)
}

/// Many generators, and fresh memory.
let memoryGroup = Group(
  "memory",
  jobs: [
    Job(
      "touch.page", "Map, touch and unmap a page: the kernel's price of fresh memory.",
      unit: "ns/page", excludes: "nothing", purpose: .claim
    ) { try check(bench_touch_pages(UInt64($0)), is: UInt64($0)) },
    Job(
      "touch.generator", "Make a Generator and take an element, on a stack without pages.",
      unit: "ns each", excludes: "dropping it", purpose: .regression,
      method: .timed(firstTouch)),
    Job(
      "suspended.bytes", "Resident memory of each of 100,000 suspended generators.",
      unit: "bytes each", excludes: "nothing", purpose: .regression,
      method: .gauge(samples: 2, residentEach)),
    Job(
      "suspended.million", "A million generators suspended at once: made, resumed twice, dropped.",
      unit: "ns each", excludes: "nothing", purpose: .claim, method: .gauge(samples: 1, million)),
  ],
  relations: [
    .figure("suspended.bytes", unit: "bytes each", goal: .atMost(9 * 1024)),
    .ratio("touch.cost", "touch.generator", over: "touch.page"),
  ])
