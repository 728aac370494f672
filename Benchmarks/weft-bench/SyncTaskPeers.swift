// Supports claims: what Swift's tasks, actors and streams cost for what channels and locks do.

import BenchKit
import Synchronization

/// As `taskPeers`, for channels and locks.
let syncTaskPeers: [String: @Sendable (Int) throws -> Double] = [
  "task.rendezvous": { count in
    try timedInTask {
      let (there, back) = (Exchange(), Exchange())
      var sum = 0
      let elapsed = await nanoseconds {
        let other = Task.detached {
          for _ in 0..<count { back.put(await there.take()) }
        }
        for number in 0..<count {
          there.put(number)
          sum += await back.take()
        }
        await other.value
      }
      try check(sum, is: triangle(count))
      return elapsed
    }
  },
  "task.stream": { count in
    try timedInTask {
      let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
      var sum = 0
      let elapsed = await nanoseconds {
        Task.detached {
          for number in 0..<count { continuation.yield(number) }
          continuation.finish()
        }
        for await number in stream { sum += number }
      }
      try check(sum, is: triangle(count))
      return elapsed
    }
  },
  "task.stream.pingpong": { count in
    try timedInTask {
      let (there, toThere) = AsyncStream.makeStream(of: Int.self)
      let (back, toBack) = AsyncStream.makeStream(of: Int.self)
      var sum = 0
      let elapsed = await nanoseconds {
        let other = Task.detached {
          for await number in there { toBack.yield(number) }
        }
        var numbers = back.makeAsyncIterator()
        for number in 0..<count {
          toThere.yield(number)
          sum += await numbers.next() ?? 0
        }
        toThere.finish()
        await other.value
      }
      try check(sum, is: triangle(count))
      return elapsed
    }
  },
  "task.actor.alone": { count in try timedActor(count, tasks: 1) },
  "task.actor.four": { count in try timedActor(count, tasks: 4) },
]

/// A number from one task to another, by a checked continuation. One puts, one takes.
private final class Exchange: Sendable {
  private enum State {
    case empty
    case full(Int)
    case awaited(CheckedContinuation<Int, Never>)
  }

  private let state = Mutex(State.empty)

  func put(_ number: Int) {
    let waiter = state.withLock { state -> CheckedContinuation<Int, Never>? in
      guard case .awaited(let continuation) = state else {
        state = .full(number)
        return nil
      }
      state = .empty
      return continuation
    }
    waiter?.resume(returning: number)
  }

  func take() async -> Int {
    await withCheckedContinuation { continuation in
      let number = state.withLock { state -> Int? in
        if case .full(let number) = state {
          state = .empty
          return number
        }
        state = .awaited(continuation)
        return nil
      }
      if let number { continuation.resume(returning: number) }
    }
  }
}

private actor Adder {
  private(set) var sum = 0
  func add(_ number: Int) { sum += number }
}

private func timedActor(_ count: Int, tasks: Int) throws -> Double {
  let each = max(count / tasks, 1)
  return try timedInTask {
    let adder = Adder()
    let elapsed = await nanoseconds {
      await withDiscardingTaskGroup { group in
        for _ in 0..<tasks {
          group.addTask { for number in 0..<each { await adder.add(number) } }
        }
      }
    }
    try await check(adder.sum, is: tasks * triangle(each))
    return elapsed * Double(count) / Double(each * tasks)
  }
}
