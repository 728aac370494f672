import CWeft

/// A simulated kernel thread, as the machine sees it.
///
///              wait ┌─────────┐ wake, time, spurious
///     ┌──────────┐ ─▶ blocked │ ─▶ ┌──────────┐
///     │ runnable │  └─────────┘    │ runnable │
///     └──────────┘ ── its function returns ──▶ ended
// SAFETY: the context is destroyed by the machine, when it has ended.
@safe
final class VirtualThread {
  enum State { case runnable, blocked, ended }

  let context: UnsafeMutablePointer<weft_virtual>
  let number: Int
  var state = State.runnable
  /// What it sleeps on, if on anything.
  var word: UnsafeMutableRawPointer?
  /// Until when; `UInt64.max`: for ever.
  var deadline = UInt64.max
  /// It waits for what others do, and has looked since the last of them did anything. One that has
  /// no looks left lets all others go first.
  var isSpinning = false
  /// How often it may still go on looking instead: since it last slept or changed fibers.
  var looks = VirtualThread.looksMost
  /// It was chosen to go on looking, and does until it has no looks left.
  var persists = false

  /// Enough for an idle worker's search, which ends by itself; a lock's never does.
  static let looksMost = 24

  func looksAnew() {
    looks = VirtualThread.looksMost
    persists = false
  }

  init(_ context: UnsafeMutablePointer<weft_virtual>, number: Int) {
    // SAFETY: our own context.
    unsafe self.context = context
    self.number = number
    unsafe context.pointee.number = UInt64(number)
    unsafe word = nil
  }
}
