// Supports claims: that what an operation costs does not depend on how many fibers, waiters, timers
// or workers there are besides.

import BenchKit
import BenchVariants
import CWeft
import Synchronization
import Weft

/// Stacks of a million fibers take some 5 GiB, and have to be guarded without mappings.
private func requireRoom(for fibers: Int) throws {
  guard fibers >= 1_000_000 else { return }
  guard (availableBytes() ?? 0) >= 10 << 30 else { throw Skipped("10 GiB of memory are not free") }
  guard RuntimeInfo.current.stackGuard == .madvise else {
    throw Skipped("this kernel guards stacks by mappings, whose number vm.max_map_count limits")
  }
}

/// The same with ten times as many, again and again. `body` returns the figure.
private func growing(
  _ name: String, _ summary: (String) -> String, sizes: [Int], unit: String,
  excludes: String = "making and ending the fibers", workers: Int = 1,
  body: @escaping @Sendable (_ size: Int) throws -> Double
) -> [Job] {
  sizes.map { size in
    Job(
      "\(name).\(size)", summary("\(size)"), unit: unit, excludes: excludes, purpose: .claim,
      method: .gauge(samples: samples(of: size)) {
        try requireRoom(for: size)
        return try onPool(workers) { try body(size) }
      })
  }
}

/// Fewer where one takes seconds.
private func samples(of size: Int) -> Int {
  if isQuick { return 1 }
  return size >= 1_000_000 ? 2 : size >= 100_000 ? 4 : 10
}

private let powers = [100, 1000, 10_000, 100_000, 1_000_000]

// MARK: - Yield

/// So many fibers take turns, some rounds each.
private func yielding(_ fibers: Int) throws -> Double {
  let rounds = max(200_000 / fibers, 3)
  let span = Span(fibers)
  let all = (0..<fibers).map { number in
    Fiber { () -> Int in
      span.begin()
      while !span.isOpen { Fiber.yield() }
      for _ in 0..<rounds { Fiber.yield() }
      span.finish()
      return number
    }
  }
  var sum = 0
  for fiber in all { sum += fiber.join() }
  try check(sum, is: triangle(fibers))
  return span.nanoseconds / Double(rounds * fibers)
}

// MARK: - Waiters

/// So many wait for one channel, served first come, first served; whoever is served waits again.
private func sendingToWaiters(_ waiters: Int) throws -> Double {
  let rounds = max(100_000 / waiters, 5)
  let channel = Channel<Int>()
  let all = (0..<waiters).map { _ in
    Fiber { () throws -> Int in
      var sum = 0
      while let number = try channel.receive() { sum += number }
      return sum
    }
  }
  // One worker: once it is this fiber's turn again all others wait.
  Fiber.yield()
  let count = rounds * waiters
  let elapsed = try Stopwatch.nanoseconds {
    for number in 0..<count { try channel.send(number) }
  }
  channel.close()
  var sum = 0
  for fiber in all { sum += try fiber.join() }
  try check(sum, is: triangle(count))
  return elapsed / Double(count)
}

// MARK: - Timers

/// Beside so many fibers that sleep for long, one waits for another with a limit: each time a timer
/// is set and taken back.
private func settingTimers(_ sleepers: Int) throws -> Double {
  let all = (0..<sleepers).map { number in
    // Spread out, as timers are.
    Fiber { () throws -> Void in try Fiber.sleep(for: .seconds(1000 + number % 3600)) }
  }
  Fiber.yield()
  let count = 20_000
  let (there, back) = (Channel<Int>(), Channel<Int>())
  let other = Fiber { () throws -> Void in
    while let number = try there.receive() { try back.send(number) }
  }
  var sum = 0
  let elapsed = try Stopwatch.nanoseconds {
    for number in 0..<count {
      try there.send(number)
      sum += try back.receive(within: .seconds(500 + number % 1000)) ?? 0
    }
  }
  there.close()
  try other.join()
  try check(sum, is: triangle(count))
  for fiber in all { fiber.cancel() }
  for fiber in all { _ = try? fiber.join() }
  return elapsed / Double(count)
}

/// So many fibers go to sleep and wake in a time too short for them all: what setting a timer, its
/// firing and the wake cost, and the end of the fiber. Of processor time, since they also sleep.
private func firing(_ sleepers: Int) throws -> Double {
  let rounds = max(10_000 / sleepers, 1)
  var sum = 0.0
  for _ in 0..<rounds {
    let span = Span(sleepers)
    let fibers = (0..<sleepers).map { number in
      Fiber { () throws -> Void in
        span.begin()
        while !span.isOpen { Fiber.yield() }
        try Fiber.sleep(for: .nanoseconds(1_000_000 + number % 1000 * 1000))
      }
    }
    while !span.isOpen { Fiber.yield() }
    let before = processorMilliseconds()
    for fiber in fibers { try fiber.join() }
    sum += processorMilliseconds() - before
  }
  return sum * 1e6 / Double(rounds * sleepers)
}

