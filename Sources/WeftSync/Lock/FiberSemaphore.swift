import CWeft
import WeftRuntime

// The word is the number of permits, with a bit beside it that says that somebody waits:
//
//            wait, signal: CAS            too few: CAS
//          ┌───────────────────┐        ┌────────────┐
//          ▼                   │        │            ▼
//     ┌─────────────┐ ─────────┘ ───────┘  ┌──────────────────┐ ─────────┐ signal, wait: under the
//     │ permits     │                      │ permits | waits  │          │ lock; the first ones are
//     └─────────────┘ ◀─────────────────── └──────────────────┘ ◀────────┘ served while they fit
//                      the line is empty
//
// INVARIANT: the first in the line asks for more than there are permits.

/// A number of permits: whoever waits takes some, whoever signals gives some back.
///
/// ```swift
/// let connections = FiberSemaphore(4)
/// try withFiberGroup(of: Void.self) { group in
///   for _ in 0..<100 {
///     group.spawn { try connections.withPermit { Fiber.yield() } }
///   }
/// }
/// ```
///
/// First come, first served: a request for many permits that waits is not overtaken by smaller ones
/// that would fit. Permits have no owner: one may take them, and another give them back.
///
/// - **Suspension:** `wait` parks the fiber while there are too few permits; it may resume on
///   another kernel thread. A plain thread is blocked.
/// - **Cancellation:** one that waited leaves the line, has taken nothing, and lets those behind it
///   through if they fit now. Permits that arrived before win over the cancellation.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** with nobody in the line, one compare-and-swap to wait and one to signal; no
///   allocation.
@safe
// SAFETY: the gate is guarded by its lock, but for the word, as Gate.swift says.
public final class FiberSemaphore: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  @usableFromInline final var gate: weft_gate

  /// Makes a semaphore.
  ///
  /// - Parameter permits: how many there are at first; a negative number stops the process with a
  ///   message.
  public init(_ permits: Int) {
    if permits < 0 { refuse("FiberSemaphore(\(permits)): there can't be fewer than 0 permits") }
    // SAFETY: zeros are a value of each field; nobody else has the object yet.
    unsafe gate = weft_gate()
    unsafe pointer.word = UInt64(permits) << 1
  }

  /// The address of the gate; valid while the object is.
  @inlinable @inline(__always)
  final var pointer: Gate {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// Takes a permit; waits until it is there.
  ///
  /// - **Suspension:** parks until the permit is ours.
  /// - **Cancellation:** no permit was taken.
  /// - Throws: `CancellationError`.
  @inlinable
  public func wait() throws { try wait(1) }

  /// Takes several permits at once; waits until all of them are there.
  ///
  /// - **Suspension:** parks until the permits are ours; for more than there will ever be, for
  ///   ever.
  /// - **Cancellation:** no permit was taken.
  /// - Parameter count: at least 0; a negative number stops the process with a message.
  /// - Throws: `CancellationError`.
  @inlinable
  public func wait(_ count: Int) throws {
    // SAFETY: `self` keeps the gate until the last line.
    try throwIfCancelled()
    if unsafe takePermits(pointer, count) {
      spendOperation()
    } else {
      try unsafe waitForPermits(pointer, count, .max)
    }
    withExtendedLifetime(self) {}
  }

  /// Takes permits; waits for them so long at most.
  ///
  /// - **Suspension:** as `wait(_:)`.
  /// - **Cancellation:** no permit was taken.
  /// - Parameters:
  ///   - count: at least 0; a negative number stops the process with a message.
  ///   - duration: for how long.
  /// - Throws: `DeadlineExceeded` if they were not there in time; `CancellationError`.
  @inlinable
  public func wait(_ count: Int = 1, within duration: Duration) throws {
    // SAFETY: as in wait(_:).
    try throwIfCancelled()
    if unsafe !takePermits(pointer, count) {
      try unsafe waitForPermits(pointer, count, deadline(after: duration))
    }
    withExtendedLifetime(self) {}
  }

  /// Takes permits if they are there, and nobody waits for some.
  ///
  /// - **Suspension:** never.
  /// - Parameter count: at least 0; a negative number stops the process with a message.
  /// - Returns: whether they were taken.
  @inlinable
  public func waitIfAvailable(_ count: Int = 1) -> Bool {
    // SAFETY: as in wait(_:).
    defer { withExtendedLifetime(self) {} }
    return unsafe takePermits(pointer, count) || takePermitsOfAwaited(pointer, count)
  }

  /// Gives a permit back, or adds one.
  ///
  /// - **Suspension:** never.
  @inlinable
  public func signal() { signal(1) }

  /// Gives permits back, or adds some.
  ///
  /// - **Suspension:** never.
  /// - Parameter count: at least 0. A negative number, or one that makes them more than `Int.max`,
  ///   stops the process with a message.
  @inlinable
  public func signal(_ count: Int) {
    // SAFETY: as in wait(_:).
    if unsafe !addPermits(pointer, count) { unsafe addPermitsSlow(pointer, count) }
    withExtendedLifetime(self) {}
  }

  /// Runs a function with a permit, and gives it back after.
  ///
  /// - **Suspension:** as `wait()`.
  /// - **Cancellation:** as `wait()`; `body` has not run.
  /// - Parameter body: what needs the permit.
  /// - Returns: what `body` returned.
  /// - Throws: `CancellationError`; what `body` threw.
  @inlinable
  public func withPermit<R: ~Copyable>(_ body: () throws -> R) throws -> R {
    try wait()
    defer { signal() }
    return try body()
  }

  /// How many permits there are just now. A figure that may be old when it is used.
  public var availablePermits: Int { Int(unsafe pointer.word >> 1) }  // SAFETY: `self` keeps it
}

