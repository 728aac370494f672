import CWeft
import WeftRuntime

// A promise:
//
//                   resolve, fail                 the same again: PromiseAlreadySettled
//     ┌─────────┐ ─────────────────▶ ┌─────────┐ ───┐
//     │ pending │                    │ settled │    │
//     │ a line  │                    │ no line │ ◀──┘
//     └─────────┘                    └─────────┘
//
// The outcome is put in place, the state changed, and the line claimed under one hold of the lock.

/// A value, or an error, that will be there once, and that any number may wait for.
///
/// ```swift
/// let answer = Promise<Int>()
/// Fiber { try answer.resolve(6 * 7) }
/// print(try answer.wait())  // 42
/// ```
///
/// All that wait go on at once when it is settled; those who come later do not wait. A promise that
/// is dropped without having been settled is no error: nobody can wait for it any more.
///
/// - **Suspension:** `wait` parks the fiber, which may resume on another kernel thread; a plain
///   thread is blocked.
/// - **Cancellation:** ends the wait, not the promise.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** O(1), settling O(those who wait). Once it is settled, waiting takes an acquire
///   load, and the look at the caller's cancellation.
@safe
// SAFETY: the outcome is written once, under the gate's lock, before the state says so.
public final class Promise<Value: Sendable>: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  final var gate: weft_gate
  @exclusivity(unchecked)
  final var outcome: Result<Value, any Error>?

  /// Makes a promise that is not settled.
  public init() {
    // SAFETY: zeros are a value of each field; nobody else has the object yet.
    unsafe gate = weft_gate()
    unsafe outcome = nil
  }

  /// The address of the gate; valid while the object is.
  @usableFromInline
  final var pointer: Gate {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// Gives the promise its value.
  ///
  /// - **Suspension:** never.
  /// - Throws: `PromiseAlreadySettled` if it has a value or an error; this value is released.
  public func resolve(_ value: Value) throws(PromiseAlreadySettled) { try settle(.success(value)) }

  /// Gives the promise an error, which all that wait for it throw.
  ///
  /// - **Suspension:** never.
  /// - Throws: `PromiseAlreadySettled` if it has a value or an error; this error is released.
  public func fail(_ error: any Error) throws(PromiseAlreadySettled) { try settle(.failure(error)) }

  /// The same for either.
  ///
  /// - **Suspension:** never.
  /// - Throws: `PromiseAlreadySettled`; this result is released.
  public func settle(_ result: Result<Value, any Error>) throws(PromiseAlreadySettled) {
    // SAFETY: `self` keeps the gate until the line in the defer. What is replaced is nil, so that
    // nobody's deinit runs under the lock.
    defer { withExtendedLifetime(self) {} }
    let gate = unsafe pointer
    var claimed = Claimed()
    unsafe gate.lock()
    let isFirst = unsafe !isSettledPromise(gate)
    if isFirst {
      unsafe outcome = result
      unsafe gate.word = promiseSettled
      unsafe claimed.claimAll(weft_gate_line(gate))
    }
    unsafe gate.unlock()
    claimed.release()
    if !isFirst { throw PromiseAlreadySettled() }
  }

  /// Waits for the value.
  ///
  /// - **Suspension:** parks until the promise is settled.
  /// - **Cancellation:** a promise that was settled first wins.
  /// - Throws: the error that the promise was given; `CancellationError`.
  public func wait() throws -> Value { try wait(for: .promise, until: .max) }

  /// Waits for the value, for so long at most.
  ///
  /// - **Suspension:** as `wait()`.
  /// - **Cancellation:** as `wait()`.
  /// - Throws: `DeadlineExceeded` if it was not settled in time; the error that the promise was
  ///   given; `CancellationError`.
  public func wait(within duration: Duration) throws -> Value {
    try wait(for: .promise, until: deadline(after: duration))
  }

  /// Whether it has a value or an error.
  public var isSettled: Bool { unsafe isSettledPromise(pointer) }  // SAFETY: `self` keeps the gate

  /// What it has; nil if it is not settled.
  public var result: Result<Value, any Error>? {
    // SAFETY: settled, so it never changes again.
    unsafe isSettled ? outcome : nil
  }

  func wait(for reason: ParkReason, until: UInt64) throws -> Value {
    // SAFETY: `self` keeps the gate until the line in the defer.
    try throwIfCancelled()
    defer { withExtendedLifetime(self) {} }
    let gate = unsafe pointer
    if unsafe !isSettledPromise(gate) {
      unsafe gate.lock()
      if unsafe isSettledPromise(gate) {
        unsafe gate.unlock()
      } else {
        try unsafe gate.wait(in: weft_gate_line(gate), for: reason, until: until).check()
      }
    }
    // SAFETY: settled, so it is there, and never changes again.
    return try unsafe outcome.unsafelyUnwrapped.get()
  }
}

/// The state of a promise that is settled.
let promiseSettled: UInt64 = 1

/// Whether the outcome is there. For `select` too: if not, and under the lock, a waiter may be put
/// into the line; its claim means that the promise is settled. To give up: `leave`.
package func isSettledPromise(_ promise: Gate) -> Bool {
  // SAFETY: the caller keeps the promise.
  // ORDERING: acquire, in `word`, paired with the store in settle.
  unsafe promise.word == promiseSettled
}

/// What settling a promise throws that is settled already.
public struct PromiseAlreadySettled: Error, Hashable, Sendable, CustomStringConvertible {
  /// Makes one.
  public init() {}

  /// What happened and what to do.
  public var description: String {
    "the Promise is settled already: it is given a value or an error once."
  }
}
