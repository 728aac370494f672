// The jobs in Swift's own concurrency: tasks, continuations, AsyncStream, Synchronization.
//
//   peer JOB WORKERS [REPEAT]   one "value unit" line for each sample
//   peer --list                 the jobs
//
// The pool that runs tasks is as wide as there are processors: one worker means that the caller
// limits this process to one. So WORKERS is not looked at.

import Glibc
import Synchronization

/// A sample is to take so long at least.
let sampleTime = Duration.milliseconds(20)
let manyTasks = 100_000
let skynetLeaves = 100_000
let skynetNodes = 111_111
let parkedTasks = 100_000
let sleepers = 10_000

enum Method: Sendable {
  /// Does an operation so many times.
  case timed(@Sendable (_ count: Int) async -> Void)
  /// Does so many operations at a time.
  case fixed(Int, @Sendable () async -> Void)
  /// Measures itself.
  case gauge(@Sendable () async -> Double)
}

func triangle(_ count: Int) -> Int { count * (count - 1) / 2 }

func nanoseconds(_ duration: Duration) -> Double { duration / .nanoseconds(1) }

// MARK: - Hand-over

/// A channel with room for so many, or for none: an element then goes from hand to hand.
final class Channel: Sendable {
  private struct State {
    var ring: [Int]
    var first = 0
    var count = 0
    var senders: [(Int, UnsafeContinuation<Void, Never>)] = []
    var receivers: [UnsafeContinuation<Int, Never>] = []
  }

  private let state: Mutex<State>

  init(capacity: Int) {
    state = Mutex(State(ring: Array(repeating: 0, count: capacity)))
  }

  func send(_ element: Int) async {
    if handOver(element, nil) { return }
    await withUnsafeContinuation { sender in
      if handOver(element, sender) { sender.resume() }
    }
  }

  func receive() async -> Int {
    if let element = take(nil) { return element }
    return await withUnsafeContinuation { receiver in
      if let element = take(receiver) { receiver.resume(returning: element) }
    }
  }

  /// Whether the element has found a receiver or room; otherwise the sender waits, if given.
  private func handOver(_ element: Int, _ sender: UnsafeContinuation<Void, Never>?) -> Bool {
    let (done, receiver) = state.withLock {
      state -> (Bool, UnsafeContinuation<Int, Never>?) in
      if !state.receivers.isEmpty { return (true, state.receivers.removeFirst()) }
      if state.count < state.ring.count {
        state.ring[(state.first + state.count) % state.ring.count] = element
        state.count += 1
        return (true, nil)
      }
      if let sender { state.senders.append((element, sender)) }
      return (false, nil)
    }
    receiver?.resume(returning: element)
    return done
  }

  /// The next element, if there is one; otherwise the receiver waits, if given.
  private func take(_ receiver: UnsafeContinuation<Int, Never>?) -> Int? {
    let (element, sender) = state.withLock {
      state -> (Int?, UnsafeContinuation<Void, Never>?) in
      let waiting = state.senders.isEmpty ? nil : state.senders.removeFirst()
      guard state.count > 0 else {
        if waiting == nil, let receiver { state.receivers.append(receiver) }
        return (waiting?.0, waiting?.1)
      }
      let element = state.ring[state.first]
      state.first = (state.first + 1) % state.ring.count
      state.count -= 1
      if let waiting {
        state.ring[(state.first + state.count) % state.ring.count] = waiting.0
        state.count += 1
      }
      return (element, waiting?.1)
    }
    sender?.resume()
    return element
  }
}

// MARK: - The jobs

/// What Swift has in place of a generator that suspends: a stream and a task that fills it.
func generator(_ count: Int) async {
  let (numbers, producer) = AsyncStream.makeStream(of: Int.self)
  Task {
    for number in 0..<count { producer.yield(number) }
    producer.finish()
  }
  var sum = 0
  for await number in numbers { sum += number }
  precondition(sum == triangle(count))
}

func yields(_ count: Int, among tasks: Int) async {
  await withDiscardingTaskGroup { group in
    for _ in 0..<tasks {
      group.addTask { for _ in 0..<count / tasks { await Task.yield() } }
    }
  }
}

func spawnJoin(_ count: Int) async {
  for _ in 0..<count { await Task.detached {}.value }
}

func fanOut() async {
  await withDiscardingTaskGroup { group in
    for _ in 0..<manyTasks { group.addTask {} }
  }
}

func skynet(_ first: Int, _ size: Int) async -> Int {
  if size == 1 { return first }
  let part = size / 10
  return await withTaskGroup(of: Int.self) { group in
    for child in 0..<10 { group.addTask { await skynet(first + child * part, part) } }
    return await group.reduce(0, +)
  }
}

func rendezvous(_ count: Int) async {
  let (there, back) = (Channel(capacity: 0), Channel(capacity: 0))
  let echo = Task.detached {
    for _ in 0..<count { await back.send(await there.receive()) }
  }
  var sum = 0
  for number in 0..<count {
    await there.send(number)
    sum += await back.receive()
  }
  await echo.value
  precondition(sum == triangle(count))
}

func channel(_ count: Int, pairs: Int) async {
  let numbers = Channel(capacity: 128)
  let each = count / pairs
  let sum = await withTaskGroup(of: Int.self) { group in
    for _ in 0..<pairs {
      group.addTask {
        for number in 0..<each { await numbers.send(number) }
        return 0
      }
      group.addTask {
        var own = 0
        for _ in 0..<each { own += await numbers.receive() }
        return own
      }
    }
    return await group.reduce(0, +)
  }
  precondition(sum == pairs * triangle(each))
}

