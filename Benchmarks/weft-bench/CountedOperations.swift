// Regression guard: the hottest operations, for their instructions to be counted one by one.
//
// Each marks three places: from the first to the second it does nothing, to the third its work.
// The difference of the two is the work alone. Before the first it has done the same already, so
// that no memory is new and no path untrodden. All run on one worker, which is the thread that the
// tracer follows.

import BenchKit
import BenchVariants
import Weft

/// One operation whose instructions are counted.
struct CountedOperation: Sendable {
  let name: String
  /// How many of it there are in the work.
  let count: Int
  /// Sets the marks.
  let body: @Sendable (_ count: Int) throws -> Void

  init(_ name: String, count: Int, body: @escaping @Sendable (_ count: Int) throws -> Void) {
    self.name = name
    self.count = count
    self.body = body
  }

  /// Runs it, marks and all.
  func run() throws {
    try onPool(1) { [self] in try body(count) }
  }
}

/// How often all of the work is done.
private let times = 3

/// Works twice to warm up, then not at all and once between marks. Not inlined, so that there is
/// one copy of the work.
@inline(never)
private func marking(_ count: Int, work: (_ count: Int) throws -> Void) rethrows {
  try work(count)
  try work(count)
  bench_mark()
  try work(0)
  bench_mark()
  try work(count)
  bench_mark()
}

let countedOperations = [
  CountedOperation("generator.element", count: 200, body: generatorElements),
  CountedOperation("coroutine.roundtrip", count: 200, body: coroutineRoundTrips),
  CountedOperation("yield.two", count: 512) { try yieldsOfTwo($0) },
  CountedOperation("yield.thousand", count: 1000) { try yieldsOfThousand($0) },
  CountedOperation("spawn.join", count: 40, body: spawnsAndJoins),
  CountedOperation("park.roundtrip", count: 64, body: parksAndUnparks),
  CountedOperation("channel.rendezvous", count: 40, body: rendezvous),
  CountedOperation("channel.buffered", count: 128, body: bufferedElements),
  CountedOperation("mutex.alone", count: 300, body: locksAndUnlocks),
  CountedOperation("select.ready", count: 40, body: selectsReady),
]

private func generatorElements(_ count: Int) throws {
  let numbers = Generator<Int> { y in
    for number in 0..<(times * count + 1) { try y.yield(number) }
  }
  var sum = 0
  marking(count) { count in
    for _ in 0..<count { sum += numbers.next() ?? 0 }
  }
  try check(sum, is: triangle(times * count))
}

private func coroutineRoundTrips(_ count: Int) throws {
  var coroutine = try Coroutine<Int, Int, Int> { y, first in
    var input = first
    while input >= 0 { input = try y.yield(input) }
    return input
  }
  var sum = 0
  try marking(count) { count in
    for number in 0..<count {
      if case .yielded(let output) = try coroutine.resume(number) { sum += output }
    }
  }
  try check(sum, is: times * triangle(count))
}

/// Two fibers, each of which yields half as often.
private func yieldsOfTwo(_ count: Int) throws {
  let turns = count / 2
  let other = Fiber { takeTurns(times * turns) }
  marking(turns, work: takeTurns)
  other.join()
}

@inline(never)
private func takeTurns(_ count: Int) {
  for _ in 0..<count {
    Fiber.yield()
    bench_black_hole(1)
  }
}

/// This fiber and 999 others: from one of its turns to the next each of them yields once.
private func yieldsOfThousand(_ count: Int) throws {
  let others = (1..<count).map { _ in Fiber { takeTurns(times) } }
  marking(1, work: takeTurns)
  for other in others { other.join() }
}

private func spawnsAndJoins(_ count: Int) throws {
  var sum = 0
  marking(count) { count in
    for number in 0..<count { sum += Fiber { number }.join() }
  }
  try check(sum, is: times * triangle(count))
}

private func parksAndUnparks(_ count: Int) throws {
  guard let first = Fiber.current else { throw CheckFailure("not on a fiber") }
  let second = Fiber { () throws -> Int in
    for _ in 0..<(times * count) {
      try Fiber.park()
      first.unpark()
    }
    return count
  }
  try marking(count) { count in
    for _ in 0..<count {
      second.unpark()
      try Fiber.park()
    }
  }
  try check(second.join(), is: count)
}

/// There and back, as in `sync.rendezvous`.
private func rendezvous(_ count: Int) throws {
  let (there, back) = (Channel<Int>(), Channel<Int>())
  let other = Fiber { () throws -> Void in
    while let number = try there.receive() { try back.send(number) }
  }
  var sum = 0
  try marking(count) { count in
    for number in 0..<count {
      try there.send(number)
      sum += try back.receive() ?? 0
    }
  }
  there.close()
  try other.join()
  try check(sum, is: times * triangle(count))
}

/// Whole fillings of the channel, so that the marks find it in the same state.
private func bufferedElements(_ count: Int) throws {
  let channel = Channel<Int>(capacity: 128)
  let sender = Fiber { () throws -> Void in
    for number in 0..<(times * count) { try channel.send(number) }
  }
  var sum = 0
  try marking(count) { count in
    for _ in 0..<count { sum += try channel.receive() ?? 0 }
  }
  try sender.join()
  try check(sum, is: triangle(times * count))
}

private func locksAndUnlocks(_ count: Int) throws {
  let mutex = FiberMutex(0)
  marking(count) { count in
    for number in 0..<count { mutex.withLock { $0 &+= number } }
  }
  try check(mutex.withLock { $0 }, is: times * triangle(count))
}

/// Among four channels, of which one has an element.
private func selectsReady(_ count: Int) throws {
  let channels = (0..<4).map { _ in Channel<Int>(capacity: 1) }
  var sum = 0
  try marking(count) { count in
    for number in 0..<count {
      _ = try channels[number % 4].sendIfAvailable(number)
      sum += try select {
        channels[0].onReceive { $0 ?? 0 }
        channels[1].onReceive { $0 ?? 0 }
        channels[2].onReceive { $0 ?? 0 }
        channels[3].onReceive { $0 ?? 0 }
      }
    }
  }
  try check(sum, is: times * triangle(count))
}
