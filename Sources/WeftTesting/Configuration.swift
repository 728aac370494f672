import WeftContext
import WeftRuntime

extension Simulation {
  /// How a simulation is set up.
  ///
  /// ```swift
  /// var configuration = Simulation.Configuration(workers: 1)
  /// configuration.faults = [.spuriousWakes, .delayedWakes]
  /// try Simulation.explore(schedules: 50, configuration) { Fiber { print("hello") }.join() }
  /// ```
  public struct Configuration: Sendable {
    /// How many simulated workers run the fibers.
    ///
    /// With one, fibers take turns where they wait, yield, or use a channel or lock. With two or
    /// more, the workers take turns as well, and fibers move between them, which finds more and
    /// takes longer. Built with `-Xcc -DWEFT_SEAM_FINE=1` they do so before every access to a word
    /// that several threads touch.
    public var workers: Int
    /// How it is decided who runs next.
    public var policy = Policy.mixed
    /// What may go wrong besides.
    public var faults: Faults = []
    /// Of a hundred chances for a fault, how many are taken. With all of them taken, nobody ever
    /// sleeps (`spuriousWakes`) or gets a stack (`noStack`), and the run is endless.
    public var faultPercent = 5
    /// After so many steps the program is taken for one that goes on for ever.
    public var stepsMost = 1_000_000
    /// Whether fibers may be left when the body returns. They are cancelled then.
    public var allowsLeftovers = false
    /// How often a failing schedule is run again to find a shorter one.
    public var shrinksMost = 200
    /// How much stack a fiber gets that asks for no size of its own.
    public var stackSize = StackSize.default

    /// A configuration with this many workers.
    public init(workers: Int = 2) { self.workers = workers }
  }

  /// How a simulation decides who runs next.
  public enum Policy: Sendable, Hashable {
    /// `random` for some seeds, and `priorities` of several depths for others.
    case mixed
    /// Any of those that can run, each time; how often one is interrupted differs by seed.
    case random
    /// First come, first served; nobody is interrupted. Each seed gives the same schedule.
    case roundRobin
    /// Probabilistic concurrency testing: each thread and fiber has a random priority, the highest
    /// runs, and at `depth - 1` random moments it falls behind all others, as it does where it
    /// yields. Finds a bug that needs `depth` things in a certain order with a known probability
    /// (Burckhardt and others, ASPLOS 2010).
    case priorities(depth: Int)
    /// Every schedule in which nobody is interrupted more than `preemptions` times in all, one
    /// after the other: for `explore`. With faults, as many of those.
    case exhaustive(preemptions: Int)
  }

  /// What may go wrong in a simulation that is nobody's bug.
  public struct Faults: OptionSet, Sendable, Hashable {
    /// A bit for each.
    public let rawValue: UInt32
    /// Those whose bits are set.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A fiber or coroutine gets no stack: the fiber waits for one, a coroutine's `init` throws.
    public static let noStack = Faults(rawValue: 1 << 0)
    /// A thread can't be started, as for `blocking { }`.
    public static let noThread = Faults(rawValue: 1 << 1)
    /// A fiber is cancelled where it begins to wait.
    public static let cancellations = Faults(rawValue: 1 << 2)
    /// A thread wakes for no reason, as the kernel's may.
    public static let spuriousWakes = Faults(rawValue: 1 << 3)
    /// A thread that was woken gets no processor until nobody else can run.
    public static let delayedWakes = Faults(rawValue: 1 << 4)
    /// A worker's processor is taken away until nobody else can run.
    public static let slowWorkers = Faults(rawValue: 1 << 5)
    /// Time passes up to the next time limit although somebody could run.
    public static let clockJumps = Faults(rawValue: 1 << 6)
    /// All that a correct program has to stand without noticing: not `noStack`, `noThread` or
    /// `cancellations`, which it is told of.
    public static let unnoticed: Faults = [
      .spuriousWakes, .delayedWakes, .slowWorkers, .clockJumps,
    ]
  }
}
