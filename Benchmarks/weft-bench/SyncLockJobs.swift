// Supports the claims about locks: what one costs that nobody wants at the same time, and what four
// fibers pay for one that all of them want, beside the locks of Swift, Dispatch and its actors.

import BenchKit
import Dispatch
import Synchronization
import Weft

/// A fiber, or a plain thread, locks and unlocks so often.
private func alone(_ count: Int) throws -> Double {
  let mutex = FiberMutex(0)
  let elapsed = Stopwatch.nanoseconds {
    for number in 0..<count { mutex.withLock { $0 &+= number } }
  }
  try check(mutex.withLock { $0 }, is: triangle(count))
  return elapsed
}

/// Four fibers add to one value behind a lock, and let others run now and then while they hold it.
private func contended(_ count: Int, handOff: Bool, yields: Bool) throws -> Double {
  let mutex = FiberMutex(0, handOff: handOff)
  let each = max(count / 4, 1)
  let span = Span(4)
  let fibers = (0..<4).map { _ in
    Fiber {
      span.begin()
      while !span.isOpen { Fiber.yield() }
      for number in 0..<each {
        mutex.withLock { value in
          value &+= number
          if yields && number % 16 == 0 { Fiber.yield() }
        }
      }
      span.finish()
    }
  }
  for fiber in fibers { fiber.join() }
  try check(mutex.withLock { $0 }, is: 4 * triangle(each))
  return span.nanoseconds * Double(count) / Double(4 * each)
}

/// The same behind Swift's own, which blocks the worker.
private func contendedThreads(_ count: Int) throws -> Double {
  let sum = LockedSum()
  let each = max(count / 4, 1)
  let span = Span(4)
  let fibers = (0..<4).map { _ in
    Fiber {
      span.begin()
      while !span.isOpen { Fiber.yield() }
      sum.add(each)
      span.finish()
    }
  }
  for fiber in fibers { fiber.join() }
  try check(sum.value, is: 4 * triangle(each))
  return span.nanoseconds * Double(count) / Double(4 * each)
}

private final class LockedSum: Sendable {
  private let mutex = Mutex(0)

  // Not inlined: beside a yield it could use what belongs to another thread.
  @inline(never)
  func add(_ count: Int) { for number in 0..<count { mutex.withLock { $0 &+= number } } }

  var value: Int { mutex.withLock { $0 } }
}

/// Two fibers give each other a permit, there and back.
private func semaphores(_ count: Int) throws -> Double {
  let (there, back) = (FiberSemaphore(0), FiberSemaphore(0))
  let other = Fiber { () throws -> Int in
    for _ in 0..<count {
      try there.wait()
      back.signal()
    }
    return count
  }
  let elapsed = try Stopwatch.nanoseconds {
    for _ in 0..<count {
      there.signal()
      try back.wait()
    }
  }
  try check(other.join(), is: count)
  return elapsed
}

/// Two fibers take turns by a condition, there and back.
private func conditions(_ count: Int) throws -> Double {
  let turn = FiberMutex(0)
  let changed = FiberCondition()
  @Sendable func take(_ own: Int) throws {
    for _ in 0..<count {
      try turn.withGuard { turn throws in
        while turn.value != own { try turn.wait(on: changed) }
        turn.value = 1 - own
        changed.notifyOne()
      }
    }
  }
  let other = Fiber { () throws -> Void in try take(1) }
  let elapsed = try Stopwatch.nanoseconds { try take(0) }
  try other.join()
  try check(turn.withLock { $0 }, is: 0)
  return elapsed
}