// MARK: - Without the lock

/// False if they are not there, or somebody waits.
@inlinable @inline(__always)
func takePermits(_ semaphore: Gate, _ count: Int) -> Bool {
  // SAFETY: the caller keeps the semaphore.
  // ORDERING: acquire: what it says about the permits is as new as the call. The compare-and-swap
  // acquires what those who gave the permits did before.
  if count < 0 { refuseCount(count) }
  var word = unsafe weft_word_load_acquire(weft_gate_state(semaphore))
  while word & 1 == 0 && word >> 1 >= UInt64(count) {
    if unsafe weft_word_compare_exchange(
      weft_gate_state(semaphore), &word, word &- UInt64(count) << 1)
    {
      return true
    }
  }
  return count == 0
}

/// False if somebody waits.
@inlinable @inline(__always)
func addPermits(_ semaphore: Gate, _ count: Int) -> Bool {
  // SAFETY: the caller keeps the semaphore.
  // ORDERING: relaxed, a guess that the compare-and-swap checks; that releases to takePermits.
  if count < 0 { refuseCount(count) }
  var word = unsafe weft_word_load_relaxed(weft_gate_state(semaphore))
  while word & 1 == 0 {
    if UInt64(count) > UInt64(Int.max) &- word >> 1 { refuseOverflow(word, count) }
    if unsafe weft_word_compare_exchange(
      weft_gate_state(semaphore), &word, word &+ UInt64(count) << 1)
    {
      return true
    }
  }
  return false
}

@usableFromInline @inline(never)
func refuseCount(_ count: Int) -> Never {
  refuse("FiberSemaphore: \(count) permits were asked for or given: it must be at least 0")
}

@usableFromInline @inline(never)
func refuseOverflow(_ word: UInt64, _ count: Int) -> Never {
  refuse("FiberSemaphore: \(word >> 1) permits and \(count) more are more than Int.max")
}

// MARK: - With it

@usableFromInline @inline(never)
func waitForPermits(_ semaphore: Gate, _ count: Int, _ until: UInt64) throws {
  // SAFETY: the caller keeps the semaphore.
  unsafe semaphore.lock()
  if unsafe takePermitsOrAnnounce(semaphore, UInt64(count)) {
    unsafe semaphore.unlock()
    return
  }
  try unsafe semaphore.wait(
    in: weft_gate_line(semaphore), for: .semaphore, amount: UInt64(count), until: until
  ) { claimed in unsafe servePermits(semaphore, &claimed) }.check()
}

/// `waitIfAvailable` while somebody seems to wait.
@usableFromInline @inline(never)
func takePermitsOfAwaited(_ semaphore: Gate, _ count: Int) -> Bool {
  // SAFETY: as in waitForPermits.
  if unsafe semaphore.word & waitsBit == 0 { return false }
  unsafe semaphore.lock()
  defer { unsafe semaphore.unlock() }
  return unsafe takePermitsNow(semaphore, UInt64(count))
}

