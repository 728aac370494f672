import CWeft
import WeftRuntime

// The word is the count, with a bit beside it that says that somebody waits:
//
//     ┌───────┐  wait: CAS under the lock   ┌───────────────┐
//     │ count │ ──────────────────────────▶ │ count | waits │   add, done: CAS, in both
//     └───────┘                             └───────────────┘
//         ▲                                        │
//         │   done of the last, under the lock     │
//         └──────── 0, and claims all ─────────────┘

/// A count of what is still to be done, and a place to wait until that is nothing.
///
/// ```swift
/// let pending = WaitGroup()
/// for _ in 0..<10 {
///   pending.add()
///   Fiber { pending.done() }
/// }
/// try pending.wait()
/// ```
///
/// When the count gets to 0, all that wait at that moment go on, even if it is raised again right
/// after; those who come later wait for the next time. So it can be used again and again. Add
/// before what is counted starts, not inside it: else a wait may come first, and find nothing to
/// wait for. Where a result or an error is wanted, `withFiberGroup` has both.
///
/// - **Suspension:** `wait` parks the fiber, which may resume on another kernel thread; a plain
///   thread is blocked.
/// - **Cancellation:** one that waited leaves the line.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** `add` and `done` are one compare-and-swap, `done` of the last O(those who
///   wait); no allocation.
@safe
// SAFETY: the gate is guarded by its lock, but for the word, which is changed by compare-and-swap;
// from an awaited count to 0 under the lock only.
public final class WaitGroup: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  @usableFromInline final var gate: weft_gate

  /// Makes a group with nothing to be done.
  public init() { unsafe gate = weft_gate() }  // SAFETY: zeros are a value of each field

  /// The address of the gate; valid while the object is.
  @inlinable @inline(__always)
  final var pointer: Gate {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// Adds to what is to be done.
  ///
  /// - **Suspension:** never.
  /// - Parameter count: how much; if negative, so much is done. A count below 0, or above
  ///   `Int.max`, stops the process with a message.
  @inlinable
  public func add(_ count: Int = 1) {
    // SAFETY: `self` keeps the gate until the last line.
    if unsafe !addToGroup(pointer, count) { unsafe finishGroup(pointer, count) }
    withExtendedLifetime(self) {}
  }

  /// One thing is done.
  ///
  /// - **Suspension:** never.
  @inlinable
  public func done() { add(-1) }

  /// Waits until nothing is to be done.
  ///
  /// - **Suspension:** parks until the count was 0.
  /// - **Cancellation:** the count is left as it is.
  /// - Throws: `CancellationError`.
  public func wait() throws { try wait(.max) }

  /// Waits until nothing is to be done, for so long at most.
  ///
  /// - **Suspension:** parks until the count was 0.
  /// - **Cancellation:** the count is left as it is.
  /// - Throws: `DeadlineExceeded` if the count was not 0 in time; `CancellationError`.
  public func wait(within duration: Duration) throws { try wait(deadline(after: duration)) }

  /// What is to be done just now. A figure that may be old when it is used.
  public var count: Int { Int(unsafe pointer.word >> 1) }  // SAFETY: `self` keeps the gate

  private func wait(_ until: UInt64) throws {
    // SAFETY: `self` keeps the gate until the line in the defer.
    try throwIfCancelled()
    defer { withExtendedLifetime(self) {} }
    let gate = unsafe pointer
    if unsafe gate.word >> 1 == 0 { return }
    unsafe gate.lock()
    var word = unsafe gate.word
    repeat {
      if word >> 1 == 0 {
        unsafe gate.unlock()
        return
      }
    } while unsafe !gate.announce(&word)
    try unsafe gate.wait(in: weft_gate_line(gate), for: .waitGroup, until: until).check()
  }
}

/// False if that would make an awaited count 0.
@inlinable @inline(__always)
func addToGroup(_ group: Gate, _ count: Int) -> Bool {
  // SAFETY: the caller keeps the group.
  // ORDERING: relaxed, a guess that the compare-and-swap checks; that releases what was done to
  // the acquire load in wait, or to finishGroup.
  var word = unsafe weft_word_load_relaxed(weft_gate_state(group))
  while true {
    guard let next = wordOfGroup(word, adding: count) else { return false }
    if unsafe weft_word_compare_exchange(weft_gate_state(group), &word, next) { return true }
  }
}

/// Nil if an awaited count becomes 0.
@inlinable @inline(__always)
func wordOfGroup(_ word: UInt64, adding count: Int) -> UInt64? {
  let (sum, overflow) = Int(truncatingIfNeeded: word >> 1).addingReportingOverflow(count)
  if overflow || sum < 0 { refuseGroupCount(word, count) }
  if sum == 0 && word & 1 != 0 { return nil }
  return UInt64(truncatingIfNeeded: sum) << 1 | word & 1
}

@usableFromInline @inline(never)
func refuseGroupCount(_ word: UInt64, _ count: Int) -> Never {
  if count > 0 { refuse("WaitGroup: \(word >> 1) and \(count) more are more than Int.max") }
  refuse(
    "WaitGroup: \(word >> 1) to be done, and \(count) added: it can't be below 0. "
      + "Call add before what is counted starts, and done once for each.")
}

/// The last thing is done, for which somebody waits.
@usableFromInline @inline(never)
func finishGroup(_ group: Gate, _ count: Int) {
  // SAFETY: the caller keeps the group.
  // ORDERING: the compare-and-swap acquires what the others did; the claims release it.
  var claimed = Claimed()
  unsafe group.lock()
  var word = unsafe group.word
  while true {
    let next = wordOfGroup(word, adding: count)
    if unsafe weft_word_compare_exchange(weft_gate_state(group), &word, next ?? 0) {
      if next == nil { unsafe claimed.claimAll(weft_gate_line(group)) }
      break
    }
  }
  unsafe group.unlock()
  claimed.release()
}
