import CWeft
import WeftContext

extension Scheduler {
  /// How a scheduler is set up. Every knob has a default that suits most programs.
  ///
  /// ```swift
  /// var configuration = Scheduler.Configuration(workers: 4)
  /// configuration.stackSize = .kibibytes(64)
  /// try Scheduler.run(configuration) { Fiber { print("hello") }.join() }
  /// ```
  ///
  /// Environment variables override what the program set, for experiments without a rebuild:
  /// `WEFT_WORKERS` (`4` or `2-8`), `WEFT_STACK_KIB`, `WEFT_PIN` (`1`), `WEFT_POLLER` (`poll`),
  /// `WEFT_WATCHDOG_MS` (`0`: off), `WEFT_SEED`.
  ///
  /// `WEFT_DEBUG` is a list of debug modes, for the whole process, which make rare things frequent
  /// or check what is taken for granted: `migrate`, `steal`, `tiny`, `queue`, `canary`, `poison`,
  /// `words`. Scheduler.md says what each does.
  public struct Configuration: Sendable {
    /// How few and how many workers may be active. By default as many as there are processors that
    /// this process may use (affinity mask and cgroup quota). More than processors oversubscribes.
    public var workers: ClosedRange<Int>
    /// How much stack a fiber gets that asks for no size of its own.
    public var stackSize: StackSize = .default
    /// How much stack the main fiber of `Scheduler.run` gets.
    public var mainStackSize: StackSize = .mebibytes(7)
    /// Whether each worker stays on one processor.
    public var pinsWorkers = false
    /// Where a fiber goes that has no placement of its own.
    public var placement = PlacementPolicy.local
    /// Who decides how many workers are active. Nil: `LoadFactorPolicy()`.
    public var corePolicy: (any CorePolicy)?
    /// Whether a watchdog names fibers that run too long without yielding. Nil: with more than one
    /// worker.
    public var watchdog: Bool?
    /// How long a fiber may run without yielding before the watchdog names it. Time in which the
    /// kernel gave its processor to others does not count against it: it must have computed for
    /// half that long, or block its worker.
    public var watchdogLimit: Duration = .milliseconds(10)
    /// What to do when every fiber waits for another.
    public var onDeadlock = DeadlockResponse.stop
    /// Threads for calls in `blocking { }`, at most.
    public var blockingThreadsMax = 64
    /// Which poller sleeping workers use.
    public var poller = PollerKind.automatic
    /// The start of the pseudo-random choices.
    public var seed: UInt64 = 0x5EED

    /// Where fibers go.
    public enum PlacementPolicy: Sendable {
      /// To the queue of the worker that makes them; idle workers steal. The default: fork-join
      /// stays on one processor while that suffices.
      case local
      /// To the less loaded of two random active workers, as Arachne does.
      case lesserOfTwo
    }

    /// What a deadlock leads to.
    public enum DeadlockResponse: Sendable {
      /// A report of all parked fibers, and the end of the process, as in Go.
      case stop
      /// The same report; then every parked fiber is cancelled.
      case cancel
    }

    /// Which poller is used.
    public enum PollerKind: Sendable {
      /// The best of the platform.
      case automatic
      /// `poll` on a pipe, which every platform has.
      case portable
    }

    /// A configuration with this many workers, exactly.
    public init(workers count: Int) { workers = count...max(count, count) }

    /// A configuration with the default number of workers, or a range that the core policy uses.
    public init(workers range: ClosedRange<Int>? = nil) {
      let available = Int(weft_cpus_available())
      workers = range ?? available...available
    }

    /// The same with what the environment overrides.
    func resolved() -> Configuration {
      var result = self
      // A simulation is what its seed makes of it, nothing else.
      if Seam.isSimulated { return result }
      if let text = Environment.value("WEFT_WORKERS"), let range = Environment.range(text) {
        result.workers = range
      }
      if let kibibytes = Environment.value("WEFT_STACK_KIB").flatMap({ Int($0) }) {
        result.stackSize = .kibibytes(kibibytes)
      }
      if Environment.value("WEFT_PIN") == "1" { result.pinsWorkers = true }
      if Environment.value("WEFT_POLLER") == "poll" { result.poller = .portable }
      if let limit = Environment.value("WEFT_WATCHDOG_MS").flatMap({ Int($0) }) {
        result.watchdog = limit > 0
        if limit > 0 { result.watchdogLimit = .milliseconds(limit) }
      }
      if let seed = Environment.value("WEFT_SEED").flatMap({ UInt64($0) }) { result.seed = seed }
      return result
    }
  }
}

/// Why a scheduler could not be started.
public enum SchedulerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The number of workers is below 1 or above 256.
  case workersOutOfRange(Int)
  /// `Scheduler.run` was called by a fiber, or by a thread that is in another `run`.
  case nested
  /// A thread could not be started.
  case noThread(errno: Int32)
  /// The scheduler is shutting down, and takes no more fibers from outside.
  case shutDown
  /// Every worker that may be exclusive is taken.
  case noExclusiveWorker
  /// A fiber was placed on a worker that there is not.
  case noSuchWorker(Int)
  /// No stack could be had for a fiber.
  case noStack(StackError)
  /// This is a child of `fork()`, and the scheduler is its parent's.
  case forked

  /// What went wrong and what to do about it.
  public var description: String {
    switch self {
    case .workersOutOfRange(let count):
      "\(count) workers were asked for; 1 to 256 are possible"
    case .nested:
      "Scheduler.run was called inside another run; start fibers with Fiber { } there"
    case .noThread(let errno):
      "a worker's thread could not be started (errno \(errno)); ask for fewer workers, or raise "
        + "the limit (ulimit -u)"
    case .shutDown:
      "the scheduler is shutting down and takes no new fibers"
    case .noExclusiveWorker:
      "no worker is left for exclusive use; raise the scheduler's maximum of workers"
    case .noSuchWorker(let index):
      "there is no worker \(index); workers count from 0"
    case .noStack(let error):
      "a fiber could not start: \(error)"
    case .forked:
      "this process is a child of fork(), where the parent's fibers do not run; start a scheduler "
        + "of your own with Scheduler.run"
    }
  }
}
