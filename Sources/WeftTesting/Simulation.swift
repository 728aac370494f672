import CWeft
import WeftRuntime

/// Runs a program that uses Weft as a simulation: the real scheduler and the real primitives, on
/// one thread, where a seed decides who runs when, and time is virtual.
///
/// ```swift
/// @Test func nobodyWaitsForEver() throws {
///   try Simulation.explore(schedules: 100) {
///     let done = Fiber { try Fiber.sleep(for: .seconds(3_600)) }
///     try done.join()
///   }
/// }
/// ```
///
/// The body runs as the main fiber of `Scheduler.run`. Time stands still while anybody can run, and
/// jumps when everybody waits: an hour's sleep takes no time. `Fiber.now` is the time in the
/// simulation; `ContinuousClock.now` is not.
///
/// A run fails if the body throws, and by name for a deadlock, a lost wake-up, fibers or stacks
/// that are left, an error that nobody joined, or a program that never ends. The failure's
/// description has the seed and the schedule, which `run` and `replay` do again, step by step, in a
/// debugger too.
///
/// What is not Weft's the simulation does not see: between two operations of Weft nobody else runs.
/// Put a `Simulation.point()` where atomics or locks of other kinds matter, and hold none of those
/// locks over an operation of Weft, which would block the only thread there is. Nothing should
/// depend on addresses or hash seeds, which differ from one process to the next.
///
/// The fibers of a run that could not be ended, as those that wait for a lock which nobody will
/// ever free, are abandoned with what they refer to: that is why the body is an escaping closure.
///
/// - **Thread safety:** any thread; several may simulate at once, each for itself.
public enum Simulation {
  /// Runs a function once.
  ///
  /// - Suspension: blocks the calling thread, on which all of it runs.
  /// - Parameters:
  ///   - seed: decides everything. The same seed, program and configuration do the same.
  ///   - configuration: how many workers there are, and so on.
  ///   - body: the main fiber's function.
  /// - Returns: what `body` returned.
  /// - Throws: ``SimulationFailure``, with a schedule that was not shortened.
  @discardableResult
  public static func run<R>(
    seed: UInt64, _ configuration: Configuration = .init(), fileID: StaticString = #fileID,
    line: UInt = #line, _ body: @escaping () throws -> R
  ) throws(SimulationFailure) -> R {
    var result: R?
    let explorer = Explorer(configuration, seed: seed, place: (fileID, line)) {
      result = try body()
    }
    try check(configuration, seed)
    if let failure = explorer.runOnce() { throw failure }
    return try checked(result, seed)
  }

  /// Runs a function again and again, each time with another schedule, until one fails.
  ///
  /// The first failure is made as short as it can be and thrown. With
  /// `Policy.exhaustive` every schedule within its bound is run, unless there are more than
  /// `schedules`.
  ///
  /// - Suspension: blocks the calling thread, on which all of it runs.
  /// - Parameters:
  ///   - schedules: how many runs, at most.
  ///   - seed: of the first run; each further one has the next number.
  ///   - configuration: how many workers there are, and so on.
  ///   - body: the main fiber's function. It has to make everything it uses anew.
  /// - Returns: how much was explored.
  /// - Throws: ``SimulationFailure``.
  @discardableResult
  public static func explore(
    schedules: Int, seed: UInt64 = 1, _ configuration: Configuration = .init(),
    fileID: StaticString = #fileID, line: UInt = #line, _ body: @escaping () throws -> Void
  ) throws(SimulationFailure) -> Exploration {
    try check(configuration, seed)
    return try Explorer(configuration, seed: seed, place: (fileID, line), body).explore(schedules)
  }

