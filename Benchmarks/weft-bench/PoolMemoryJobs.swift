// Regression guard: what parked fibers take of memory, and that an idle pool uses nothing.

import BenchKit
import BenchVariants
import Synchronization
import Weft

/// Resident pages of each of so many parked fibers.
private func parkedPages(
  _ count: Int, park: @escaping @Sendable () throws -> Void
) throws -> Double {
  StackPool.trim()
  bench_release_free_memory()
  let pages = try onPool(1) {
    var fibers: [Fiber<Int, any Error>] = []
    fibers.reserveCapacity(count)
    guard let before = residentBytes() else {
      throw Skipped("this system has no /proc/self/statm")
    }
    for number in 0..<count {
      fibers.append(
        Fiber { () throws -> Int in
          try park()
          return number
        })
    }
    // One worker: once it is this fiber's turn again all others have parked.
    Fiber.yield()
    let after = residentBytes() ?? 0
    var sum = 0
    for fiber in fibers { fiber.unpark() }
    for fiber in fibers { sum += try fiber.join() }
    try check(sum, is: triangle(count))
    return Double(after - before) / Double(count) / Double(pageBytes)
  }
  StackPool.trim()
  return pages
}

/// What parkDeep uses of a stack, in bytes: the same in every fiber.
private let deepBytes = Atomic(0)

/// Parks with so many kibibytes of stack in use below, counted from `top`.
private func parkDeep(_ kibibytes: Int, from top: UInt? = nil) throws {
  // SAFETY: the block is there until the closure returns, and is written within its bounds.
  try unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1024) { buffer in
    unsafe buffer.initialize(repeating: 1)
    let here = UInt(bitPattern: buffer.baseAddress)
    bench_black_hole(UInt64(here))
    if kibibytes > 1 {
      try parkDeep(kibibytes - 1, from: top ?? here)
    } else {
      // ORDERING: relaxed: all store the same, and they are joined before it is read.
      deepBytes.store(Int((top ?? here) - here) + buffer.count, ordering: .relaxed)
      try Fiber.park()
    }
    bench_black_hole(UInt64(buffer.count))
  }
}

/// Resident pages of each of so many parked fibers beyond the stack that they use themselves.
private func pagesBeyondUse(_ count: Int) throws -> Double {
  let pages = try parkedPages(count) { try parkDeep(16) }
  let used = deepBytes.load(ordering: .relaxed)
  guard (16 << 10..<32 << 10).contains(used) else { throw CheckFailure("\(used) bytes of stack") }
  return pages - Double(used) / Double(pageBytes)
}

/// A million parked fibers: resident pages of each, and how long each takes to be spawned and to
/// park when a million others have just left their stacks.
private func millionParked() throws -> [String: Double] {
  guard (availableBytes() ?? 0) >= 12 << 30 else { throw Skipped("12 GiB of memory are not free") }
  guard RuntimeInfo.current.stackGuard == .madvise else {
    throw Skipped("this kernel guards stacks by mappings, whose number vm.max_map_count limits")
  }
  let count = 1_000_000
  StackPool.trim()
  bench_release_free_memory()
  let figures = try onPool(1) {
    let before = residentBytes() ?? 0
    var fibers = parked(count)
    let pages = Double((residentBytes() ?? 0) - before) / Double(count) / Double(pageBytes)
    try release(&fibers)
    let elapsed = Stopwatch.nanoseconds { fibers = parked(count) }
    try release(&fibers)
    return ["pages": pages, "spawn": elapsed / Double(count)]
  }
  StackPool.trim()
  return figures
}

private func parked(_ count: Int) -> [Fiber<Int, any Error>] {
  var fibers: [Fiber<Int, any Error>] = []
  fibers.reserveCapacity(count)
  for number in 0..<count {
    fibers.append(
      Fiber { () throws -> Int in
        try Fiber.park()
        return number
      })
  }
  // One worker: once it is this fiber's turn again all others have parked.
  Fiber.yield()
  return fibers
}

private func release(_ fibers: inout [Fiber<Int, any Error>]) throws {
  var sum = 0
  for fiber in fibers { fiber.unpark() }
  for fiber in fibers { sum += try fiber.join() }
  try check(sum, is: triangle(fibers.count))
  fibers = []
}

private let million = Measurement { try millionParked() }

/// Processor time of a pool that does nothing, in percent of one processor.
private func idlePercent() throws -> Double {
  try Scheduler.run(benchPool(2)) {
    // Let the workers go to sleep first.
    try Fiber.sleep(for: .milliseconds(20))
    let before = processorMilliseconds()
    let elapsed = try Stopwatch.nanoseconds { try Fiber.sleep(for: .milliseconds(300)) }
    return (processorMilliseconds() - before) / (elapsed / 1e6) * 100
  }
}

/// Parked fibers, and idle workers.
let poolMemoryGroup = Group(
  "pool.memory",
  jobs: [
    Job(
      "pool.memory.parked", "Resident memory of each of 100,000 parked fibers, all of it.",
      unit: "pages each", excludes: "nothing", purpose: .regression,
      method: .gauge(samples: 2) { try parkedPages(100_000) { try Fiber.park() } }),
    Job(
      "pool.memory.deep",
      "Resident memory of each of 20,000 parked fibers beyond the 16 KiB of stack that it uses.",
      unit: "pages each", excludes: "those 16 KiB, and the frames in between",
      purpose: .regression, method: .gauge(samples: 2) { try pagesBeyondUse(20_000) }),
    million.job(
      "pool.memory.million", "pages", "The same for a million parked fibers.",
      unit: "pages each", samples: 1),
    million.job(
      "pool.spawn.million", "spawn",
      "Spawning a million fibers until all have parked, on stacks that others have just left.",
      unit: "ns each", samples: 1),
    Job(
      "pool.idle", "Processor time of two workers whose only fiber sleeps.",
      unit: "% of one core", excludes: "the first 20 ms", purpose: .claim,
      method: .gauge(samples: fixedSamples, idlePercent)),
  ],
  relations: [
    .figure("pool.memory.parked", unit: "pages each", goal: .atMost(1.3)),
    .figure("pool.memory.deep", unit: "pages each", goal: .atMost(1.3)),
    .figure("pool.memory.million", unit: "pages each", goal: .atMost(1.3)),
    .figure("pool.spawn.million", unit: "ns each", goal: .atMost(1000)),
    .figure("pool.idle", unit: "% of one core", goal: .atMost(0.5)),
  ])
