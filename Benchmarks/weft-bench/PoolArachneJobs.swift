// Supports claims: the operations that Arachne's authors measured, the same way.
//
// Its one-way yield is pool.yield.two.different, its null yield pool.yield.one, and its signal is
// pool.wake.spinning: those run along here.

import BenchKit
import BenchVariants
import CWeft
import Synchronization
import Weft

/// Starts fibers on the other worker, which looks for work, and takes the time until they run.
private func createAcross() throws -> [String: Double] {
  let count = isQuick ? 300 : 2000
  let latencies = try Scheduler.run(benchPool(2)) { () throws -> [Double] in
    var latencies: [Double] = []
    for _ in 0..<count {
      // The other worker has ended the fiber before, and looks for more.
      bench_spin(2_000)
      let start = weft_clock_now()
      let fiber = Fiber(placement: .worker(1)) { weft_clock_now() }
      latencies.append(Double(fiber.join() - start))
    }
    return latencies
  }
  return try quantiles(latencies)
}

private let creation = Measurement { try createAcross() }

/// How many fibers are queued at once.
private let batch = 1000

/// Time from the beginning of the first fiber of a queue to the beginning of its last, for as many
/// fibers: each ends, and the next begins.
private func exitTurnaround(_ count: Int) throws -> Double {
  let rounds = count / batch + 1
  var total = 0.0
  for _ in 0..<rounds {
    let countdown = try Countdown(1)
    let (first, last) = (Stamp(), Stamp())
    Fiber { first.set() }
    for _ in 0..<batch - 1 { Fiber {} }
    Fiber {
      last.set()
      countdown.arrive()
    }
    try countdown.wait()
    total += last.nanoseconds - first.nanoseconds
  }
  return total * Double(count) / Double(rounds * batch)
}

/// A time that one fiber notes and another reads after it.
private final class Stamp: Sendable {
  private let time = Atomic<UInt64>(0)

  // ORDERING: relaxed: the countdown orders the two.
  func set() { time.store(weft_clock_now(), ordering: .relaxed) }
  var nanoseconds: Double { Double(time.load(ordering: .relaxed)) }
}

/// Time for `count` fibers in batches, from starting the first to the end of the last.
private func throughput(_ count: Int) throws -> Double {
  let rounds = count / batch + 1
  let elapsed = try Stopwatch.nanoseconds {
    for _ in 0..<rounds {
      let countdown = try Countdown(batch)
      for _ in 0..<batch {
        Fiber { countdown.arrive() }
      }
      try countdown.wait()
    }
  }
  return elapsed * Double(count) / Double(rounds * batch)
}

private var arachneJobs: [Job] {
  ["p50", "p99"].map { figure in
    creation.job(
      "pool.create.\(figure)", figure,
      "From before a fiber is made until it runs on another worker that looks for work: \(figure).",
      unit: "ns", excludes: "nothing: reading the clock is in it", samples: isQuick ? 2 : 10)
  } + [
    Job(
      "pool.exit", "From the end of a fiber to the beginning of the next in the queue. One worker.",
      unit: "ns each", excludes: "making them", purpose: .regression,
      method: .timed { count in try onPool(1) { try exitTurnaround(count) } })
  ]
    + poolJobs(
      "pool.create.throughput", "Fibers made and run to their end, in batches of \(batch).",
      unit: "ns each", body: throughput)
}

/// Arachne's own set.
let poolArachneGroup = Group(
  "pool.arachne",
  references: [
    "pool.yield.one.w1", "pool.yield.two.different.w1", "pool.wake.spinning.p50",
  ],
  jobs: arachneJobs,
  relations: [
    .ratio(
      "pool.create.throughput.scaling", "pool.create.throughput.w1",
      over: "pool.create.throughput.w2")
  ])
