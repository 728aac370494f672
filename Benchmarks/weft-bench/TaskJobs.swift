// Supports claims: what Swift's own tasks cost for what fibers do, in the same run.

import BenchKit
import Synchronization

/// What tasks do, by name; each returns the nanoseconds that it took. Run here on all processors,
/// and by the copy of this program on one.
let taskPeers = poolTaskPeers.merging(syncTaskPeers) { first, _ in first }

private let poolTaskPeers: [String: @Sendable (Int) throws -> Double] = [
  "task.yield.one": { count in try timedYields(count, among: 1) },
  "task.yield.thousand": { count in try timedYields(count, among: 1000) },
  "task.spawn": { count in
    try timedInTask {
      var sum = 0
      let elapsed = await nanoseconds {
        for number in 0..<count { sum += await Task.detached { number }.value }
      }
      try check(sum, is: triangle(count))
      return elapsed
    }
  },
  "task.fanout.discarding": { count in
    try timedInTask {
      let arrived = Counter()
      let elapsed = await nanoseconds {
        await withDiscardingTaskGroup { group in
          for _ in 0..<count { group.addTask { arrived.add() } }
        }
      }
      try check(arrived.count, is: count)
      return elapsed
    }
  },
  "task.fanout.group": { count in
    try timedInTask {
      var sum = 0
      let elapsed = await nanoseconds {
        sum = await withTaskGroup(of: Int.self) { group in
          for number in 0..<count { group.addTask { number } }
          return await group.reduce(0, +)
        }
      }
      try check(sum, is: triangle(count))
      return elapsed
    }
  },
  "task.skynet": { leaves in
    try timedInTask {
      var sum = 0
      let elapsed = await nanoseconds { sum = await taskSkynet(0, leaves) }
      try check(sum, is: triangle(leaves))
      return elapsed
    }
  },
  "task.pingpong": { count in
    try timedInTask {
      let (there, back) = (Baton(), Baton())
      return await nanoseconds {
        let other = Task.detached {
          for _ in 0..<count {
            await there.wait()
            back.pass()
          }
        }
        for _ in 0..<count {
          there.pass()
          await back.wait()
        }
        await other.value
      }
    }
  },
]

func nanoseconds(_ body: () async -> Void) async -> Double {
  let start = SuspendingClock.now
  await body()
  return Stopwatch.nanoseconds(since: start)
}

private func timedYields(_ count: Int, among tasks: Int) throws -> Double {
  let rounds = max(count / tasks, 20)
  let span = Span(tasks)
  return try timedInTask {
    await withDiscardingTaskGroup { group in
      for _ in 0..<tasks {
        group.addTask {
          span.begin()
          while !span.isOpen { await Task.yield() }
          for _ in 0..<rounds { await Task.yield() }
          span.finish()
        }
      }
    }
    return span.nanoseconds * Double(count) / Double(rounds * tasks)
  }
}

private final class Counter: Sendable {
  private let value = Atomic(0)

  // ORDERING: relaxed: the group's end orders the additions before the load.
  func add() { value.wrappingAdd(1, ordering: .relaxed) }
  var count: Int { value.load(ordering: .relaxed) }
}

private func taskSkynet(_ first: Int, _ size: Int) async -> Int {
  if size == 1 { return first }
  return await withTaskGroup(of: Int.self) { group in
    let part = size / 10
    for child in 0..<10 { group.addTask { await taskSkynet(first + child * part, part) } }
    return await group.reduce(0, +)
  }
}

/// One task waits, another goes on: the cheapest hand-over that unsafe continuations allow.
private final class Baton: Sendable {
  // SAFETY: the continuation in it is resumed by whoever takes it out, once.
  @safe private enum State {
    case idle, passed
    case awaited(UnsafeContinuation<Void, Never>)
  }

  private let state = Mutex(State.idle)

  func wait() async {
    // SAFETY: whoever takes the continuation out of the state resumes it, once.
    await unsafe withUnsafeContinuation { continuation in
      let isPassed = state.withLock { state in
        if case .passed = state {
          state = .idle
          return true
        }
        state = unsafe .awaited(continuation)
        return false
      }
      if isPassed { unsafe continuation.resume() }
    }
  }

  func pass() {
    // SAFETY: as above.
    let waiter = unsafe state.withLock { state -> UnsafeContinuation<Void, Never>? in
      guard case .awaited(let continuation) = state else {
        state = .passed
        return nil
      }
      state = .idle
      return unsafe continuation
    }
    unsafe waiter?.resume()
  }
}

/// The number of tasks of a skynet with so many leaves.
func skynetNodes(_ leaves: Int) -> Int {
  var (nodes, level) = (1, 1)
  while level < leaves {
    level *= 10
    nodes += level
  }
  return nodes
}

/// A peer on one processor, `.w1`, and on all that there are, `.w2`.
func taskJobs(
  _ name: String, _ summary: String, unit: String, excludes: String = "starting the first task"
) -> [Job] {
  [
    Job(
      "\(name).w1", summary + " In a process limited to one processor.", unit: unit,
      excludes: excludes, purpose: .claim,
      method: .timed { try OneProcessor.nanoseconds(name, $0) }),
    Job(
      "\(name).w2", summary + " On all processors.", unit: unit,
      excludes: excludes, purpose: .claim,
      method: .timed { count in try (taskPeers[name] ?? { _ in .nan })(count) }),
  ]
}

/// The same for work of a fixed size, counted in `parts`.
func taskGauges(
  _ name: String, _ summary: String, unit: String, size: Int, parts: Int
) -> [Job] {
  [
    Job(
      "\(name).w1", summary + " In a process limited to one processor.", unit: unit,
      excludes: "starting the first task", purpose: .claim,
      method: .gauge(samples: fixedSamples) {
        try OneProcessor.nanoseconds(name, size) / Double(parts)
      }),
    Job(
      "\(name).w2", summary + " On all processors.", unit: unit,
      excludes: "starting the first task", purpose: .claim,
      method: .gauge(samples: fixedSamples) {
        try (taskPeers[name] ?? { _ in .nan })(size) / Double(parts)
      }),
  ]
}

let taskYieldJobs: [Job] =
  taskJobs("task.yield.one", "Task.yield where nothing else is runnable.", unit: "ns/yield")
  + taskJobs(
    "task.yield.thousand", "1,000 tasks that yield.", unit: "ns/yield",
    excludes: "making and ending the tasks")
