import CWeft
import WeftRuntime

/// A value that one fiber or thread at a time may use.
///
/// ```swift
/// let balance = FiberMutex(100)
/// let isPaid = balance.withLock { balance in
///   if balance < 30 { return false }
///   balance -= 30
///   return true
/// }
/// ```
///
/// Whoever waits for it parks, so that its worker runs others; a plain thread blocks. The closure
/// may itself wait for other things, with the mutex held.
///
/// Nobody starves, and those that parked go first come, first served. By default one that comes
/// while the mutex is just free takes it, even if others are parked: the first of these is woken,
/// tries again, and goes back to the front of the line if it lost. After two losses the mutex is
/// handed to it. With `handOff: true` the mutex is always handed to the first that waits: the
/// fairest, and slower under contention, where every lock then costs a switch.
///
/// To wait until the value changes, see `withGuard` and `FiberCondition`.
///
/// Locking it while holding it would be to wait for oneself: that stops the process, with a message
/// that names the fiber.
///
/// - **Suspension:** parks the fiber while another holds the mutex; the fiber may resume on another
///   kernel thread. A plain thread is blocked.
/// - **Cancellation:** none: a fiber that is cancelled gets the mutex in its turn.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** with nobody else there, one compare-and-swap to lock and one to unlock,
///   inlined, without a call, an allocation or reference counting.
@safe
// SAFETY: the value is touched by the owner of the mutex only; cweft_sync.h and MutexCore.swift say
// who touches the rest.
public final class FiberMutex<Value: ~Copyable>: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  @usableFromInline final var gate: weft_gate
  /// The owner's.
  @exclusivity(unchecked)
  @usableFromInline final var content: Value

  /// Makes a mutex that holds a value.
  ///
  /// - Parameters:
  ///   - value: what it guards.
  ///   - handOff: whether it is always handed to the first that waits.
  public init(_ value: consuming sending Value, handOff: Bool = false) {
    // SAFETY: zeros are a value of each field; nobody else has the object yet.
    unsafe gate = weft_gate()
    unsafe gate.count = handOff ? MutexBits.handsOff : 0
    unsafe content = value
  }

  /// The address of the part without a type; valid while the object is.
  @inlinable @inline(__always)
  final var pointer: Gate {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// The address of the value; valid while the object is.
  @inlinable @inline(__always)
  final var place: UnsafeMutablePointer<Value> {
    // SAFETY: the value follows the gate (checked by a test). Not by `&content`: what takes the
    // address of something gets a check of the stack.
    let end = unsafe 16 + MemoryLayout<weft_gate>.size
    let mask = MemoryLayout<Value>.alignment - 1
    return unsafe (Unmanaged.passUnretained(self).toOpaque() + ((end + mask) & ~mask))
      .assumingMemoryBound(to: Value.self)
  }

  /// Runs a function that has the value to itself.
  ///
  /// - **Suspension:** parks until the mutex is ours.
  /// - **Cancellation:** none; what the function waits for is cancelled as everywhere.
  /// - Parameter body: gets the value, and may change it.
  /// - Returns: what `body` returned.
  /// - Throws: what `body` threw; the mutex is free again.
  @inlinable @inline(__always)
  public func withLock<R: ~Copyable, E: Error>(
    _ body: (inout sending Value) throws(E) -> sending R
  ) throws(E) -> sending R {
    // SAFETY: `self` keeps the gate until the line in the defer; between lock and unlock the value
    // is ours.
    let owner = unsafe lockMutex(pointer)
    defer {
      unsafe unlockMutex(pointer, owner)
      withExtendedLifetime(self) {}
    }
    return try unsafe body(&place.pointee)
  }

  /// The same for a mutex that the caller has locked already.
  @inlinable
  func withOwnedLock<R: ~Copyable, E: Error>(
    _ body: (inout sending Value) throws(E) -> R
  ) throws(E) -> R {
    // SAFETY: as in withLock.
    defer {
      unsafe unlockMutex(pointer, weft_owner_current())
      withExtendedLifetime(self) {}
    }
    return try unsafe body(&place.pointee)
  }

  /// Runs a function that has the value to itself, if nobody holds the mutex.
  ///
  /// - **Suspension:** never.
  /// - Parameter body: gets the value, and may change it.
  /// - Returns: what `body` returned; nil if the mutex was held, even by the caller.
  /// - Throws: what `body` threw; the mutex is free again.
  @inlinable @inline(__always)
  public func withLockIfAvailable<R: ~Copyable, E: Error>(
    _ body: (inout sending Value) throws(E) -> sending R
  ) throws(E) -> sending R? {
    // SAFETY: as in withLock.
    let owner = weft_owner_current()
    guard unsafe lockMutexIfAvailable(pointer, owner) else { return nil }
    defer {
      unsafe unlockMutex(pointer, owner)
      withExtendedLifetime(self) {}
    }
    return try unsafe body(&place.pointee)
  }
}

/// Locks, and returns as whom.
@inlinable @inline(__always)
func lockMutex(_ mutex: Gate) -> UInt64 {
  // SAFETY: the caller keeps the mutex.
  // ORDERING: the compare-and-swap acquires what unlockMutex, or passMutexOn, released.
  let owner = weft_owner_current()
  if unsafe !weft_word_replace_unlocked(weft_gate_state(mutex), 0, owner) {
    unsafe lockMutexSlow(mutex, owner)
  }
  return owner
}

@inlinable @inline(__always)
func lockMutexIfAvailable(_ mutex: Gate, _ owner: UInt64) -> Bool {
  // SAFETY: as in lockMutex.
  // ORDERING: as in lockMutex.
  unsafe weft_word_replace(weft_gate_state(mutex), 0, owner)
}

@inlinable @inline(__always)
func unlockMutex(_ mutex: Gate, _ owner: UInt64) {
  // SAFETY: the caller is the owner, and keeps the mutex.
  // ORDERING: the compare-and-swap releases the value to the next owner's.
  if unsafe !weft_word_replace_unlocked(weft_gate_state(mutex), owner, 0) {
    unsafe unlockMutexSlow(mutex)
  }
}
