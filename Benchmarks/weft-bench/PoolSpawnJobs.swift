// Regression guard: what it costs to start fibers, one by one and many at once, and to wait for
// them.

import BenchKit
import BenchVariants
import Weft

/// So many fibers at once, or tasks.
private let many = isQuick ? 100_000 : 1_000_000
/// So many leaves of the skynet: its sum is 499999500000 for a million.
private let leaves = isQuick ? 100_000 : 1_000_000
/// So many where tasks do the same.
private let taskLeaves = 100_000

/// One fiber after the other, each joined before the next.
private func spawnAndJoin(_ count: Int) throws -> Double {
  var sum = 0
  let elapsed = Stopwatch.nanoseconds {
    for number in 0..<count { sum += Fiber { number }.join() }
  }
  try check(sum, is: triangle(count))
  return elapsed
}

/// Nobody keeps a handle; the last one to arrive wakes the fiber that waits.
private func fanOutDropped() throws -> Double {
  let countdown = try Countdown(many)
  let elapsed = try Stopwatch.nanoseconds {
    for _ in 0..<many {
      Fiber { countdown.arrive() }
    }
    try countdown.wait()
  }
  return elapsed / Double(many)
}

/// The handles are kept in an array, and joined one after the other.
private func fanOutJoined() throws -> Double {
  var sum = 0
  let elapsed = Stopwatch.nanoseconds {
    let fibers = (0..<many).map { number in Fiber { number } }
    for fiber in fibers { sum += fiber.join() }
  }
  try check(sum, is: triangle(many))
  return elapsed / Double(many)
}

/// Children of a group, whose results are added up as they come.
private func fanOutGroup() throws -> Double {
  var sum = 0
  let elapsed = try Stopwatch.nanoseconds {
    sum = try withFiberGroup(of: Int.self) { group in
      for number in 0..<many { group.spawn { number } }
      var sum = 0
      while let value = try group.next() { sum += value }
      return sum
    }
  }
  try check(sum, is: triangle(many))
  return elapsed / Double(many)
}

/// Children of a group without results.
private func fanOutVoidGroup() throws -> Double {
  let countdown = try Countdown(many)
  let elapsed = try Stopwatch.nanoseconds {
    try withFiberGroup(of: Void.self) { group in
      for _ in 0..<many { group.spawn { countdown.arrive() } }
    }
    // All have arrived: the group waited for them.
    try countdown.wait()
  }
  return elapsed / Double(many)
}

private func skynet(_ first: Int, _ size: Int) -> Int {
  if size == 1 { return first }
  let part = size / 10
  let children = (0..<10).map { child in
    Fiber { skynet(first + child * part, part) }
  }
  return children.reduce(0) { $0 + $1.join() }
}

/// Time for each of the fibers, leaves or not.
private func skynetEach(_ leaves: Int) throws -> Double {
  var sum = 0
  let elapsed = Stopwatch.nanoseconds { sum = skynet(0, leaves) }
  try check(sum, is: triangle(leaves))
  return elapsed / Double(skynetNodes(leaves))
}

/// Leaves of the tree with real work, and how many rounds of it each does: some microseconds.
private let workers = 10_000
private let rounds: UInt64 = 3_000

/// Work that the processor has to do step by step.
@inline(never)
private func leafWork(_ seed: Int) -> UInt64 {
  var state = UInt64(seed) | 1
  for _ in 0..<rounds {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
  }
  return state
}

private func work(_ first: Int, _ size: Int) -> UInt64 {
  if size == 1 { return leafWork(first) }
  let part = size / 10
  let children = (0..<10).map { child in
    Fiber { work(first + child * part, part) }
  }
  return children.reduce(0) { $0 &+ $1.join() }
}

/// What the tree of work has to come to, computed without fibers.
private let workSum = (0..<workers).reduce(into: UInt64(0)) { $0 &+= leafWork($1) }

private func computeOnce() throws -> Double {
  let expected = workSum
  var sum: UInt64 = 0
  let elapsed = Stopwatch.nanoseconds { sum = work(0, workers) }
  try check(sum, is: expected)
  return elapsed / 1e6
}

private var spawnJobs: [Job] {
  poolJobs(
    "pool.spawn.join", "Start a fiber and join it, one after the other.", unit: "ns each",
    purpose: .regression, body: spawnAndJoin)
    + taskJobs(
      "task.spawn", "Task.detached and await its value, one after the other.", unit: "ns each")
    + [
      Job(
        "pthread.spawn.join", "pthread_create and pthread_join, one after the other.",
        unit: "ns each", excludes: "nothing", purpose: .claim
      ) { try check(bench_pthread_create_join(UInt64($0)), is: UInt64($0)) }
    ]
}

