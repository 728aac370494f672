// Supports claims: what an element costs through AsyncStream, the only way that Swift itself has to
// produce elements from code with a control flow of its own.

import BenchKit
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What a task leaves for the thread that waits for it.
private final class Outcome: Sendable {
  let result = Mutex<Result<Double, any Error>?>(nil)
}

/// Runs an async body on the pool of threads while this one waits, and returns the nanoseconds
/// that the body says: the way there and back is not in them.
func timedInTask(
  _ body: @escaping @Sendable () async throws -> Double
) throws -> Double {
  let outcome = Outcome()
  Task.detached {
    let result: Result<Double, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    outcome.result.withLock { $0 = result }
  }
  while true {
    if let result = outcome.result.withLock({ $0 }) { return try result.get() }
    // Polled, since a thread may not block on a task: every millisecond does not disturb it, not
    // even where both share a processor.
    usleep(1000)
  }
}

private func asyncJob(
  _ name: String, _ summary: String, body: @escaping @Sendable (Int) async -> Int
) -> Job {
  Job(
    name, summary, unit: "ns/element", excludes: "starting the first task", purpose: .claim,
    method: .timed { count in
      try timedInTask {
        let start = SuspendingClock.now
        let total = await body(count)
        let elapsed = Stopwatch.nanoseconds(since: start)
        try check(total, is: count * (count - 1) / 2)
        return elapsed
      }
    })
}

/// One task puts an element in and takes it out: the buffer alone, no suspension.
@Sendable private func throughBuffer(_ count: Int) async -> Int {
  let (stream, continuation) = AsyncStream<Int>.makeStream()
  var iterator = stream.makeAsyncIterator()
  var total = 0
  for element in 0..<count {
    continuation.yield(element)
    total += await iterator.next() ?? 0
  }
  return total
}

/// Where the closure of an unfolding stream keeps its place.
private final class Position: Sendable {
  private let next = Atomic(0)

  func advance(to end: Int) -> Int? {
    // ORDERING: relaxed: one consumer asks for one element after the other.
    let position = next.wrappingAdd(1, ordering: .relaxed).oldValue
    return position < end ? position : nil
  }
}

/// The stream asks a closure: no second control flow.
@Sendable private func unfolding(_ count: Int) async -> Int {
  let position = Position()
  var total = 0
  for await element in AsyncStream<Int>(unfolding: { position.advance(to: count) }) {
    total += element
  }
  return total
}

/// A producer task runs ahead of its consumer.
@Sendable private func ahead(_ count: Int) async -> Int {
  let stream = AsyncStream<Int> { continuation in
    Task.detached {
      for element in 0..<count { continuation.yield(element) }
      continuation.finish()
    }
  }
  var total = 0
  for await element in stream { total += element }
  return total
}

/// A producer task makes an element only when it is asked to, as a generator does: one stream
/// carries the requests, another the elements.
@Sendable private func onDemand(_ count: Int) async -> Int {
  let (requests, request) = AsyncStream<Void>.makeStream()
  let (elements, element) = AsyncStream<Int>.makeStream()
  let producer = Task.detached {
    var next = 0
    for await _ in requests {
      element.yield(next)
      next += 1
    }
  }
  var iterator = elements.makeAsyncIterator()
  var total = 0
  for _ in 0..<count {
    request.yield()
    total += await iterator.next() ?? 0
  }
  request.finish()
  await producer.value
  return total
}

/// Jobs for AsyncStream.
let asyncJobs: [Job] = [
  asyncJob(
    "asyncstream.buffered", "One task yields into the stream and takes the element out again.",
    body: throughBuffer),
  asyncJob(
    "asyncstream.unfolding", "The stream pulls from a closure, without a producer of its own.",
    body: unfolding),
  asyncJob(
    "asyncstream.ahead", "A producer task runs ahead, its consumer takes from the buffer.",
    body: ahead),
  asyncJob(
    "asyncstream.ondemand",
    "A producer task makes each element when asked, as a generator does.", body: onDemand),
]
