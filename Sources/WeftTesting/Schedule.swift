extension Simulation {
  /// What a run decided, where something could go one way or another: enough to do the same again.
  ///
  /// Its description can be given to `Simulation.replay`, in the same program or another run of it.
  public struct Schedule: Sendable, Hashable, LosslessStringConvertible {
    /// The seed, of which the workers' own random numbers are made.
    public let seed: UInt64
    /// The numbers of those choices that were not the first one, by their places.
    let choices: [Int: UInt32]

    init(seed: UInt64, choices: [Int: UInt32]) {
      self.seed = seed
      self.choices = choices
    }

    init(seed: UInt64, decisions: [Decision]) {
      self.seed = seed
      choices = Dictionary(
        uniqueKeysWithValues: decisions.enumerated().filter { $1.chosen != 0 }.map {
          ($0, $1.chosen)
        })
    }

    /// The schedule that a description stands for; nil if it is none.
    public init?(_ description: String) {
      let parts = description.split(separator: " ")
      guard let first = parts.first, let seed = UInt64(first) else { return nil }
      var choices: [Int: UInt32] = [:]
      for part in parts.dropFirst() {
        let pair = part.split(separator: ":", omittingEmptySubsequences: false)
        guard pair.count == 2, let place = Int(pair[0]), let choice = UInt32(pair[1]),
          place >= 0, choice > 0, choices.updateValue(choice, forKey: place) == nil
        else { return nil }
      }
      self.init(seed: seed, choices: choices)
    }

    /// The seed, and place and number of each choice that was not the first one: `42 7:1 19:2`.
    public var description: String {
      let pairs = choices.sorted { $0.key < $1.key }.map { " \($0.key):\($0.value)" }
      return "\(seed)\(pairs.joined())"
    }
  }
}

/// One choice of a run.
struct Decision {
  let kind: UInt32
  let count: UInt32
  let chosen: UInt32
  /// The first choice is to go on as if nothing was: any other counts as an interruption.
  let costs: Bool
}