/// Under the lock: takes permits if they are there, and nobody is before the caller.
private func takePermitsNow(_ semaphore: Gate, _ count: UInt64) -> Bool {
  // SAFETY: the caller holds the lock.
  // ORDERING: as in takePermits.
  if unsafe semaphore.pointee.line.first != nil { return false }
  var word = unsafe semaphore.word
  while word >> 1 >= count {
    if unsafe weft_word_compare_exchange(
      weft_gate_state(semaphore), &word, (word >> 1 &- count) << 1)
    {
      return true
    }
  }
  return false
}

@usableFromInline @inline(never)
func addPermitsSlow(_ semaphore: Gate, _ count: Int) {
  // SAFETY: as in waitForPermits.
  // ORDERING: relaxed, a guess that the compare-and-swap checks; that releases to takePermits.
  var claimed = Claimed()
  unsafe semaphore.lock()
  var word = unsafe weft_word_load_relaxed(weft_gate_state(semaphore))
  while true {
    if UInt64(count) > UInt64(Int.max) &- word >> 1 {
      unsafe semaphore.unlock()
      refuseOverflow(word, count)
    }
    if unsafe weft_word_compare_exchange(
      weft_gate_state(semaphore), &word, word &+ UInt64(count) << 1)
    {
      break
    }
  }
  unsafe servePermits(semaphore, &claimed)
  unsafe semaphore.unlock()
  claimed.release()
}

/// Under the lock: serves the first in the line while there are enough permits for it.
private func servePermits(_ semaphore: Gate, _ claimed: inout Claimed) {
  // SAFETY: the caller holds the lock, under which those in the line are there.
  let word = unsafe semaphore.word
  if word & waitsBit == 0 { return }
  var permits = word >> 1
  while let first = unsafe semaphore.pointee.line.first {
    let amount = unsafe first.pointee.amount
    if amount > permits { break }
    // Taken before the claim: one that goes on at once finds them gone.
    unsafe semaphore.word = (permits - amount) << 1 | waitsBit
    if unsafe claimed.claim(first) { permits -= amount }
  }
  let waits = unsafe semaphore.pointee.line.first == nil ? 0 : waitsBit
  unsafe semaphore.word = permits << 1 | waits
}

// MARK: - For select

/// Under the lock: takes permits if they are there, and nobody is before the caller. If not, the
/// semaphore is marked as awaited: from then on its word changes under the lock only, so that the
/// caller may put a waiter into its line.
@usableFromInline
package func takePermitsOrAnnounce(_ semaphore: Gate, _ count: UInt64) -> Bool {
  // SAFETY: the caller holds the lock.
  while unsafe !takePermitsNow(semaphore, count) {
    // Not more than one round for each change that others made without the lock.
    var word = unsafe semaphore.word
    let fits = unsafe semaphore.pointee.line.first == nil && word >> 1 >= count
    if unsafe !fits && semaphore.announce(&word) { return false }
  }
  return true
}

/// Under the lock, after takePermitsOrAnnounce said no, and without having let go of the lock
/// since: puts a waiter into the line whose claim means that the permits are taken for it.
///
/// To give up: `leaveSemaphore`.
@usableFromInline
package func awaitPermits(_ semaphore: Gate, _ waiter: Waiter, _ count: UInt64) {
  // SAFETY: the caller holds the lock; the waiter is its own.
  unsafe waiter.pointee.amount = count
  unsafe weft_line_append(weft_gate_line(semaphore), waiter)
}

/// A waiter whose wait ended otherwise leaves the line, and lets those behind it through if they
/// fit now. Not under the lock.
package func leaveSemaphore(_ semaphore: Gate, _ waiter: Waiter) {
  // SAFETY: the caller keeps the semaphore; the waiter is its own.
  var claimed = Claimed()
  unsafe semaphore.lock()
  if unsafe waiter.pointee.line != nil {
    unsafe weft_line_remove(waiter)
    unsafe servePermits(semaphore, &claimed)
  }
  unsafe semaphore.unlock()
  claimed.release()
}
