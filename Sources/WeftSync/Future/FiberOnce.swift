import CWeft
import WeftRuntime

// A value that is made once:
//
//                   get: this one makes it          it is made
//     ┌───────┐ ─────────────────────────▶ ┌────────┐ ─────▶ ┌──────┐
//     │ empty │                            │ making │        │ made │
//     └───────┘ ◀───────────────────────── └────────┘        └──────┘
//                it threw, nobody waits      │    ▲
//                                            └────┘ it threw: the first that waits makes it
//
// GUARDED BY: the lock: the changes, the line, and in `count` who makes it.

/// A value that is made when it is first asked for, and only once.
///
/// ```swift
/// let table = FiberOnce<[Int]>()
/// let squares = try table.get { (0..<100).map { $0 * $0 } }
/// ```
///
/// Those who ask while one makes it wait for that one. If it throws, the error goes to the caller
/// whose closure threw; the next one makes it with its own. The closure may wait for other things,
/// which a lazy `static let` does not survive.
///
/// Asking for the value inside the closure that makes it would be to wait for oneself: that stops
/// the process with a message.
///
/// - **Suspension:** `get` parks the fiber while another makes the value; it may resume on another
///   kernel thread. A plain thread is blocked.
/// - **Cancellation:** ends the wait of one that waits; nothing else.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** once it is made, one acquire load.
@safe
// SAFETY: the value is written once, by the one that makes it, before the state says so.
public final class FiberOnce<Value: Sendable>: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  @usableFromInline final var gate: weft_gate
  @exclusivity(unchecked)
  @usableFromInline final var content: Value?

  /// Makes one that is empty.
  public init() {
    // SAFETY: zeros are a value of each field; nobody else has the object yet.
    unsafe gate = weft_gate()
    unsafe content = nil
  }

  /// The address of the gate; valid while the object is.
  @inlinable @inline(__always)
  final var pointer: Gate {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// The value; makes it if there is none.
  ///
  /// - **Suspension:** parks while another makes it; and in `make`.
  /// - **Cancellation:** a fiber that is cancelled neither waits nor makes, but gets a value that
  ///   is there.
  /// - Parameter make: makes the value, if this is the first to ask, or those before it failed.
  /// - Throws: what `make` threw, here and nowhere else; `CancellationError`.
  @inlinable
  public func get(_ make: () throws -> Value) throws -> Value {
    if let value { return value }
    return try getSlow(make)
  }

  /// The value, if it is made.
  ///
  /// - **Suspension:** never.
  @inlinable
  public var value: Value? { unsafe isMade(pointer) ? content : nil }  // SAFETY: `self` keeps it

  @usableFromInline @inline(never)
  func getSlow(_ make: () throws -> Value) throws -> Value {
    // SAFETY: `self` keeps the gate until the line in the defer.
    try throwIfCancelled()
    defer { withExtendedLifetime(self) {} }
    let gate = unsafe pointer
    if try unsafe enterOnce(gate) {
      do {
        unsafe content = try make()
      } catch {
        unsafe failOnce(gate)
        throw error
      }
      unsafe finishOnce(gate)
    }
    return unsafe content.unsafelyUnwrapped
  }
}

private let onceMaking: UInt64 = 1
/// The state of one whose value is there.
@usableFromInline let onceMade: UInt64 = 2

@inlinable @inline(__always)
func isMade(_ once: Gate) -> Bool {
  // SAFETY: the caller keeps it.
  // ORDERING: acquire, paired with the store in finishOnce.
  unsafe weft_word_load_acquire(weft_gate_state(once)) == onceMade
}

/// Waits for the value, or for being the one that makes it. True for the latter.
private func enterOnce(_ once: Gate) throws -> Bool {
  // SAFETY: the caller keeps it.
  let owner = weft_owner_current()
  unsafe once.lock()
  switch unsafe once.word {
  case onceMade:
    unsafe once.unlock()
    return false
  case onceMaking:
    if unsafe once.pointee.count == owner {
      unsafe once.unlock()
      refuse(
        "\(describeCaller()) asked a FiberOnce for its value inside the closure that makes it, and "
          + "would wait for itself.")
    }
    let ended = unsafe once.wait(in: weft_gate_line(once), for: .once, amount: owner)
    try ended.check()
    return ended.outcome == .retry
  default:
    unsafe once.word = onceMaking
    unsafe once.pointee.count = owner
    unsafe once.unlock()
    return true
  }
}

/// The value is in its place.
private func finishOnce(_ once: Gate) {
  // SAFETY: the caller is the one that made it, and keeps it.
  var claimed = Claimed()
  unsafe once.lock()
  unsafe once.word = onceMade
  unsafe claimed.claimAll(weft_gate_line(once))
  unsafe once.unlock()
  claimed.release()
}

/// It could not be made: the first that waits tries.
private func failOnce(_ once: Gate) {
  // SAFETY: as in finishOnce; under the lock those in the line are there.
  var claimed = Claimed()
  unsafe once.lock()
  var isPassedOn = false
  while let first = unsafe once.pointee.line.first, !isPassedOn {
    unsafe once.pointee.count = first.pointee.amount
    isPassedOn = unsafe claimed.claim(first, .retry)
  }
  if !isPassedOn { unsafe once.word = 0 }
  unsafe once.unlock()
  claimed.release()
}
