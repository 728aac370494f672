import CWeft
import WeftRuntime

//                        ┌── one more comes: count + 1, into the line
//                        ▼                                              the last comes:
//     ┌──────────────────────────────┐ ───────────────────────────────▶ count = 0, and
//     │ count = length of the line   │                                  claims the line
//     └──────────────────────────────┘ ◀───────────────────────────────
//                        ▲
//                        └── one is cancelled: count - 1
//
// One may be cancelled when the last comes, and not have left the line yet. It was there: it is
// told so (`outcome`, under the lock) and goes on. Others may have been released because of it.

/// A place where each of several parties waits until all are there.
///
/// ```swift
/// let parties = 3
/// let barrier = FiberBarrier(parties)
/// for _ in 0..<parties {
///   Fiber {
///     for _ in 0..<10 { try barrier.wait() }  // ten steps, which all do together
///   }
/// }
/// ```
///
/// When the last party comes, all go on, and the barrier is as at first: it can be used again at
/// once.
///
/// - **Suspension:** `wait` parks the fiber, which may resume on another kernel thread; a plain
///   thread is blocked.
/// - **Cancellation:** one that is cancelled takes its arrival back: the others wait for another.
///   If all were there first, it goes on with them.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** O(1), for the last O(parties); no allocation.
@safe
// SAFETY: everything is guarded by the gate's lock, but `parties`, which is a constant.
public final class FiberBarrier: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  final var gate: weft_gate
  /// How many wait for each other.
  public let parties: Int

  /// Makes a barrier.
  ///
  /// - Parameter parties: how many wait for each other; fewer than 1 stops the process with a
  ///   message.
  public init(_ parties: Int) {
    if parties < 1 {
      refuse("FiberBarrier(\(parties)): a barrier of \(parties). There must be at least 1 party.")
    }
    unsafe gate = weft_gate()  // SAFETY: zeros are a value of each field
    self.parties = parties
  }

  /// The address of the gate; valid while the object is.
  final var pointer: Gate {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// Waits until all parties are here.
  ///
  /// - **Suspension:** parks, unless this is the last party.
  /// - **Cancellation:** takes the arrival back.
  /// - Throws: `CancellationError`.
  public func wait() throws { try wait(.max) }

  /// Waits until all parties are here, for so long at most.
  ///
  /// - **Suspension:** as `wait()`.
  /// - **Cancellation:** takes the arrival back.
  /// - Throws: `DeadlineExceeded` if not all came in time, and then the arrival is taken back;
  ///   `CancellationError`.
  public func wait(within duration: Duration) throws { try wait(deadline(after: duration)) }

  private func wait(_ until: UInt64) throws {
    // SAFETY: `self` keeps the gate until the line in the defer; under its lock those in the line
    // are there.
    try throwIfCancelled()
    defer { withExtendedLifetime(self) {} }
    let gate = unsafe pointer
    unsafe gate.lock()
    if unsafe gate.pointee.count + 1 < UInt64(parties) {
      unsafe gate.pointee.count = gate.pointee.count + 1
      try unsafe gate.wait(in: weft_gate_line(gate), for: .barrier, until: until) { _ in
        unsafe gate.pointee.count = gate.pointee.count - 1
      }.check()
      return
    }
    var claimed = Claimed()
    unsafe gate.pointee.count = 0
    while let first = unsafe gate.pointee.line.first {
      // SAFETY: whoever lost its wait comes for the lock before it leaves, and looks here then.
      if unsafe !claimed.claim(first) { unsafe first.pointee.outcome = .served }
    }
    unsafe gate.unlock()
    claimed.release()
  }
}
