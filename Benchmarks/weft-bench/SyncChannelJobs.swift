// Supports the claims about channels and select: what an element costs, on one worker and on two,
// beside what Swift's own tasks have for the same jobs.

import BenchKit
import Synchronization
import Weft

// MARK: - Rendezvous

/// A number goes to another fiber and comes back, through channels without a buffer.
private func rendezvous(_ count: Int, placement: Placement = .automatic) throws -> Double {
  let there = Channel<Int>()
  let back = Channel<Int>()
  let other = Fiber(placement: placement) { () throws -> Int in
    var sum = 0
    while let number = try there.receive() {
      sum += number
      try back.send(number)
    }
    return sum
  }
  var sum = 0
  let elapsed = try Stopwatch.nanoseconds {
    for number in 0..<count {
      try there.send(number)
      sum += try back.receive() ?? 0
    }
  }
  there.close()
  try check(other.join(), is: triangle(count))
  try check(sum, is: triangle(count))
  return elapsed
}

// MARK: - Buffered

/// So many send and as many receive, through one channel with room for 128.
private func throughput(_ count: Int, pairs: Int) throws -> Double {
  let channel = Channel<Int>(capacity: 128)
  let each = max(count / pairs, 1)
  let span = Span(2 * pairs)
  let senders = (0..<pairs).map { _ in
    Fiber { () throws -> Void in
      span.begin()
      while !span.isOpen { Fiber.yield() }
      for number in 0..<each { try channel.send(number) }
      span.finish()
    }
  }
  let receivers = (0..<pairs).map { _ in
    Fiber { () throws -> Int in
      span.begin()
      while !span.isOpen { Fiber.yield() }
      var sum = 0
      for _ in 0..<each { sum += try channel.receive() ?? 0 }
      span.finish()
      return sum
    }
  }
  for sender in senders { try sender.join() }
  var sum = 0
  for receiver in receivers { sum += try receiver.join() }
  try check(sum, is: pairs * triangle(each))
  return span.nanoseconds * Double(count) / Double(each * pairs)
}

// MARK: - Select

/// One selects among channels to which others send, each to some of them in turn.
private func selecting(
  _ count: Int, among cases: Int, capacity: Int = 0, senders: Int = 1
) throws -> Double {
  let channels = (0..<cases).map { _ in Channel<Int>(capacity: capacity) }
  let senders = (0..<senders).map { first in
    Fiber { () throws -> Void in
      for number in stride(from: first, to: count, by: senders) {
        try channels[number % cases].send(number)
      }
    }
  }
  var sum = 0
  let elapsed = try Stopwatch.nanoseconds {
    switch cases {
    case 2: for _ in 0..<count { sum += try selectOfTwo(channels) }
    case 4: for _ in 0..<count { sum += try selectOfFour(channels) }
    default: for _ in 0..<count { sum += try selectOfEight(channels) }
    }
  }
  for sender in senders { try sender.join() }
  try check(sum, is: triangle(count))
  return elapsed
}

@inline(__always)
private func selectOfTwo(_ c: [Channel<Int>]) throws -> Int {
  try select {
    c[0].onReceive { $0 ?? 0 }
    c[1].onReceive { $0 ?? 0 }
  }
}

@inline(__always)
private func selectOfFour(_ c: [Channel<Int>]) throws -> Int {
  try select {
    c[0].onReceive { $0 ?? 0 }
    c[1].onReceive { $0 ?? 0 }
    c[2].onReceive { $0 ?? 0 }
    c[3].onReceive { $0 ?? 0 }
  }
}

@inline(__always)
private func selectOfEight(_ c: [Channel<Int>]) throws -> Int {
  try select {
    c[0].onReceive { $0 ?? 0 }
    c[1].onReceive { $0 ?? 0 }
    c[2].onReceive { $0 ?? 0 }
    c[3].onReceive { $0 ?? 0 }
    c[4].onReceive { $0 ?? 0 }
    c[5].onReceive { $0 ?? 0 }
    c[6].onReceive { $0 ?? 0 }
    c[7].onReceive { $0 ?? 0 }
  }
}

/// One selects among four channels, of which one has an element.
private func selectingReady(_ count: Int) throws -> Double {
  let channels = (0..<4).map { _ in Channel<Int>(capacity: 1) }
  var sum = 0
  let elapsed = try Stopwatch.nanoseconds {
    for number in 0..<count {
      _ = try channels[number % 4].sendIfAvailable(number)
      sum += try selectOfFour(channels)
    }
  }
  try check(sum, is: triangle(count))
  return elapsed
}

// MARK: - Broadcast and sieve

