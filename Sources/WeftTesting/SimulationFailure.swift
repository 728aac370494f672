/// What went wrong in a simulation, and how to see it again.
///
/// Its description has all of it: the failure, the seed, the schedule, and what happened when.
public struct SimulationFailure: Error, CustomStringConvertible, Sendable {
  /// What went wrong.
  public enum Kind: Sendable, CustomStringConvertible {
    /// Nothing can run any more, and somebody waits: who, and for what.
    case deadlock([String])
    /// Somebody waits who should run: a wake-up got lost. Who, and why.
    case lostWakeUp([String])
    /// Fibers were left when the body had returned: which.
    case leakedFibers([String])
    /// So many stacks were taken and not given back.
    case leakedStacks(Int)
    /// An error that a fiber threw was never seen.
    case unjoinedErrors([String])
    /// It did not end within so many steps.
    case endless(steps: Int)
    /// The body threw an error.
    case threw(any Error)
    /// The simulation itself could not go on.
    case refused(String)

    /// Failures of one name are taken for the same one when a schedule is shortened.
    var name: String {
      switch self {
      case .deadlock: "deadlock"
      case .lostWakeUp: "lost wake-up"
      case .leakedFibers: "leaked fibers"
      case .leakedStacks: "leaked stacks"
      case .unjoinedErrors: "unjoined error"
      case .endless: "endless"
      case .threw(let error): "error \(type(of: error))"
      case .refused: "refused"
      }
    }

    /// The failure in words.
    public var description: String {
      switch self {
      case .deadlock(let fibers): "deadlock\(Self.list(fibers))"
      case .lostWakeUp(let fibers): "lost wake-up\(Self.list(fibers))"
      case .leakedFibers(let fibers):
        "fibers were left when the body had returned\(Self.list(fibers))"
      case .leakedStacks(let count): "\(count) stacks were not given back"
      case .unjoinedErrors(let texts): "an error was never seen\(Self.list(texts))"
      case .endless(let steps):
        "still not done after \(steps) steps; it goes round in circles, or stepsMost is too few"
      case .threw(let error): "the body threw \(error)"
      case .refused(let text): text
      }
    }

    private static func list(_ lines: [String]) -> String {
      lines.map { "\n    \($0)" }.joined()
    }
  }

  /// What went wrong.
  public let kind: Kind
  /// The seed of the first run that failed.
  public let seed: UInt64
  /// The run that failed, as short as it was made.
  public let schedule: Simulation.Schedule
  /// What happened in it, a line a step.
  public let timeline: String

  /// All of it, for people.
  public var description: String {
    var text = "simulation failed: \(kind)\n  seed: \(seed)"
    // One that could not be shortened says nothing to people.
    if schedule.choices.count <= 200 { text += "\n  schedule: \"\(schedule)\"" }
    if !timeline.isEmpty { text += "\n\(timeline)" }
    return text
  }
}
