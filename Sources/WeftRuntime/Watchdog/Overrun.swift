/// How long one worker has run the same fiber without a switch, as far as looks from outside tell.
///
/// A run is overdue when the limit has passed since the first look that saw it, and the fiber is to
/// blame: the worker's thread has used at least half the limit in processor time since then, or is
/// blocked at this moment. A thread that was ready to run while the kernel gave its processor to
/// others did nothing wrong, however long that took. Where threads have no clock of their own, or
/// none can be asked whether it is blocked, the time that has passed decides alone.
///
/// A run that is overdue stays so until the next switch.
struct OverrunTracker: Sendable {
  private var tick: UInt64 = 0
  private var running: UInt = 0
  private var since: UInt64 = 0
  /// The thread's processor time at that moment.
  private var usedBefore: UInt64 = 0
  private(set) var isOverdue = false

  /// Takes in a look. Returns how long the fiber has run, once, when it becomes overdue.
  ///
  /// The first look that saw this run began it, so the time is never overstated.
  ///
  /// - Parameters:
  ///   - tick: the worker's count of switches.
  ///   - running: what it runs; 0 for nothing.
  ///   - used: processor time of its thread; nil where it can't be told.
  ///   - isBlocked: whether its thread waits for something other than a processor. Asked only where
  ///     that decides.
  mutating func look(
    tick: UInt64, running: UInt, now: UInt64, used: UInt64?, limit: UInt64,
    isBlocked: () -> Bool
  ) -> UInt64? {
    if running == 0 || tick != self.tick || running != self.running {
      self.tick = tick
      self.running = running
      since = now
      usedBefore = used ?? 0
      isOverdue = false
      return nil
    }
    let elapsed = now >= since ? now - since : 0
    if isOverdue || elapsed < limit { return nil }
    if let used, used >= usedBefore, used - usedBefore < limit / 2, !isBlocked() { return nil }
    isOverdue = true
    return elapsed
  }
}
