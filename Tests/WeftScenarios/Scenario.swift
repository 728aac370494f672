import Weft
import WeftTesting

/// A small program whose every schedule must end well: what the runtime is put through.
public struct Scenario: Sendable, CustomStringConvertible {
  /// What it is about.
  public let name: String
  /// How many workers run it.
  public let workers: Int
  /// Whether it is about time exactly, and so minds faults.
  public let isExact: Bool
  /// What may happen besides.
  public let faults: Simulation.Faults
  /// Whether fibers may be left at its end.
  public let allowsLeftovers: Bool
  /// The program.
  public let body: @Sendable () throws -> Void

  init(
    _ name: String, workers: Int = 2, faults: Simulation.Faults = [],
    allowsLeftovers: Bool = false, isExact: Bool = false,
    _ body: @escaping @Sendable () throws -> Void
  ) {
    self.name = name
    self.workers = workers
    self.faults = faults
    self.isExact = isExact
    self.allowsLeftovers = allowsLeftovers
    self.body = body
  }

  /// Its name.
  public var description: String { name }

  /// Runs so many schedules of it.
  @discardableResult
  public func explore(
    _ schedules: Int, seed: UInt64, policy: Simulation.Policy = .mixed
  ) throws(SimulationFailure) -> Simulation.Exploration {
    var configuration = Simulation.Configuration(workers: workers)
    configuration.policy = policy
    configuration.faults = faults
    configuration.allowsLeftovers = allowsLeftovers
    configuration.stepsMost = 200_000
    return try Simulation.explore(schedules: schedules, seed: seed, configuration, body)
  }

  /// All of them.
  public static let all: [Scenario] =
    waking + joining + timing + workers + channels + locks + futures + groups

  /// Each of them with the faults that a correct program does not notice, too.
  public static let allWithFaults: [Scenario] = all.filter { !$0.isExact }.map {
    Scenario(
      $0.name + ", faults", workers: $0.workers, faults: $0.faults.union(.unnoticed),
      allowsLeftovers: $0.allowsLeftovers, $0.body)
  }
}

/// A variable that the fibers of a simulation share: one thread runs them all, and nobody else runs
/// between two operations of Weft.
///
/// `@unchecked Sendable`: SAFETY: as above.
public final class Shared<Value>: @unchecked Sendable {
  /// The value.
  public var value: Value
  /// Holds a value.
  public init(_ value: Value) { self.value = value }
}

func require(
  _ condition: Bool, _ comment: @autoclosure () -> String = "",
  fileID: StaticString = #fileID, line: UInt = #line
) throws {
  try Simulation.require(condition, comment(), fileID: fileID, line: line)
}
