import CWeft
import WeftRuntime

//              wait: append, then unlock the mutex
//     ┌───────┐ ─────────────────────────────────▶ ┌──────────────────────────────┐
//     │ empty │                                    │ a line; `state` is the mutex │
//     └───────┘ ◀───────────────────────────────── └──────────────────────────────┘
//              notify: claim; cancelled, time up: leave. Then lock the mutex.
//
// REJECTED: moving who is notified into the mutex's line instead of waking it. Its wait would go
// on, could still be cancelled, and would have to look for itself in two lines.

/// What those wait for who hold a `FiberMutex` and need its value to change.
///
/// ```swift
/// let level = FiberMutex(0)
/// let raised = FiberCondition()
/// Fiber {
///   for _ in 0..<10 {
///     level.withLock { $0 += 1 }
///     raised.notifyAll()
///   }
/// }
/// try level.withGuard { level in
///   while level.value < 10 { try level.wait(on: raised) }
/// }
/// ```
///
/// Who waits is in its line before the mutex is free: a notification after a change, whether it is
/// made with the mutex held or not, misses nobody. First come, first served. A notification that
/// finds nobody is not remembered.
///
/// - **Suspension:** in `FiberMutex.Guard.wait(on:)`; notifying never suspends.
/// - **Cancellation:** who is cancelled while it waits leaves the line, and takes no notification
///   with it.
/// - **Thread safety:** any fiber, any thread. Those who wait at the same time must do so with the
///   same mutex; else the process is stopped with a message.
/// - **Complexity:** O(1), for `notifyAll` O(those who wait); no allocation.
@safe
// SAFETY: everything is guarded by the gate's lock.
public final class FiberCondition: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  final var gate: weft_gate

  /// Makes a condition.
  public init() { unsafe gate = weft_gate() }  // SAFETY: zeros are a value of each field

  /// The address of the gate; valid while the object is.
  final var pointer: Gate {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// Lets the first that waits go on, if there is one.
  ///
  /// - **Suspension:** never.
  public func notifyOne() {
    // SAFETY: `self` keeps the gate; under its lock those in the line are there.
    var claimed = Claimed()
    let gate = unsafe pointer
    unsafe gate.lock()
    while let first = unsafe gate.pointee.line.first {
      if unsafe claimed.claim(first) { break }
    }
    unsafe gate.unlock()
    claimed.release()
    withExtendedLifetime(self) {}
  }

  /// Lets all that wait go on.
  ///
  /// - **Suspension:** never.
  public func notifyAll() {
    // SAFETY: as in notifyOne.
    var claimed = Claimed()
    let gate = unsafe pointer
    unsafe gate.lock()
    unsafe claimed.claimAll(weft_gate_line(gate))
    unsafe gate.unlock()
    claimed.release()
    withExtendedLifetime(self) {}
  }
}

/// Waits on a condition, with a mutex that is held before and after.
func waitOnCondition(
  _ condition: Gate, _ mutex: Gate, _ owner: inout UInt64, until: UInt64
) -> Ended {
  // SAFETY: the caller keeps both, and holds the mutex. The waiter lies on this stack, and this
  // returns only when it is in no line and nobody touches it.
  if Fiber.isCancelled {
    // Not without letting others have the mutex: whoever ignores its cancellation, and waits again,
    // must not keep them from it for ever.
    unsafe unlockMutex(mutex, owner)
    Fiber.yield()
    unsafe owner = lockMutex(mutex)
    return Ended(reason: .cancelled, outcome: 0)
  }
  var waiter = unsafe weft_waiter()
  return unsafe withUnsafeMutablePointer(to: &waiter) { waiter in
    unsafe condition.lock()
    let other = unsafe condition.pointee.line.first != nil && condition.word != mutexName(mutex)
    if other {
      unsafe condition.unlock()
      refuse(
        "\(describeCaller()) waits on a FiberCondition with another FiberMutex than those who wait "
          + "on it already. Use one condition for each mutex.")
    }
    unsafe condition.word = mutexName(mutex)
    unsafe waiter.prepare()
    unsafe weft_line_append(weft_gate_line(condition), waiter)
    unsafe condition.unlock()
    unsafe unlockMutex(mutex, owner)
    let end = unsafe waiter.wait(for: .condition, of: condition, until: until)
    if end != .woken { unsafe waiter.leave(weft_gate_lock(condition)) }
    unsafe owner = lockMutex(mutex)
    return Ended(reason: end, outcome: 0)
  }
}

private func mutexName(_ mutex: Gate) -> UInt64 { UInt64(UInt(bitPattern: mutex)) }
