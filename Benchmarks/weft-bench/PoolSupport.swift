// Supports claims: what all jobs of the pool need.

import BenchKit
import BenchVariants
import CWeft
import Synchronization
import Weft

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Whether this run is for a look only: jobs of a fixed size do a tenth of their work.
let isQuick = CommandLine.arguments.contains("--quick")

/// How often a job of a fixed size runs.
let fixedSamples = isQuick ? 2 : 5

/// A pool with so many workers and no watchdog: on a busy machine that would write about fibers
/// whose worker the kernel has stopped.
func benchPool(_ workers: Int) -> Scheduler.Configuration {
  var configuration = Scheduler.Configuration(workers: workers)
  configuration.watchdog = false
  return configuration
}

/// Runs `body` on a pool with so many workers, in a fiber that may run on any of them.
func onPool<T: Sendable>(
  _ workers: Int, _ body: @escaping @Sendable () throws -> T
) throws -> T {
  try Scheduler.run(benchPool(workers)) {
    try Fiber { () throws -> T in try body() }.join()
  }
}

/// The same job with one worker and with two. `body` returns the nanoseconds that count.
func poolJobs(
  _ name: String, _ summary: String, unit: String, excludes: String = "starting the workers",
  purpose: Purpose = .claim, perIteration: Double = 1,
  body: @escaping @Sendable (_ iterations: Int) throws -> Double
) -> [Job] {
  [1, 2].map { workers in
    Job(
      "\(name).w\(workers)", summary + (workers == 1 ? " One worker." : " Two workers."),
      unit: unit, excludes: excludes, purpose: workers == 1 ? purpose : .claim,
      perIteration: perIteration,
      method: .timed { count in try onPool(workers) { try body(count) } })
  }
}

/// The same for work of a fixed size. `body` returns the figure itself.
func poolGauges(
  _ name: String, _ summary: String, unit: String, excludes: String = "starting the workers",
  samples: Int = fixedSamples, body: @escaping @Sendable () throws -> Double
) -> [Job] {
  [1, 2].map { workers in
    Job(
      "\(name).w\(workers)", summary + (workers == 1 ? " One worker." : " Two workers."),
      unit: unit, excludes: excludes, purpose: .claim,
      method: .gauge(samples: samples) { try onPool(workers, body) })
  }
}

/// 0 + 1 + ... + (count - 1).
func triangle(_ count: Int) -> Int { count * (count - 1) / 2 }

/// Counts arrivals of fibers; the last one unparks the fiber that waits for them.
final class Countdown: Sendable {
  private let remaining: Atomic<Int>
  private let waiter: FiberHandle

  /// So many arrivals, waited for by the calling fiber.
  init(_ count: Int) throws {
    guard let current = Fiber.current else { throw CheckFailure("not on a fiber") }
    remaining = Atomic(count)
    waiter = current
  }

  func arrive() {
    // ORDERING: acquire-release: all that fibers did before they arrived is seen by the last one,
    // which hands it to the waiter by unparking it.
    if remaining.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
      waiter.unpark()
    }
  }

  func wait() throws {
    // ORDERING: acquire, paired with arrive().
    while remaining.load(ordering: .acquiring) > 0 { try Fiber.park() }
  }
}

/// The time that several take for their work once all of them have begun: without making and ending
/// them.
///
/// ```swift
/// span.begin()
/// while !span.isOpen { Fiber.yield() }
/// work()
/// span.finish()
/// ```
final class Span: Sendable {
  private let unstarted: Atomic<Int>
  private let undone: Atomic<Int>
  // ORDERING: acquire-release on the counts, so that the last one's time is the latest. The start
  // is released to all by `start` itself; the end is read after all have been joined.
  private let start = Atomic<UInt64>(0)
  private let end = Atomic<UInt64>(0)

  init(_ count: Int) {
    unstarted = Atomic(count)
    undone = Atomic(count)
  }

  func begin() {
    if unstarted.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
      start.store(weft_clock_now(), ordering: .releasing)
    }
  }

  /// Whether all have begun.
  var isOpen: Bool { start.load(ordering: .acquiring) != 0 }

  func finish() {
    if undone.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
      end.store(weft_clock_now(), ordering: .relaxed)
    }
  }

  var nanoseconds: Double {
    Double(end.load(ordering: .relaxed)) - Double(start.load(ordering: .relaxed))
  }
}

/// One measurement with several figures, each a job of its own: whichever job comes first measures,
/// the others of that round take what is left for them.
final class Measurement: Sendable {
  private let measure: @Sendable () throws -> [String: Double]
  private let left = Mutex<[String: Double]>([:])

  init(_ measure: @escaping @Sendable () throws -> [String: Double]) { self.measure = measure }

  func take(_ figure: String) throws -> Double {
    if let value = left.withLock({ $0.removeValue(forKey: figure) }) { return value }
    var figures = try measure()
    guard let value = figures.removeValue(forKey: figure) else {
      throw CheckFailure("no figure is called \(figure)")
    }
    let others = figures
    left.withLock { $0 = others }
    return value
  }

  /// A job for one of the figures.
  func job(
    _ name: String, _ figure: String, _ summary: String, unit: String, excludes: String = "nothing",
    samples: Int = fixedSamples
  ) -> Job {
    Job(
      name, summary, unit: unit, excludes: excludes, purpose: .claim,
      method: .gauge(samples: samples) { [self] in try take(figure) })
  }
}

/// Median and 99th percentile.
func quantiles(_ values: [Double]) throws -> [String: Double] {
  guard let summary = Summary(values) else { throw CheckFailure("nothing was measured") }
  return ["p50": summary.median, "p99": summary.p99]
}

/// Processor time that this process has used, in milliseconds.
func processorMilliseconds() -> Double {
  var usage = rusage()
  #if os(Linux)
    let own = __rusage_who_t(RUSAGE_SELF.rawValue)
  #else
    let own = RUSAGE_SELF
  #endif
  // SAFETY: the struct is there for the call, which only fails for a bad pointer or a bad selector.
  _ = unsafe getrusage(own, &usage)
  let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
  let microseconds = Int(usage.ru_utime.tv_usec) + Int(usage.ru_stime.tv_usec)
  return Double(seconds) * 1e3 + Double(microseconds) / 1e3
}

/// Pseudo-random durations of 10 to 1,000 ms, the same in each run.
struct Naps: Sequence, IteratorProtocol {
  private var state: UInt64 = 1

  /// The next one, in nanoseconds.
  mutating func next() -> Int? {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return 10_000_000 + Int((state >> 33) % 990_000_001)
  }
}
