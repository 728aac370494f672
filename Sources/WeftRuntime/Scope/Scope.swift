import CWeft

// What surrounds code and holds for all that it calls: a deadline, shields, locals. One record
// (weft_scope) for each fiber, beside its stack, and one for each plain thread.
//
//     withDeadline(a) {         deadline = a          saved: never
//       withDeadline(b) {       deadline = min(a, b)  saved: a
//         withShield {          deadline = never      saved: min(a, b)     shields + 1
//           withDeadline(c) {   deadline = c          saved: never
//
// Whoever enters a scope keeps what it changed on its own stack, and puts that back when it leaves.
// So `deadline` is the earliest that is in force here, and a wait compares one word.
//
// Who looks at it:
//
//   suspend, preparePark      a wait that cancellation ends is ended by the deadline as well
//   Fiber.isCancelled         and with it every operation that throws before it waits
//   GroupCore.init            a group keeps the deadline in force where it was opened: its children
//                             start with it (weft_fiber_bind), and count as cancelled afterwards
//   waits of plain threads    deadlineInForce()
//
// REJECTED: a group's children are cancelled by their body when its own wait ends. They would run
// on while the body computes, joins somebody, or waits in a shield.
//
// A coroutine's body runs in the scope of whoever resumes it. One that yields with a scope of its
// own open carries that end to whoever resumes it next. If that is another fiber or thread, nothing
// is put back there (isPlaced), and the first keeps what was opened: a misuse, which the
// documentation names.

typealias Scope = UnsafeMutablePointer<weft_scope>

/// The deadline around the code that calls, of a fiber or a plain thread, on the clock of
/// weft_clock_now; `never` if there is none.
///
/// For waits that block a plain thread: those of fibers end by themselves.
package func deadlineInForce() -> UInt64 {
  // SAFETY: the scope of the code that calls.
  unsafe weft_current_scope().pointee.deadline
}

/// Whether a deadline around the code that calls has passed.
func deadlineHasPassed() -> Bool {
  let deadline = deadlineInForce()
  return deadline <= timeToCompare(with: deadline)
}

/// The time, for `deadline <= time`. Where there is no deadline the clock is not asked.
@inline(__always)
func timeToCompare(with deadline: UInt64) -> UInt64 { deadline == never ? 0 : weft_clock_now() }

/// For sleeps on a word: how many nanoseconds are left; `never` if there is no end.
func timeLeft(until deadline: UInt64) -> UInt64 {
  if deadline == never { return never }
  let now = weft_clock_now()
  return now < deadline ? deadline - now : 0
}

/// Where a scope was entered.
@usableFromInline
@safe
struct ScopePlace {
  private let scope: Scope

  init() {
    // SAFETY: the scope of the code that calls.
    unsafe scope = weft_current_scope()
  }

  /// The scope, if the code that calls is still inside. Nil in a coroutine that was carried to
  /// another fiber or thread: what was entered may be gone.
  var current: Scope? {
    // SAFETY: the old address is only compared; the other is the scope of the code that calls.
    let here = unsafe weft_current_scope()
    return unsafe here == scope ? here : nil
  }
}