/// One sends, a thousand receive.
private func broadcasting(_ count: Int) throws -> Double {
  let rounds = max(count / 1000, 20)
  let broadcast = Broadcast<Int>(capacity: 64)
  let fibers = (0..<1000).map { _ in
    let subscription = broadcast.subscribe()
    return Fiber { () throws -> Int in
      var sum = 0
      while let number = try subscription.receive() { sum += number }
      return sum
    }
  }
  for _ in 0..<3 { Fiber.yield() }
  var sum = 0
  let elapsed = try Stopwatch.nanoseconds {
    for number in 0..<rounds { try broadcast.send(number) }
    broadcast.close()
    for fiber in fibers { sum += try fiber.join() }
  }
  try check(sum, is: 1000 * triangle(rounds))
  return elapsed * Double(count) / Double(rounds * 1000)
}

private let sievePrimes = isQuick ? 300 : 1500
private let lastPrime = isQuick ? 1987 : 12_553

/// The concurrent prime sieve: a fiber for each prime drops its multiples. In milliseconds.
private func sieve() throws -> Double {
  var last = 0
  let elapsed = try Stopwatch.nanoseconds {
    var channel = Channel<Int>()
    var channels = [channel]
    let first = channel
    // At the end all channels are closed at once, under those who still send: that is no failure.
    Fiber {
      var number = 2
      while (try? first.send(number)) != nil { number += 1 }
    }
    for _ in 0..<sievePrimes {
      let prime = try channel.receive() ?? 0
      last = prime
      let (input, output) = (channel, Channel<Int>())
      Fiber {
        while let number = try input.receive() {
          guard number.isMultiple(of: prime) || (try? output.send(number)) != nil else { return }
        }
      }
      channel = output
      channels.append(output)
    }
    for channel in channels { channel.close() }
  }
  try check(last, is: lastPrime)
  return elapsed / 1e6
}

// MARK: - The jobs

private var channelJobs: [Job] {
  poolJobs(
    "sync.rendezvous", "A number to another fiber and back, unbuffered.", unit: "ns/round trip",
    purpose: .regression
  ) { try rendezvous($0) }
    + [
      Job(
        "sync.rendezvous.across", "The same between two workers, kept apart.",
        unit: "ns/round trip", excludes: "starting the workers", purpose: .claim,
        method: .timed { count in
          try Scheduler.run(benchPool(2)) { try rendezvous(count, placement: .worker(1)) }
        })
    ]
    + poolJobs(
      "sync.channel.1to1", "Through a channel with room for 128.", unit: "ns/element",
      purpose: .regression
    ) { try throughput($0, pairs: 1) }
    + poolJobs(
      "sync.channel.4to4", "The same, four who send and four who receive.", unit: "ns/element"
    ) { try throughput($0, pairs: 4) }
    + taskJobs(
      "task.rendezvous", "Two tasks hand a number over by checked continuations.",
      unit: "ns/round trip")
    + taskJobs(
      "task.stream", "One task to another through an AsyncStream, which has no bound.",
      unit: "ns/element")
    + taskJobs(
      "task.stream.pingpong", "A number to another task and back, through two AsyncStreams.",
      unit: "ns/round trip")
}

private var selectJobs: [Job] {
  [2, 4, 8].flatMap { cases in
    poolJobs(
      "sync.select.\(cases)", "Select among \(cases) channels, each time with a wait.",
      unit: "ns/element"
    ) { try selecting($0, among: cases) }
  }
    + poolJobs(
      "sync.select.4.buffered", "Select among 4 channels with room for one, a sender each.",
      unit: "ns/element"
    ) { try selecting($0, among: 4, capacity: 1, senders: 4) }
    + poolJobs(
      "sync.select.ready", "Send to one of four channels, select among them.", unit: "ns/element",
      purpose: .regression
    ) { try selectingReady($0) }
}

/// Channels.
let syncChannelGroup = Group(
  "sync.channel", jobs: channelJobs,
  relations: [
    .figure("sync.rendezvous.w1", unit: "ns", goal: .atMost(50)),
    .figure("sync.channel.1to1.w1", unit: "ns", goal: .atMost(20)),
    .figure("sync.channel.4to4.w1", unit: "ns", goal: .atMost(20)),
    .ratio("sync.rendezvous.speedup", "task.rendezvous.w1", over: "sync.rendezvous.w1"),
    .ratio("sync.rendezvous.speedup.two", "task.rendezvous.w2", over: "sync.rendezvous.w2"),
    .ratio("sync.stream.speedup", "task.stream.w1", over: "sync.channel.1to1.w1"),
    .ratio("sync.stream.speedup.two", "task.stream.w2", over: "sync.channel.1to1.w2"),
    .ratio("sync.stream.pingpong", "task.stream.pingpong.w1", over: "sync.rendezvous.w1"),
  ])

/// Select.
let syncSelectGroup = Group(
  "sync.select", jobs: selectJobs,
  relations: [
    .ratio("sync.select.growth", "sync.select.8.w1", over: "sync.select.2.w1")
  ])

/// What is made of channels.
let syncStreamGroup = Group(
  "sync.stream",
  jobs: poolJobs(
    "sync.broadcast", "One sends, a thousand receive.", unit: "ns/delivery", body: broadcasting)
    + poolGauges(
      "sync.sieve", "The concurrent prime sieve, \(sievePrimes) primes.", unit: "ms", body: sieve),
  relations: [])
