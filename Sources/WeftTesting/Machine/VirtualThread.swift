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
  /// It waits for what others do, and has looked since the last of them did anything.
  var isSpinning = false

  init(_ context: UnsafeMutablePointer<weft_virtual>, number: Int) {
    unsafe self.context = context
    self.number = number
    unsafe context.pointee.number = UInt64(number)
    unsafe word = nil
  }
}