/// Starting and joining one at a time.
let poolSpawnGroup = Group(
  "pool.spawn", jobs: spawnJobs,
  relations: [
    .ratio("pool.spawn.speedup", "task.spawn.w1", over: "pool.spawn.join.w1", goal: .atLeast(8)),
    .ratio("pool.spawn.speedup.two", "task.spawn.w2", over: "pool.spawn.join.w2"),
    .ratio("pool.spawn.speedup.pthread", "pthread.spawn.join", over: "pool.spawn.join.w1"),
  ])

private var fanOutJobs: [Job] {
  poolGauges(
    "pool.fanout.dropped", "\(many) fibers at once, handles dropped, the last wakes the waiter.",
    unit: "ns each", body: fanOutDropped)
    + poolGauges(
      "pool.fanout.joined", "\(many) fibers at once, joined from an array.",
      unit: "ns each", body: fanOutJoined)
    + poolGauges(
      "pool.fanout.group", "\(many) children of a group at once, results added up.",
      unit: "ns each", body: fanOutGroup)
    + poolGauges(
      "pool.fanout.group.void", "\(many) children of a group at once, without results.",
      unit: "ns each", body: fanOutVoidGroup)
    + taskGauges(
      "task.fanout.discarding", "\(many) tasks at once in a discarding TaskGroup.",
      unit: "ns each", size: many, parts: many)
    + taskGauges(
      "task.fanout.group", "\(many) tasks at once in a TaskGroup, results added up.",
      unit: "ns each", size: many, parts: many)
}

/// Many at once.
let poolFanOutGroup = Group(
  "pool.fanout", jobs: fanOutJobs,
  relations: [
    .ratio("pool.fanout.speedup", "task.fanout.discarding.w1", over: "pool.fanout.dropped.w1"),
    .ratio("pool.fanout.speedup.two", "task.fanout.discarding.w2", over: "pool.fanout.dropped.w2"),
    .ratio("pool.fanout.joined.speedup", "task.fanout.group.w1", over: "pool.fanout.joined.w1"),
    .ratio("pool.fanout.group.speedup", "task.fanout.group.w1", over: "pool.fanout.group.w1"),
    .ratio("pool.fanout.group.speedup.two", "task.fanout.group.w2", over: "pool.fanout.group.w2"),
    .ratio(
      "pool.fanout.group.void.speedup", "task.fanout.discarding.w1",
      over: "pool.fanout.group.void.w1"),
  ])

private var skynetJobs: [Job] {
  poolGauges(
    "pool.skynet", "A tree of fibers, ten children each, \(leaves) leaves, added up.",
    unit: "ns/fiber"
  ) { try skynetEach(leaves) }
    + taskGauges(
      "task.skynet", "The same tree of tasks in TaskGroups, \(taskLeaves) leaves only.",
      unit: "ns/task", size: taskLeaves, parts: skynetNodes(taskLeaves))
    + poolGauges(
      "pool.compute", "The same tree, \(workers) leaves that compute for some microseconds each.",
      unit: "ms", body: computeOnce)
    + [
      Job(
        "compute.plain", "The computations of pool.compute without fibers.", unit: "ms",
        excludes: "nothing", purpose: .claim,
        method: .gauge(samples: fixedSamples) {
          var sum: UInt64 = 0
          let elapsed = Stopwatch.nanoseconds {
            for number in 0..<workers { sum &+= leafWork(number) }
          }
          try check(sum, is: workSum)
          return elapsed / 1e6
        })
    ]
}

/// Trees of fibers.
let poolSkynetGroup = Group(
  "pool.skynet", jobs: skynetJobs,
  relations: [
    .ratio("pool.skynet.scaling", "pool.skynet.w1", over: "pool.skynet.w2", goal: .atLeast(1)),
    .ratio("pool.skynet.speedup", "task.skynet.w1", over: "pool.skynet.w1"),
    .ratio("pool.skynet.speedup.two", "task.skynet.w2", over: "pool.skynet.w2"),
    .ratio("pool.compute.scaling", "pool.compute.w1", over: "pool.compute.w2", goal: .atLeast(1.8)),
    .ratio("pool.compute.cost", "pool.compute.w1", over: "compute.plain"),
  ])
