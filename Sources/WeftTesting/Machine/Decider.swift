import CWeft

/// Makes the choices of one run, and remembers them.
struct Decider {
  /// What is done first, by place; the first choice where there is nothing.
  private let forced: [Int: UInt32]
  /// From this place on the policy decides.
  private let free: Int
  private let policy: RunPolicy
  private var random: SplitMix
  private var priorities = Priorities()
  private(set) var made: [Decision] = []
  /// Once a run has failed, what is left of it takes the first choice always.
  var isOver = false

  init(seed: UInt64, policy: RunPolicy, forced: [Int: UInt32] = [:], free: Int = 0) {
    self.forced = forced
    self.free = free
    self.policy = policy
    random = SplitMix(state: seed)
    if case .priorities(let depth) = policy { priorities = Priorities(depth: depth, &random) }
  }

  /// One of `count`.
  ///
  /// - Parameters:
  ///   - names: of those to choose from; without them they have no names.
  ///   - costs: whether the first choice is to go on as if nothing was.
  mutating func decide(
    _ kind: UInt32, _ count: Int, costs: Bool, percent: Int = 50,
    name: (Int) -> UInt64 = { _ in 0 }
  ) -> Int {
    if count < 2 || isOver { return 0 }
    let chosen: Int
    if made.count < free {
      chosen = min(Int(forced[made.count] ?? 0), count - 1)
    } else {
      chosen = choose(kind, count, costs, percent, name)
    }
    made.append(
      Decision(kind: kind, count: UInt32(count), chosen: UInt32(chosen), costs: costs))
    return chosen
  }

  private mutating func choose(
    _ kind: UInt32, _ count: Int, _ costs: Bool, _ percent: Int, _ name: (Int) -> UInt64
  ) -> Int {
    switch policy {
    case .first: return 0
    case .random(let interruptions):
      if kind == UInt32(WEFT_CHOICE_FAULT) { return random.below(100) < percent ? 1 : 0 }
      if !costs { return random.below(count) }
      // So many of 256.
      return random.below(256) < interruptions ? 1 + random.below(count - 1) : 0
    case .priorities:
      if kind == UInt32(WEFT_CHOICE_FAULT) { return random.below(100) < percent ? 1 : 0 }
      if kind == UInt32(WEFT_CHOICE_DIRECT) || kind == UInt32(WEFT_CHOICE_VALUE) {
        return random.below(count)
      }
      // Threads and fibers have names of their own.
      let space: UInt64 = kind == UInt32(WEFT_CHOICE_THREAD) ? 0 : 1 << 63
      return priorities.highest(count, &random) { name($0) | space }
    }
  }
}

extension Decider {
  /// A fiber that yields waits for others, perhaps in a loop: by priorities it and its thread would
  /// keep those that rank below from running for ever.
  mutating func yielded(_ fiber: UInt64, on thread: UInt64) {
    guard case .priorities = policy, !isOver else { return }
    priorities.fallBehind(fiber | 1 << 63)
    priorities.fallBehind(thread)
  }
}

/// A policy as one run follows it.
enum RunPolicy {
  case first
  /// Of 256 chances to interrupt, how many are taken.
  case random(interruptions: Int)
  case priorities(depth: Int)
}

/// Who comes first: probabilistic concurrency testing.
private struct Priorities {
  private var byName: [UInt64: Int] = [:]
  private var changes: Set<Int> = []
  private var choices = 0
  /// The next one that falls behind gets this.
  private var lowest = -1

  init() {}

  /// How many choices a run has nobody knows before: each power of two is as likely as another.
  init(depth: Int, _ random: inout SplitMix) {
    // Where all are in by then, more tries would add none.
    for _ in 1..<min(max(depth, 1), 1 << 16) {
      let power = 1 << random.below(12)
      changes.insert(power + random.below(power))
    }
  }

  mutating func highest(
    _ count: Int, _ random: inout SplitMix, _ name: (Int) -> UInt64
  ) -> Int {
    while true {
      choices += 1
      var best = 0
      var bestPriority = Int.min
      for index in 0..<count {
        let own = priority(name(index), &random)
        if own > bestPriority { (best, bestPriority) = (index, own) }
      }
      guard changes.remove(choices) != nil else { return best }
      fallBehind(name(best))
    }
  }

  mutating func fallBehind(_ name: UInt64) {
    byName[name] = lowest
    lowest -= 1
  }

  private mutating func priority(_ name: UInt64, _ random: inout SplitMix) -> Int {
    if let known = byName[name] { return known }
    let new = random.below(1 << 30)
    byName[name] = new
    return new
  }
}

/// Sebastiano Vigna's SplitMix64: a few lines that give the same numbers on every platform.
struct SplitMix {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func below(_ count: Int) -> Int {
    Int(next().multipliedFullWidth(by: UInt64(count)).high)
  }
}
