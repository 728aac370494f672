/// Decides how many workers take general work, and which one an exclusive fiber gets.
///
/// Workers fall into two classes: shared ones run every fiber that is not placed elsewhere,
/// exclusive ones run one fiber each until it ends (`Placement.exclusive`). A policy is asked once
/// a period, while any worker is busy, how many shared ones there should be; the scheduler keeps
/// its answer between the minimum of `Configuration.workers` and what the maximum and the
/// processors allow. Where the minimum equals the maximum nobody is asked.
///
/// ```swift
/// struct Greedy: CorePolicy {
///   var period: Duration { .milliseconds(20) }
///   mutating func activeWorkers(_ sample: LoadSample) -> Int {
///     sample.loadFactor > 0.5 ? sample.maximum : sample.minimum
///   }
/// }
/// ```
///
/// Each scheduler works on a copy of its own, under a lock: an implementation must neither block
/// nor call into the runtime.
public protocol CorePolicy: Sendable {
  /// How often the policy is asked.
  var period: Duration { get }

  /// How many workers should be active, given what the last period was like.
  mutating func activeWorkers(_ sample: LoadSample) -> Int

  /// Which worker an exclusive fiber gets.
  ///
  /// - Parameter candidates: workers that may be taken, the best first: idle ones, and ones that
  ///   take no general work anyway, come before busy ones. Never worker 0.
  /// - Returns: one of them; nil to let the fiber wait until another exclusive one ends.
  mutating func exclusiveWorker(from candidates: [Int]) -> Int?
}

extension CorePolicy {
  /// Every 50 ms.
  public var period: Duration { .milliseconds(50) }

  /// The best candidate.
  public mutating func exclusiveWorker(from candidates: [Int]) -> Int? { candidates.first }
}

/// What one period was like.
public struct LoadSample: Sendable, Hashable {
  /// Shared workers that were active.
  public var active: Int
  /// The fewest that may be active.
  public var minimum: Int
  /// The most that may be active now, given the configuration, the processors that this process may
  /// use, and the exclusive fibers.
  public var maximum: Int
  /// Workers that run an exclusive fiber.
  public var exclusive: Int
  /// How many workers' worth of time was spent on running fibers: 0 to `active`.
  public var utilization: Double
  /// Runnable and running fibers per active worker, on average over the period.
  public var loadFactor: Double

  /// A sample, for tests of a policy.
  public init(
    active: Int, minimum: Int = 1, maximum: Int, exclusive: Int = 0, utilization: Double,
    loadFactor: Double
  ) {
    self.active = active
    self.minimum = minimum
    self.maximum = maximum
    self.exclusive = exclusive
    self.utilization = utilization
    self.loadFactor = loadFactor
  }
}

/// Grows by load factor, shrinks by utilisation: the default.
///
/// One more worker when on average more than `loadFactorThreshold` fibers ran or waited per worker.
/// One less when the work would fit into fewer: when less is used than was used at the time of the
/// growth to this number, less a hysteresis for each remaining worker, so that a load near a
/// threshold does not make the number go up and down. The names and numbers are Arachne's.
public struct LoadFactorPolicy: CorePolicy, Hashable {
  /// Fibers per worker above which one more is started.
  public var loadFactorThreshold: Double
  /// The part of each remaining worker that must be idle before one is retired.
  public var idleCoreHysteresis: Double
  /// How often it decides.
  public var period: Duration
  private var estimator = LoadEstimator()

  /// A policy with the given parameters.
  public init(
    loadFactorThreshold: Double = 1.5, idleCoreHysteresis: Double = 0.09,
    period: Duration = .milliseconds(50)
  ) {
    self.loadFactorThreshold = loadFactorThreshold
    self.idleCoreHysteresis = idleCoreHysteresis
    self.period = period
  }

  /// At most one more or one less than now.
  public mutating func activeWorkers(_ sample: LoadSample) -> Int {
    estimator.decide(
      sample, loadFactorThreshold: loadFactorThreshold, hysteresis: idleCoreHysteresis)
  }
}

/// Keeps utilisation below a bound.
///
/// One more worker when more than `utilizationMax` of the active ones' time is used, one less when
/// what is used would still fit below the bound with one less, by a margin.
public struct UtilizationPolicy: CorePolicy, Hashable {
  /// The part of the active workers' time that may be used.
  public var utilizationMax: Double
  /// How far below the bound one less must be, in workers.
  public var idleCoreHysteresis: Double
  /// How often it decides.
  public var period: Duration

  /// A policy with the given parameters.
  public init(
    utilizationMax: Double = 0.8, idleCoreHysteresis: Double = 0.09,
    period: Duration = .milliseconds(50)
  ) {
    self.utilizationMax = utilizationMax
    self.idleCoreHysteresis = idleCoreHysteresis
    self.period = period
  }

  /// At most one more or one less than now.
  public mutating func activeWorkers(_ sample: LoadSample) -> Int {
    if sample.utilization > utilizationMax * Double(sample.active) { return sample.active + 1 }
    let withOneLess = utilizationMax * Double(sample.active - 1)
    return sample.utilization < withOneLess - idleCoreHysteresis ? sample.active - 1 : sample.active
  }
}

/// Always the same number.
public struct FixedPolicy: CorePolicy, Hashable {
  /// How many workers are active.
  public var count: Int

  /// A policy that wants so many.
  public init(_ count: Int) { self.count = count }

  /// `count`.
  public mutating func activeWorkers(_ sample: LoadSample) -> Int { count }
}