private var lockJobs: [Job] {
  [
    Job(
      "sync.mutex.alone", "Lock, add, unlock a FiberMutex in a fiber.", unit: "ns",
      excludes: "nothing", purpose: .regression,
      method: .timed { count in try onPool(1) { try alone(count) } }),
    Job(
      "sync.mutex.thread", "The same on a plain thread.", unit: "ns", excludes: "nothing",
      purpose: .claim, method: .timed { count in try alone(count) }),
    Job(
      "swift.mutex.alone", "Lock, add, unlock a Synchronization.Mutex.", unit: "ns",
      excludes: "nothing", purpose: .claim,
      method: .timed { count in
        let mutex = Mutex(0)
        let elapsed = Stopwatch.nanoseconds {
          for number in 0..<count { mutex.withLock { $0 &+= number } }
        }
        try check(mutex.withLock { $0 }, is: triangle(count))
        return elapsed
      }),
    Job(
      "dispatch.semaphore.alone", "Wait and signal of a DispatchSemaphore with a permit.",
      unit: "ns", excludes: "nothing", purpose: .claim,
      method: .timed { count in
        let semaphore = DispatchSemaphore(value: 1)
        return Stopwatch.nanoseconds {
          for _ in 0..<count {
            semaphore.wait()
            semaphore.signal()
          }
        }
      }),
    Job(
      "sync.semaphore.alone", "Wait and signal of a FiberSemaphore with a permit.", unit: "ns",
      excludes: "nothing", purpose: .regression,
      method: .timed { count in
        try onPool(1) {
          let semaphore = FiberSemaphore(1)
          let elapsed = try Stopwatch.nanoseconds {
            for _ in 0..<count {
              try semaphore.wait()
              semaphore.signal()
            }
          }
          try check(semaphore.availablePermits, is: 1)
          return elapsed
        }
      }),
  ]
    + taskJobs("task.actor.alone", "Calls to an actor by one task.", unit: "ns")
}

private var contendedJobs: [Job] {
  poolJobs("sync.mutex.four", "Four fibers on one FiberMutex.", unit: "ns") {
    try contended($0, handOff: false, yields: false)
  }
    + poolJobs("sync.mutex.four.handoff", "The same, handed over.", unit: "ns") {
      try contended($0, handOff: true, yields: false)
    }
    + poolJobs(
      "sync.mutex.four.yielding", "The same, with a yield in one of 16, by chance.", unit: "ns"
    ) { try contended($0, handOff: false, yields: true) }
    + poolJobs(
      "sync.mutex.four.yielding.handoff", "The same, handed over.", unit: "ns"
    ) { try contended($0, handOff: true, yields: true) }
    + poolJobs(
      "swift.mutex.four", "Four fibers on one Synchronization.Mutex, which blocks workers.",
      unit: "ns", body: contendedThreads)
    + taskJobs("task.actor.four", "Calls to an actor by four tasks.", unit: "ns")
    + poolJobs(
      "sync.semaphore.pingpong", "Two fibers give each other a permit.", unit: "ns/round trip",
      body: semaphores)
    + poolJobs(
      "sync.condition.pingpong", "Two fibers take turns by a condition.", unit: "ns/round trip",
      body: conditions)
}

/// Locks that nobody else wants.
let syncLockGroup = Group(
  "sync.lock", jobs: lockJobs,
  relations: [
    .ratio("sync.mutex.cost", "sync.mutex.alone", over: "swift.mutex.alone", goal: .atMost(1)),
    .ratio("sync.semaphore.cost", "sync.semaphore.alone", over: "dispatch.semaphore.alone"),
    .ratio("sync.mutex.actor", "task.actor.alone.w1", over: "sync.mutex.alone"),
  ])

/// Locks that others want too.
let syncContendedGroup = Group(
  "sync.contended", jobs: contendedJobs,
  relations: [
    .ratio("sync.mutex.four.cost", "sync.mutex.four.w2", over: "swift.mutex.four.w2"),
    .ratio("sync.mutex.four.actor", "task.actor.four.w2", over: "sync.mutex.four.w2"),
    .ratio("sync.mutex.handoff.cost", "sync.mutex.four.handoff.w2", over: "sync.mutex.four.w2"),
  ])