final class Guarded: Sendable {
  let sum = Mutex(0)
}

/// Swift's Mutex, which blocks the thread: what the language has for so short a section.
func mutex(_ count: Int, tasks: Int) async {
  let guarded = Guarded()
  let each = count / tasks
  await withDiscardingTaskGroup { group in
    for _ in 0..<tasks {
      group.addTask { for number in 0..<each { guarded.sum.withLock { $0 += number } } }
    }
  }
  precondition(guarded.sum.withLock { $0 } == tasks * triangle(each))
}

func residentBytes() -> Int {
  guard let file = fopen("/proc/self/statm", "r") else { preconditionFailure("no statm") }
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 128)
  guard fgets(&line, 128, file) != nil else { preconditionFailure("statm is empty") }
  let text = String(decoding: line.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  guard let pages = Int(text.split(separator: " ")[1]) else { preconditionFailure("bad statm") }
  return pages * sysconf(Int32(_SC_PAGESIZE))
}

/// Where tasks wait until it opens.
final class Latch: Sendable {
  private let waiting = Mutex<[UnsafeContinuation<Void, Never>]>([])

  var count: Int { waiting.withLock { $0.count } }

  func reserve(_ count: Int) { waiting.withLock { $0.reserveCapacity(count) } }

  func wait() async {
    await withUnsafeContinuation { task in waiting.withLock { $0.append(task) } }
  }

  func open() { for task in waiting.withLock({ $0 }) { task.resume() } }
}

func parkedMemory() async -> Double {
  let latch = Latch()
  latch.reserve(parkedTasks)
  return await withDiscardingTaskGroup { group in
    let before = residentBytes()
    for _ in 0..<parkedTasks { group.addTask { await latch.wait() } }
    while latch.count < parkedTasks { await Task.yield() }
    let bytes = Double(residentBytes() - before) / Double(parkedTasks)
    latch.open()
    return bytes
  }
}

/// How late sleepers of 10 to 1,000 ms wake, the given percentile, in microseconds. The lengths
/// are the same in all programs.
func lateness(_ percent: Int) async -> Double {
  var state: UInt64 = 1
  let late = await withTaskGroup(of: Double.self) { group in
    for _ in 0..<sleepers {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let nap = Duration.nanoseconds(10_000_000 + Int64((state >> 33) % 990_000_001))
      group.addTask {
        let start = ContinuousClock.now
        try? await Task.sleep(for: nap)
        return nanoseconds(start.duration(to: .now) - nap) / 1e3
      }
    }
    return await group.reduce(into: [Double]()) { $0.append($1) }
  }
  return late.sorted()[sleepers * percent / 100]
}

let jobs: [(name: String, unit: String, method: Method)] = [
  ("generator.int", "ns/element", .timed(generator)),
  ("pool.yield.two", "ns/yield", .timed { await yields($0, among: 2) }),
  ("pool.yield.thousand", "ns/yield", .timed { await yields($0, among: 1000) }),
  ("pool.spawn.join", "ns each", .timed(spawnJoin)),
  ("pool.fanout", "ns each", .fixed(manyTasks, fanOut)),
  (
    "pool.skynet", "ns/task",
    .fixed(skynetNodes) {
      let sum = await skynet(0, skynetLeaves)
      precondition(sum == triangle(skynetLeaves))
    }
  ),
  ("sync.rendezvous", "ns/round trip", .timed(rendezvous)),
  ("sync.channel.1to1", "ns/element", .timed { await channel($0, pairs: 1) }),
  ("sync.channel.4to4", "ns/element", .timed { await channel($0, pairs: 4) }),
  ("sync.mutex.alone", "ns", .timed { await mutex($0, tasks: 1) }),
  ("sync.mutex.four", "ns", .timed { await mutex($0, tasks: 4) }),
  ("pool.memory.parked", "B each", .gauge(parkedMemory)),
  ("pool.sleepers.p50", "µs", .gauge { await lateness(50) }),
  ("pool.sleepers.p99", "µs", .gauge { await lateness(99) }),
]

// MARK: - Running

/// Time of some work in a task of the pool; the main actor has a thread of its own.
func measure(_ work: @escaping @Sendable () async -> Void) async -> Duration {
  await Task.detached {
    let start = ContinuousClock.now
    await work()
    return start.duration(to: .now)
  }.value
}

func samples(_ method: Method, _ repeats: Int) async -> [Double] {
  switch method {
  case .timed(let body):
    // The trials that find how many make a sample warm up as well.
    var count = 1000
    while await measure({ [count] in await body(count) }) < sampleTime { count *= 2 }
    var all: [Double] = []
    for _ in 0..<repeats {
      let time = await measure { [count] in await body(count) }
      all.append(nanoseconds(time) / Double(count))
    }
    return all
  case .fixed(let count, let body):
    _ = await measure(body)
    var all: [Double] = []
    for _ in 0..<repeats { all.append(nanoseconds(await measure(body)) / Double(count)) }
    return all
  case .gauge(let body):
    return [await Task.detached { await body() }.value]
  }
}

let arguments = CommandLine.arguments.dropFirst()
if arguments == ["--list"] {
  for job in jobs { print(job.name) }
  exit(0)
}
let words = Array(arguments)
guard words.count >= 2, let job = jobs.first(where: { $0.name == words[0] }),
  let repeats = words.count > 2 ? Int(words[2]) : 3, repeats > 0
else {
  print("usage: peer JOB WORKERS [REPEAT] | peer --list")
  exit(64)
}
for sample in await samples(job.method, repeats) { print(sample, job.unit) }
exit(0)
