/// The order statistics of one job's samples.
public struct Summary: Equatable, Sendable {
  /// How many samples there were.
  public let count: Int
  /// The smallest sample.
  public let min: Double
  /// The middle sample, or the mean of the two in the middle.
  public let median: Double
  /// The 90th percentile.
  public let p90: Double
  /// The 99th percentile.
  public let p99: Double

  /// Makes a summary from known statistics, as when reading a report.
  public init(count: Int, min: Double, median: Double, p90: Double, p99: Double) {
    self.count = count
    self.min = min
    self.median = median
    self.p90 = p90
    self.p99 = p99
  }

  /// Summarises samples. Those that are not finite are left out: a ratio over an empty
  /// measurement says nothing. Returns nil if none is left.
  public init?(_ samples: [Double]) {
    let sorted = samples.filter(\.isFinite).sorted()
    guard let smallest = sorted.first else { return nil }
    self.init(
      count: sorted.count, min: smallest, median: percentile(50, ofSorted: sorted),
      p90: percentile(90, ofSorted: sorted), p99: percentile(99, ofSorted: sorted))
  }
}

/// The given percentile of ascending samples, interpolated linearly between the two nearest.
///
/// A percentage outside 0 ... 100 is clamped. The samples must not be empty.
public func percentile(_ percentage: Double, ofSorted sorted: [Double]) -> Double {
  precondition(!sorted.isEmpty, "A percentile needs at least one sample.")
  let rank = Swift.min(Swift.max(percentage, 0), 100) / 100 * Double(sorted.count - 1)
  let below = Int(rank.rounded(.down))
  let above = Swift.min(below + 1, sorted.count - 1)
  let fraction = rank - Double(below)
  return sorted[below] + (sorted[above] - sorted[below]) * fraction
}
