import CWeft

/// Never: past every instant that a wait can have.
package let never = UInt64.max

/// A sum that stays at the end of time instead of wrapping.
package func saturatingSum(_ a: UInt64, _ b: UInt64) -> UInt64 {
  let (sum, overflow) = a.addingReportingOverflow(b)
  return overflow ? never : sum
}

extension Duration {
  /// Whole nanoseconds, rounded up so that a wait never ends early; 0 for negative durations, and
  /// the end of time for those beyond it.
  package var saturatedNanoseconds: UInt64 {
    if self <= .zero { return 0 }
    // So many seconds overflow below; many more would overflow `components`.
    if self >= .seconds(18_446_744_074) { return never }
    let (seconds, attoseconds) = components
    let (whole, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return never }
    return saturatingSum(whole, UInt64((attoseconds + 999_999_999) / 1_000_000_000))
  }
}

/// The instant on our clock at which a duration from now ends.
@usableFromInline
package func deadline(after duration: Duration) -> UInt64 {
  saturatingSum(weft_clock_now(), duration.saturatedNanoseconds)
}

/// The same for an instant of `ContinuousClock`, whose epoch is its own business. An instant is
/// always the same number, so that two deadlines are in the order of their instants.
package func deadline(at instant: ContinuousClock.Instant) -> UInt64 {
  if let reference = Seam.reference {
    let distance = reference.instant.duration(to: instant)
    return saturatingSum(reference.nanoseconds, distance.saturatedNanoseconds)
  }
  #if os(Linux)
    let distance = reference.instant.duration(to: instant)
    return saturatingSum(reference.nanoseconds, distance.saturatedNanoseconds)
  #else
    // PLATFORM: Darwin's CLOCK_MONOTONIC is slewed, the other clock is not.
    return deadline(after: ContinuousClock.now.duration(to: instant))
  #endif
}

/// The instant that it is, on the clock that sleeps and deadlines go by.
package func instantNow() -> ContinuousClock.Instant {
  guard let reference = Seam.reference else { return ContinuousClock.now }
  return reference.instant + .nanoseconds(weft_clock_now() - reference.nanoseconds)
}

#if os(Linux)
  /// One moment on both clocks, which are the same to the kernel. Ours is read after the other, so
  /// that nothing ends early; of some tries the one counts in which the least time went by.
  private let reference: (instant: ContinuousClock.Instant, nanoseconds: UInt64) = {
    var best = (instant: ContinuousClock.now, nanoseconds: weft_clock_now())
    var least = never
    for _ in 0..<8 {
      let before = weft_clock_now()
      let instant = ContinuousClock.now
      let after = weft_clock_now()
      if after - before < least { (best, least) = ((instant, after), after - before) }
    }
    return best
  }()
#endif
