/// Finds how many iterations make a sample long enough for the clock and short enough to be
/// interleaved.
public struct Calibrator: Sendable {
  /// How long a sample is to take.
  public let targetNanoseconds: Double
  /// No more iterations than this, whatever the clock says.
  public let maxIterations: Int

  /// A calibrator for samples of the given length.
  public init(targetNanoseconds: Double, maxIterations: Int = 1 << 40) {
    self.targetNanoseconds = targetNanoseconds
    self.maxIterations = maxIterations
  }

  /// What to do after `iterations` took `elapsed` nanoseconds.
  public enum Step: Equatable, Sendable {
    /// Too short to judge by: try with more.
    case tryAgain(Int)
    /// So many make a sample.
    case use(Int)
  }

  /// The next step. A trial counts once it takes a quarter of the target, since short ones are
  /// mostly cold caches and the clock itself.
  public func step(iterations: Int, elapsed: Double) -> Step {
    let elapsed = max(elapsed, 1)
    if elapsed < targetNanoseconds / 4, iterations < maxIterations {
      // From a very short trial the estimate is worthless, so growth is bounded.
      let wanted = Double(iterations) * min(targetNanoseconds / elapsed, 16)
      return .tryAgain(bounded(max(wanted, Double(iterations) + 1)))
    }
    return .use(bounded(Double(iterations) * targetNanoseconds / elapsed))
  }

  private func bounded(_ iterations: Double) -> Int {
    Int(min(max(iterations.rounded(), 1), Double(maxIterations)))
  }

  /// Runs trials until two in a row are long enough: the first run of anything is the one that
  /// maps memory and fills caches, and would pass for the cost of an iteration.
  public func calibrate(_ trial: (Int) throws -> Double) rethrows -> Int {
    var iterations = 1
    var isConfirmed = false
    // A bound, should the times contradict each other for ever.
    for _ in 0..<100 {
      switch step(iterations: iterations, elapsed: try trial(iterations)) {
      case .tryAgain(let more):
        iterations = more
        isConfirmed = false
      case .use(let settled):
        if isConfirmed { return settled }
        iterations = settled
        isConfirmed = true
      }
    }
    return iterations
  }
}