// MARK: - Spawn

/// Starts and joins one fiber after the other beside so many that are parked.
private func spawning(_ parked: Int) throws -> Double {
  let all = (0..<parked).map { _ in
    Fiber { () throws -> Void in try Fiber.park() }
  }
  Fiber.yield()
  let count = 20_000
  var sum = 0
  let elapsed = Stopwatch.nanoseconds {
    for number in 0..<count { sum += Fiber { number }.join() }
  }
  try check(sum, is: triangle(count))
  for fiber in all { fiber.unpark() }
  for fiber in all { try fiber.join() }
  return elapsed / Double(count)
}

// MARK: - Workers

/// Units of a mixed load.
private let units = isQuick ? 2000 : 20_000

/// Some of everything: fibers are started and joined, compute, yield, lock, send and receive. In
/// nanoseconds for each unit of it.
private func mixing() throws -> Double {
  let total = FiberMutex(0)
  let channel = Channel<Int>(capacity: 64)
  let elapsed = try Stopwatch.nanoseconds {
    let producers = (0..<16).map { producer in
      Fiber { () throws -> Void in
        for number in 0..<(units / 16) {
          let child = Fiber { () -> Int in
            let result = compute(number)
            Fiber.yield()
            return result
          }
          try channel.send(child.join() & 1 | 1)
          if number % 4 == producer % 4 { total.withLock { $0 += 1 } }
        }
      }
    }
    let consumers = (0..<16).map { _ in
      Fiber { () throws -> Int in
        var sum = 0
        while let number = try channel.receive() {
          _ = compute(number)
          sum += number
        }
        return sum
      }
    }
    for producer in producers { try producer.join() }
    channel.close()
    var sum = 0
    for consumer in consumers { sum += try consumer.join() }
    try check(sum, is: units / 16 * 16)
  }
  return elapsed / Double(units)
}

/// About a microsecond.
@inline(never)
private func compute(_ seed: Int) -> Int {
  var state = UInt64(truncatingIfNeeded: seed) | 1
  for _ in 0..<500 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
  }
  return Int(truncatingIfNeeded: state >> 1)
}

private var workerJobs: [Job] {
  [1, 2, 4, 8].map { workers in
    Job(
      "growth.workers.\(workers)",
      "A mixed load on \(workers) workers, whatever processors there are.",
      unit: "ns/unit", excludes: "starting the workers", purpose: .claim,
      method: .gauge(samples: isQuick ? 2 : 10) { try onPool(workers, mixing) })
  }
}

// MARK: - The groups

/// From the least to the most that runs everywhere, and to a million.
private func growth(_ name: String, from least: Int, to most: [Int]) -> [Relation] {
  most.map { .ratio("\(name).to.\($0)", "\(name).\($0)", over: "\(name).\(least)") }
}

/// How cost grows with numbers.
let growthGroups = [
  Group(
    "growth.yield",
    jobs: growing(
      "growth.yield", { "\($0) fibers yield on one worker." }, sizes: powers, unit: "ns/yield",
      body: yielding),
    relations: growth("growth.yield", from: 100, to: [100_000, 1_000_000])),
  Group(
    "growth.waiters",
    jobs: growing(
      "growth.waiters", { "An element to one of \($0) fibers that wait for a channel." },
      sizes: [1, 10, 100, 1000, 10_000], unit: "ns/element", body: sendingToWaiters),
    relations: growth("growth.waiters", from: 1, to: [10_000])),
  Group(
    "growth.timers",
    jobs: growing(
      "growth.timers.cancel",
      { "A number there and back with a limit, which sets and takes back a timer beside \($0)." },
      sizes: powers, unit: "ns/round trip", body: settingTimers)
      + growing(
        "growth.timers.fire", { "\($0) fibers sleep for 1 to 2 ms, wake and end: processor time." },
        sizes: powers, unit: "ns each", excludes: "making the fibers", body: firing),
    relations: growth("growth.timers.cancel", from: 100, to: [100_000, 1_000_000])
      + growth("growth.timers.fire", from: 100, to: [100_000, 1_000_000])),
  Group(
    "growth.spawn",
    jobs: growing(
      "growth.spawn", { "Start a fiber and join it beside \($0) that are parked." },
      sizes: powers, unit: "ns each", excludes: "the parked fibers", body: spawning),
    relations: growth("growth.spawn", from: 100, to: [100_000, 1_000_000])),
  Group(
    "growth.workers", jobs: workerJobs,
    relations: [
      .ratio("growth.workers.scaling", "growth.workers.1", over: "growth.workers.2"),
      .ratio("growth.workers.oversubscribed", "growth.workers.8", over: "growth.workers.2"),
    ]),
]

/// The jobs with a million, which take seconds.
let growthSlowJobs = growthGroups.flatMap(\.jobs).map(\.name).filter { $0.hasSuffix(".1000000") }
