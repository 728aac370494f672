// Supports claims: how late many sleepers wake, and what they cost.

import BenchKit
import BenchVariants
import CWeft
import Synchronization
import Weft

/// So many fibers sleep at once.
private let sleepers = 100_000
/// So many tasks: with more, Task.sleep takes minutes (its cost grows faster than their number).
private let taskSleepers = 5_000

private func figures(
  _ overruns: [Double], processor: Double
) throws -> [String: Double] {
  var figures = try quantiles(overruns.map { $0 / 1e3 })
  figures["cpu"] = processor
  // A sleep that ends early would be a bug, not a fast one.
  guard overruns.allSatisfy({ $0 >= 0 }) else { throw CheckFailure("a sleep ended too early") }
  return figures
}

/// Fibers that sleep for 10 to 1,000 ms each.
///
/// - Parameter together: whether all begin before the first goes to sleep. Otherwise those that
///   wake early have to wait for those that have not begun yet, and whose stacks are new memory.
func sleepingFibers(
  _ count: Int, workers: Int, together: Bool = false
) throws -> [String: Double] {
  let before = processorMilliseconds()
  let span = Span(count)
  let overruns = try onPool(workers) {
    let fibers = Naps().prefix(count).map { nap in
      Fiber { () throws -> Double in
        span.begin()
        while together && !span.isOpen { Fiber.yield() }
        let start = weft_clock_now()
        try Fiber.sleep(for: .nanoseconds(nap))
        return Double(weft_clock_now() - start) - Double(nap)
      }
    }
    return try fibers.map { try $0.join() }
  }
  try check(overruns.count, is: count)
  return try figures(overruns, processor: processorMilliseconds() - before)
}

/// What a task leaves for the thread that waits for it.
private final class Overruns: Sendable {
  let values = Mutex<[Double]>([])
}

private func sleepingTasks(_ count: Int) throws -> [String: Double] {
  let before = processorMilliseconds()
  let overruns = Overruns()
  _ = try timedInTask {
    let found = await withTaskGroup(of: Double.self) { group in
      for nap in Naps().prefix(count) {
        group.addTask {
          let start = weft_clock_now()
          try? await Task.sleep(for: .nanoseconds(nap))
          return Double(weft_clock_now() - start) - Double(nap)
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    overruns.values.withLock { $0 = found }
    return 0
  }
  let found = overruns.values.withLock { $0 }
  try check(found.count, is: count)
  return try figures(found, processor: processorMilliseconds() - before)
}

private let many = (1...2).map { workers in
  Measurement { try sleepingFibers(sleepers, workers: workers) }
}
private let together = (1...2).map { workers in
  Measurement { try sleepingFibers(sleepers, workers: workers, together: true) }
}
private let few = Measurement { try sleepingFibers(taskSleepers, workers: 2) }
private let tasks = Measurement { try sleepingTasks(taskSleepers) }

private func sleepJobs(
  _ measurement: Measurement, _ name: String, _ suffix: String, _ summary: String
) -> [Job] {
  let figures = [
    ("p50", "how late half of them wake at most", "µs"),
    ("p99", "how late 99 of 100 wake at most", "µs"),
    ("cpu", "processor time of them all", "ms"),
  ]
  return figures.map { figure, what, unit in
    measurement.job(
      "\(name).\(figure)\(suffix)", figure, "\(summary), 10 to 1,000 ms each: \(what).",
      unit: unit, samples: isQuick ? 1 : 3)
  }
}

private var sleeperJobs: [Job] {
  sleepJobs(many[0], "pool.sleepers", ".w1", "100,000 fibers sleep on one worker")
    + sleepJobs(many[1], "pool.sleepers", ".w2", "100,000 fibers sleep on two workers")
    + sleepJobs(
      together[0], "pool.sleepers.together", ".w1",
      "100,000 fibers that have all begun sleep on one worker")
    + sleepJobs(
      together[1], "pool.sleepers.together", ".w2",
      "100,000 fibers that have all begun sleep on two workers")
    + sleepJobs(few, "pool.sleepers.few", ".w2", "5,000 fibers sleep on two workers")
    + sleepJobs(
      tasks, "task.sleepers.few", ".w2",
      "5,000 tasks in Task.sleep (100,000 do not finish in a minute)")
}

/// Sleepers.
let poolSleepGroup = Group(
  "pool.sleep", jobs: sleeperJobs,
  relations: [
    .figure("pool.sleepers.p99.w1", unit: "µs", goal: .atMost(1000)),
    .figure("pool.sleepers.p99.w2", unit: "µs", goal: .atMost(1000)),
    .figure("pool.sleepers.together.p99.w1", unit: "µs", goal: .atMost(1000)),
    .figure("pool.sleepers.together.p99.w2", unit: "µs", goal: .atMost(1000)),
    .ratio("pool.sleepers.cpu", "task.sleepers.few.cpu.w2", over: "pool.sleepers.few.cpu.w2"),
  ])
