import CWeft
import WeftRuntime

/// A value that many may read at the same time, or one may write.
///
/// ```swift
/// let routes = FiberRWLock(["/": "index"])
/// routes.withWriteLock { $0["/about"] = "about" }
/// let page = routes.withReadLock { $0["/about"] }
/// ```
///
/// Nobody starves: while one waits to write, those who come to read wait too; when it is done, all
/// of these read before the next one writes. Where reads are short, a `FiberMutex` is faster.
///
/// Locking it again while holding it would be to wait for oneself. Where it can be told, which is
/// for the one that writes and for the only one that reads, that stops the process with a message;
/// reading inside a read is refused where another waits to write, and else works.
///
/// - **Suspension:** parks the fiber while others hold the lock; it may resume on another kernel
///   thread. A plain thread is blocked.
/// - **Cancellation:** none: a fiber that is cancelled gets the lock in its turn.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** with nobody in the way, one compare-and-swap to lock and one to unlock; no
///   allocation.
@safe
// SAFETY: the value is written by the one owner, and read while there is none; RWLockCore.swift
// says who touches the rest.
public final class FiberRWLock<Value: Sendable>: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  final var gate: weft_gate
  @exclusivity(unchecked)
  final var content: Value

  /// Makes a lock that holds a value.
  public init(_ value: Value) {
    // SAFETY: zeros are a value of each field; nobody else has the object yet.
    unsafe gate = weft_gate()
    unsafe content = value
  }

  /// The address of the part without a type; valid while the object is.
  final var pointer: Gate {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// Runs a function with the value, which nobody changes meanwhile.
  ///
  /// - **Suspension:** parks while another writes, or waits to write.
  /// - **Cancellation:** none; what the function waits for is cancelled as everywhere.
  /// - Parameter body: gets the value.
  /// - Returns: what `body` returned.
  /// - Throws: what `body` threw; the lock is given back.
  public func withReadLock<R: ~Copyable, E: Error>(
    _ body: (Value) throws(E) -> R
  ) throws(E) -> R {
    // SAFETY: `self` keeps the gate until the line in the defer.
    let owner = weft_owner_current()
    if unsafe !readIfAvailable(pointer, owner) { unsafe readSlow(pointer, owner) }
    return try read(body)
  }

  /// Runs a function with the value, if nobody writes, or waits to write.
  ///
  /// - **Suspension:** never.
  /// - Parameter body: gets the value.
  /// - Returns: what `body` returned; nil if the lock was not to be had.
  /// - Throws: what `body` threw; the lock is given back.
  public func withReadLockIfAvailable<R: ~Copyable, E: Error>(
    _ body: (Value) throws(E) -> R
  ) throws(E) -> R? {
    // SAFETY: as in withReadLock.
    guard unsafe readIfAvailable(pointer, weft_owner_current()) else { return nil }
    return try read(body)
  }

  /// With the lock held.
  private func read<R: ~Copyable, E: Error>(_ body: (Value) throws(E) -> R) throws(E) -> R {
    // SAFETY: as in withReadLock.
    defer {
      unsafe endRead(pointer)
      withExtendedLifetime(self) {}
    }
    return try unsafe body(content)
  }

  /// Runs a function that has the value to itself.
  ///
  /// - **Suspension:** parks until nobody reads or writes.
  /// - **Cancellation:** none; what the function waits for is cancelled as everywhere.
  /// - Parameter body: gets the value, and may change it.
  /// - Returns: what `body` returned.
  /// - Throws: what `body` threw; the lock is given back.
  public func withWriteLock<R: ~Copyable, E: Error>(
    _ body: (inout Value) throws(E) -> R
  ) throws(E) -> R {
    // SAFETY: as in withReadLock.
    let owner = weft_owner_current()
    if unsafe !writeIfAvailable(pointer, owner) { unsafe writeSlow(pointer, owner) }
    return try write(owner, body)
  }

  /// Runs a function that has the value to itself, if nobody reads or writes.
  ///
  /// - **Suspension:** never.
  /// - Parameter body: gets the value, and may change it.
  /// - Returns: what `body` returned; nil if the lock was not to be had.
  /// - Throws: what `body` threw; the lock is given back.
  public func withWriteLockIfAvailable<R: ~Copyable, E: Error>(
    _ body: (inout Value) throws(E) -> R
  ) throws(E) -> R? {
    // SAFETY: as in withReadLock.
    let owner = weft_owner_current()
    guard unsafe writeIfAvailable(pointer, owner) else { return nil }
    return try write(owner, body)
  }

  /// With the lock held.
  private func write<R: ~Copyable, E: Error>(
    _ owner: UInt64, _ body: (inout Value) throws(E) -> R
  ) throws(E) -> R {
    // SAFETY: as in withReadLock.
    defer {
      unsafe endWrite(pointer, owner)
      withExtendedLifetime(self) {}
    }
    return try unsafe body(&content)
  }
}
