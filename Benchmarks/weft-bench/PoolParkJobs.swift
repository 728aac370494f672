// Regression guard: how fast fibers wait for each other, on one worker and across two.

import BenchKit
import BenchVariants
import CWeft
import Synchronization
import Weft

/// Two fibers that unpark each other and park, so often there and back.
private func pingPong(_ count: Int) throws -> Double {
  guard let first = Fiber.current else { throw CheckFailure("not on a fiber") }
  let second = Fiber { () throws -> Int in
    for _ in 0..<count {
      try Fiber.park()
      first.unpark()
    }
    return count
  }
  let elapsed = try Stopwatch.nanoseconds {
    for _ in 0..<count {
      second.unpark()
      try Fiber.park()
    }
  }
  try check(second.join(), is: count)
  return elapsed
}

/// How many fibers stand in the ring.
private let ringSize = 503

/// Where a fiber of the ring finds the next one.
private final class Place: Sendable {
  private let next = Mutex<Fiber<Int, any Error>?>(nil)

  // Not inlined: beside a park, a lock could use what belongs to the thread before it.
  @inline(never)
  func link(to fiber: Fiber<Int, any Error>?) { next.withLock { $0 = fiber } }

  @inline(never)
  private func linked() -> Fiber<Int, any Error>? { next.withLock { $0 } }

  /// Passes the token on, as often as it comes.
  func pass(_ laps: Int) throws -> Int {
    try Fiber.park()
    guard let next = linked() else { return 0 }
    next.unpark()
    for _ in 1..<laps {
      try Fiber.park()
      next.unpark()
    }
    return laps
  }
}

/// A token goes round a ring of fibers, each of which waits for it parked. Time for `count` hops.
private func ring(_ count: Int) throws -> Double {
  let laps = max(count / ringSize, 10)
  let places = (0..<ringSize).map { _ in Place() }
  let fibers = places.map { place in Fiber { () throws -> Int in try place.pass(laps) } }
  for (index, place) in places.enumerated() { place.link(to: fibers[(index + 1) % ringSize]) }
  // Until all have their stacks and wait.
  for _ in 0..<3 { Fiber.yield() }
  var hops = 0
  let elapsed = try Stopwatch.nanoseconds {
    fibers[0].unpark()
    for fiber in fibers { hops += try fiber.join() }
  }
  try check(hops, is: laps * ringSize)
  // Each place is part of a cycle of references that ends here.
  for place in places { place.link(to: nil) }
  return elapsed * Double(count) / Double(hops)
}

// MARK: - Across workers

/// How often a fiber on the other worker is woken for one figure.
private let wakes = isQuick ? 300 : 2000

/// What the waking fiber and the woken one share.
private final class Meeting: Sendable {
  // ORDERING: release and acquire: the one waits until the other is about to park, and reads the
  // time of the wake that has just woken it.
  private let ready = Atomic(0)
  private let sent = Atomic<UInt64>(0)

  /// On the other worker: parks so often, and notes how late it runs after each wake.
  func sleep(_ count: Int) throws -> [Double] {
    var latencies: [Double] = []
    latencies.reserveCapacity(count)
    for round in 1...count {
      ready.store(round, ordering: .releasing)
      try Fiber.park()
      latencies.append(Double(weft_clock_now() - sent.load(ordering: .acquiring)))
    }
    return latencies
  }

  /// Keeps this worker busy until the other fiber has parked that long ago, and notes the time.
  func prepare(_ round: Int, gap: UInt64) {
    while ready.load(ordering: .acquiring) != round { weft_pause() }
    bench_spin(gap)
    sent.store(weft_clock_now(), ordering: .releasing)
  }
}

/// Wakes a fiber on worker 1 from a fiber on worker 0.
///
/// - Parameter gap: how long it has been parked each time, in nanoseconds: its worker spins for
///   some microseconds and then sleeps.
private func wakeAcross(gap: UInt64) throws -> [String: Double] {
  let meeting = Meeting()
  let latencies = try Scheduler.run(benchPool(2)) {
    let sleeper = Fiber(placement: .worker(1)) { () throws -> [Double] in
      try meeting.sleep(wakes)
    }
    for round in 1...wakes {
      meeting.prepare(round, gap: gap)
      sleeper.unpark()
    }
    return try sleeper.join()
  }
  return try quantiles(latencies)
}

private func wakeThread(gap: UInt64) throws -> [String: Double] {
  var latencies = [UInt64](repeating: 0, count: wakes)
  // SAFETY: the buffer has room for as many figures as are asked for.
  let isDone = unsafe latencies.withUnsafeMutableBufferPointer { buffer in
    unsafe bench_futex_wakes(UInt64(wakes), gap, buffer.baseAddress.unsafelyUnwrapped)
  }
  guard isDone else { throw Skipped("no thread could be started") }
  return try quantiles(latencies.map { Double($0) })
}

private let spinGap: UInt64 = 2_000
private let sleepGap: UInt64 = 300_000
private let spinning = Measurement { try wakeAcross(gap: spinGap) }
private let sleeping = Measurement { try wakeAcross(gap: sleepGap) }
private let threadSleeping = Measurement { try wakeThread(gap: sleepGap) }

private func wakeJobs(
  _ measurement: Measurement, _ name: String, _ summary: String
) -> [Job] {
  ["p50", "p99"].map { figure in
    measurement.job(
      "\(name).\(figure)", figure, "\(summary): \(figure) of \(wakes).", unit: "ns",
      excludes: "nothing: reading the clock is in it", samples: isQuick ? 2 : 10)
  }
}

private var parkJobs: [Job] {
  poolJobs(
    "pool.park.pingpong", "Two fibers park and unpark each other.", unit: "ns/round trip",
    purpose: .regression, body: pingPong)
    + poolJobs(
      "pool.ring", "A token goes round \(ringSize) parked fibers.", unit: "ns/hop", body: ring)
    + taskJobs(
      "task.pingpong", "Two tasks resume each other by unsafe continuations.",
      unit: "ns/round trip")
    + [
      Job(
        "futex.pingpong", "Two kernel threads wake each other through a futex.",
        unit: "ns/round trip", excludes: "starting the thread", purpose: .claim
      ) { try check(bench_futex_pingpong(UInt64($0)), is: UInt64($0)) }
    ]
}

/// Waiting for each other.
let poolParkGroup = Group(
  "pool.park", jobs: parkJobs,
  relations: [
    .ratio("pool.park.speedup", "task.pingpong.w1", over: "pool.park.pingpong.w1"),
    .ratio("pool.park.speedup.two", "task.pingpong.w2", over: "pool.park.pingpong.w2"),
    .ratio("pool.park.speedup.thread", "futex.pingpong", over: "pool.park.pingpong.w1"),
  ])

/// Waking across workers.
let poolWakeGroup = Group(
  "pool.wake",
  jobs: wakeJobs(
    spinning, "pool.wake.spinning", "From unpark to running on another worker that looks for work")
    + wakeJobs(
      sleeping, "pool.wake.sleeping", "From unpark to running on another worker, asleep for 300 µs")
    + wakeJobs(
      threadSleeping, "futex.wake", "From a futex wake to running in a thread asleep for 300 µs"),
  relations: [
    .figure("pool.wake.spinning.p50", unit: "ns", goal: .atMost(200)),
    .ratio("pool.wake.cost", "pool.wake.sleeping.p50", over: "futex.wake.p50", goal: .atMost(1)),
    .ratio("pool.wake.cost.p99", "pool.wake.sleeping.p99", over: "futex.wake.p99"),
  ])
