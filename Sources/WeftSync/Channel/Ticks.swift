import WeftRuntime

/// A channel on which the time comes by, once in each period.
///
/// ```swift
/// let clock = ticks(every: .milliseconds(20))
/// for _ in 0..<3 { if let now = try clock.receive() { print(now) } }
/// clock.close()
/// ```
///
/// The first tick comes after one period. Ticks that nobody receives in time are dropped, one is
/// kept; those that come do not drift. Closing or dropping the channel stops them, and so does the
/// end of the scheduler.
///
/// - **Suspension:** never; a fiber of its own sends.
/// - **Thread safety:** any fiber, any thread: outside of fibers `Scheduler.shared` sends.
/// - Parameter period: more than zero; anything else stops the process with a message.
/// - Complexity: a fiber that sleeps.
public func ticks(every period: Duration) -> Channel<ContinuousClock.Instant> {
  if period <= .zero { fatalError("weft: ticks(every: \(period)): the period must be positive") }
  let channel = Channel<ContinuousClock.Instant>(capacity: 1)
  let first = Fiber.now + period
  let fiber = Fiber(name: "ticks") { [weak channel] in
    var next = first
    while true {
      do throws(CancellationError) { try Fiber.sleep(until: next) } catch { return }
      let now = Fiber.now
      // The channel is not kept over the sleep, or dropping it would stop nothing.
      guard let channel else { return }
      do throws(ChannelClosed) {
        _ = try channel.sendIfAvailable(now)
      } catch {
        return
      }
      next += period
      if next <= now { next += period * Int((now - next) / period + 1) }
    }
  }
  channel.stopWith(fiber)
  return channel
}

extension Channel where Element: ~Copyable {
  /// Cancels a fiber when the channel is closed or dropped.
  final func stopWith(_ fiber: Fiber<Void, Never>) {
    // ORDERING: whoever closes has got the channel from the caller, after this.
    onEnd = { fiber.cancel() }
  }
}
