// SieveDemo.swift - `weft demo sieve`: the concurrent prime sieve, a chain of fibers and channels.
import Weft

/// Each prime adds a fiber that drops its multiples from what the one before it sends: the example
/// that Hoare's paper on communicating processes and Go's tutorials share.
enum SieveDemo {
  /// Every number goes through up to as many channels as there are primes below it.
  static let countMax: Int64 = 5000
  static let capacityMax: Int64 = 1_000_000

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let workers = try FiberDemo.workers(invocation)
    let count =
      try invocation.number(
        "count", in: 0...countMax, why: "every prime is one more fiber in the chain") ?? 30
    let capacity =
      try invocation.number(
        "capacity", in: 0...capacityMax, why: "the chain has this many places for each prime") ?? 0
    return try report(
      count: Int(count), capacity: Int(capacity), workers: workers,
      columns: min(invocation.console.size.columns, 100)
    ).finish(invocation)
  }

  static func report(
    count: Int, capacity: Int = 0, workers: Int?, columns: Int = 80
  ) throws -> FiberReport {
    let run = try FiberDemo.run(workers: workers) { try sift(count, capacity: capacity) }
    let primes = run.value
    let isRight = primes.count == count && primes == PrimesDemo.expected(primes.last ?? 0)
    return FiberReport(
      name: "sieve",
      lines: wrapped(primes.map { String($0) }.joined(separator: " "), to: columns),
      members: [
        JSON.Member(key: "count", value: .int(count)),
        JSON.Member(key: "capacity", value: .int(capacity)),
        JSON.Member(key: "elements", value: .array(primes.map { .int($0) })),
      ],
      problem: isRight ? nil : "these are not the first \(count) primes",
      counters: run.counters, elapsed: run.elapsed)
  }

  /// The first number that comes out of the chain is a prime, and makes it longer.
  private static func sift(_ count: Int, capacity: Int) throws -> [Int64] {
    try withFiberGroup(of: Void.self) { group in
      var primes: [Int64] = []
      var last = Channel<Int64>(capacity: capacity)
      group.spawn(name: "numbers") { [last] in
        var number: Int64 = 2
        while true {
          try last.send(number)
          number += 1
        }
      }
      while primes.count < count, let prime = try last.receive() {
        primes.append(prime)
        let (input, output) = (last, Channel<Int64>(capacity: capacity))
        group.spawn(name: "without multiples of \(prime)") {
          while let number = try input.receive() {
            if number % prime != 0 { try output.send(number) }
          }
        }
        last = output
      }
      // The numbers have no end, so it is the group that ends them.
      group.cancelAll()
      return primes
    }
  }
}
