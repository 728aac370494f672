// ParkDemos.swift - `weft demo pingpong` and `weft demo ring`: handing on by park and unpark.
import Synchronization
import Weft

/// Two fibers that wake each other in turn.
enum PingPongDemo {
  static let roundsMax: Int64 = 1_000_000_000

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let workers = try FiberDemo.workers(invocation)
    let rounds =
      try invocation.number("rounds", in: 1...roundsMax, why: "this would take minutes and more")
      ?? 1_000_000
    return try report(rounds: rounds, workers: workers).finish(invocation)
  }

  static func report(rounds: Int64, workers: Int?) -> FiberReport {
    let run = FiberDemo.run(workers: workers) { play(rounds: rounds) }
    let (pings, pongs) = run.value
    let each = FiberDemo.each(run.elapsed, of: rounds)
    return FiberReport(
      name: "pingpong", lines: ["rounds: \(pings)", "time a round trip: \(each) ns"],
      members: [
        JSON.Member(key: "rounds", value: .int(rounds)),
        JSON.Member(key: "pings", value: .int(pings)),
        JSON.Member(key: "pongs", value: .int(pongs)),
        JSON.Member(key: "nanosecondsARound", value: .int(each)),
      ],
      problem: pings == rounds && pongs == rounds
        ? nil : "\(pings) pings and \(pongs) pongs, but there should be \(rounds) of each",
      counters: run.counters, elapsed: run.elapsed)
  }

  /// Counts what came back, and what was answered.
  private static func play(rounds: Int64) -> (pings: Int64, pongs: Int64) {
    let ping = Fiber { () -> (pings: Int64, pongs: Int64) in
      guard let ping = Fiber.current else { return (0, 0) }
      let pong = Fiber { count(to: rounds, before: {}, after: { ping.unpark() }) }
      let pings = count(to: rounds, before: { pong.unpark() }, after: {})
      return (pings, pong.join())
    }
    return ping.join()
  }

  /// Parks so often, and counts how often it was woken.
  private static func count(to rounds: Int64, before: () -> Void, after: () -> Void) -> Int64 {
    var count: Int64 = 0
    while count < rounds {
      before()
      // Nobody cancels these fibers; if somebody did, the count would tell.
      guard (try? Fiber.park()) != nil else { break }
      after()
      count += 1
    }
    return count
  }
}

/// The thread-ring benchmark: a token goes round a ring of fibers.
enum RingDemo {
  static let fibersMax: Int64 = 100_000

  /// What the ring came to.
  struct Outcome: Equatable {
    /// The fiber, counted from 1, that got the token when it had been passed on often enough.
    var holder: Int
    var passes: Int64
  }

  /// What a fiber did in the ring.
  private struct Turn {
    var passes: Int64
    var isHolder: Bool
  }

  /// A fiber's place in the ring.
  private final class Seat: Sendable {
    /// ORDERING: relaxed everywhere; unpark and the end of the park order what is around them.
    let token = Atomic<Int64>(0)
    private let fiber = Mutex<Fiber<Turn, Never>?>(nil)

    // Not inlined: beside a park, a lock could use what belongs to the thread before it.
    @inline(never)
    func seat(_ fiber: Fiber<Turn, Never>) { self.fiber.withLock { $0 = fiber } }

    @inline(never)
    func seated() -> Fiber<Turn, Never>? { fiber.withLock { $0 } }

    /// Puts the token here and wakes the fiber.
    func pass(_ value: Int64, to fiber: Fiber<Turn, Never>?) {
      token.store(value, ordering: .relaxed)
      fiber?.unpark()
    }
  }

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let workers = try FiberDemo.workers(invocation)
    let fibers =
      try invocation.number("fibers", in: 1...fibersMax, why: "each one has a stack of its own")
      ?? 503
    let rounds =
      try invocation.number(
        "rounds", in: 0...PingPongDemo.roundsMax, why: "this would take minutes and more")
      ?? 1_000_000
    return try report(fibers: Int(fibers), rounds: rounds, workers: workers).finish(invocation)
  }

  static func report(fibers: Int, rounds: Int64, workers: Int?) -> FiberReport {
    let run = FiberDemo.run(workers: workers) { pass(rounds, round: fibers) }
    let expected = Outcome(holder: Int(rounds % Int64(fibers)) + 1, passes: rounds)
    let each = FiberDemo.each(run.elapsed, of: rounds)
    return FiberReport(
      name: "ring", lines: ["holder: \(run.value.holder)", "time a pass: \(each) ns"],
      members: [
        JSON.Member(key: "fibers", value: .int(fibers)),
        JSON.Member(key: "rounds", value: .int(rounds)),
        JSON.Member(key: "passes", value: .int(run.value.passes)),
        JSON.Member(key: "holder", value: .int(run.value.holder)),
        JSON.Member(key: "expected", value: .int(expected.holder)),
        JSON.Member(key: "nanosecondsAPass", value: .int(each)),
      ],
      problem: run.value == expected
        ? nil
        : "fiber \(run.value.holder) holds the token after \(run.value.passes) passes, but it "
          + "should be fiber \(expected.holder) after \(rounds)",
      counters: run.counters, elapsed: run.elapsed)
  }

  /// Builds the ring, sends the token round and waits for all.
  private static func pass(_ rounds: Int64, round fibers: Int) -> Outcome {
    let seats = (0..<fibers).map { _ in Seat() }
    let members = seats.indices.map { index in
      let (own, next) = (seats[index], seats[(index + 1) % fibers])
      return Fiber { sit(own, before: next) }
    }
    for (seat, member) in zip(seats, members) {
      seat.seat(member)
    }
    seats[0].pass(rounds, to: members[0])
    var outcome = Outcome(holder: 0, passes: 0)
    for (index, member) in members.enumerated() {
      let turn = member.join()
      outcome.passes += turn.passes
      if turn.isHolder { outcome.holder = index + 1 }
    }
    return outcome
  }

  /// Takes the token and passes it on, one less, until it says zero. Below zero it is the word to
  /// leave, which goes round once.
  private static func sit(_ own: Seat, before next: Seat) -> Turn {
    var passes: Int64 = 0
    var neighbour: Fiber<Turn, Never>?
    while (try? Fiber.park()) != nil {
      let token = own.token.load(ordering: .relaxed)
      if neighbour == nil { neighbour = next.seated() }
      next.pass(token > 0 ? token - 1 : -1, to: neighbour)
      if token <= 0 { return Turn(passes: passes, isHolder: token == 0) }
      passes += 1
    }
    return Turn(passes: passes, isHolder: false)
  }
}
