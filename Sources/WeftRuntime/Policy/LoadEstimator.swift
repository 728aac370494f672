/// The arithmetic of `LoadFactorPolicy`, with the one thing that it remembers.
struct LoadEstimator: Sendable, Hashable {
  /// How much was used when the number of workers grew to `index + 1`: the number goes back only
  /// when less than that is used. Missing entries: it never grew to that number.
  private var usedAtGrowth: [Int: Double] = [:]

  /// How many workers should be active: at most one more or one less.
  mutating func decide(
    _ sample: LoadSample, loadFactorThreshold: Double, hysteresis: Double
  ) -> Int {
    let active = max(sample.active, 1)
    // Exclusive fibers, or a smaller affinity mask, may have taken what was there.
    if active > sample.maximum { return max(sample.maximum, sample.minimum) }
    if sample.loadFactor > loadFactorThreshold, active < sample.maximum {
      usedAtGrowth[active + 1] = sample.utilization
      return active + 1
    }
    if active <= sample.minimum { return sample.minimum }
    let remaining = Double(active - 1)
    // Where it never grew, one less must have had room for all.
    let used = min(usedAtGrowth[active] ?? remaining, remaining)
    // With every worker idle the difference may be negative: a tenth of one is little enough.
    let threshold = max(used - hysteresis * remaining, 0.1)
    return sample.utilization < threshold ? active - 1 : active
  }
}