  /// Does again what a schedule says.
  ///
  /// - Suspension: blocks the calling thread, on which all of it runs.
  /// - Parameters:
  ///   - schedule: the description of a failure's schedule.
  ///   - configuration: the same as in the run that failed.
  ///   - body: the same as in the run that failed.
  /// - Returns: what `body` returned.
  /// - Throws: ``SimulationFailure``.
  @discardableResult
  public static func replay<R>(
    _ schedule: String, _ configuration: Configuration = .init(),
    fileID: StaticString = #fileID, line: UInt = #line, _ body: @escaping () throws -> R
  ) throws(SimulationFailure) -> R {
    guard let parsed = Schedule(schedule) else {
      throw refusal("\"\(schedule)\" is no schedule; give the text that a failure shows", 0)
    }
    var result: R?
    let explorer = Explorer(configuration, seed: parsed.seed, place: (fileID, line)) {
      result = try body()
    }
    try check(configuration, parsed.seed)
    if let failure = explorer.replay(parsed) { throw failure }
    return try checked(result, parsed.seed)
  }

  private static func checked<R>(_ result: R?, _ seed: UInt64) throws(SimulationFailure) -> R {
    if let result { return result }
    throw refusal("the body did not return", seed)
  }

  /// Throws if there can be no such run.
  private static func check(
    _ configuration: Configuration, _ seed: UInt64
  ) throws(SimulationFailure) {
    if isRunning {
      throw refusal("a simulation was started inside of another; start it when that is over", seed)
    }
    if !(1...256).contains(configuration.workers) {
      throw refusal("workers is \(configuration.workers); 1 to 256 are possible", seed)
    }
    let bytes = configuration.stackSize.bytes
    if bytes < 1 || !weft_stack_size_is_possible(bytes) {
      throw refusal(
        "stackSize is \(configuration.stackSize); sizes from 16 KiB to 64 GiB are possible", seed)
    }
  }

  private static func refusal(_ text: String, _ seed: UInt64) -> SimulationFailure {
    SimulationFailure(
      kind: .refused(text), seed: seed, schedule: Schedule(seed: seed, choices: [:]), timeline: "")
  }

  /// How much was explored.
  public struct Exploration: Sendable {
    /// How many schedules were run.
    public let schedules: Int
    /// Whether there are no others within the policy's bound.
    public let isComplete: Bool
    /// Places in all of them where a thread or fiber could be chosen.
    public let choices: Int
  }
}

// MARK: - Inside a simulation

extension Simulation {
  /// Whether the caller is part of a simulation.
  public static var isRunning: Bool {
    // SAFETY: only compared.
    unsafe weft_seam_current() != nil
  }

  /// A place where others may run: beside atomics and locks that are not Weft's.
  ///
  /// Time does not pass here: a loop that waits for it has to yield.
  ///
  /// - Suspension: lets another fiber run, if the schedule says so. Does nothing outside of a
  ///   simulation.
  public static func point() {
    simulatedPoint()
  }

  /// Throws unless something holds.
  ///
  /// Unlike `#expect` it ends the run, so that the failure has its schedule.
  ///
  /// - Throws: ``RequirementFailed``.
  public static func require(
    _ condition: Bool, _ comment: @autoclosure () -> String = "",
    fileID: StaticString = #fileID, line: UInt = #line
  ) throws(RequirementFailed) {
    if condition { return }
    throw RequirementFailed(comment: comment(), place: "\(fileID):\(line)")
  }

  /// What `require` throws.
  public struct RequirementFailed: Error, CustomStringConvertible, Sendable {
    /// What the caller said.
    public let comment: String
    /// Where it was called.
    public let place: String

    /// The place and the comment.
    public var description: String {
      "a requirement failed at \(place)\(comment.isEmpty ? "" : ": \(comment)")"
    }
  }

  /// A thread of the simulation that is no worker, as a program's own threads are.
  ///
  /// Outside of a simulation it is a kernel thread. In one it must not make fibers any more when
  /// the body has returned, and with it the scheduler has ended.
  ///
  /// - Returns: to be joined, or dropped: a simulation waits for all of its threads.
  /// - Throws: if the thread could not be started.
  @discardableResult
  public static func thread(_ body: @escaping @Sendable () -> Void) throws -> Thread {
    Thread(thread: try KernelThread.start(body))
  }

  /// A thread that ``Simulation/thread(_:)`` started.
  public struct Thread {
    let thread: KernelThread

    /// Waits until it has ended, once.
    ///
    /// - Suspension: blocks the calling thread, a worker too: from a fiber, wait for something of
    ///   Weft's instead.
    public func join() { thread.join() }
  }
}
