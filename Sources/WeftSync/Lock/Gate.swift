import CWeft
import WeftRuntime

// What the primitives of this folder share: a lock that is held for some nanoseconds, a word that
// some of them change without it, and lines of those who wait. It is the first stored property of
// each class, as a channel's core is.
//
// Where a word is changed without the lock as long as nobody waits, its lowest bit says that
// somebody does. While that bit is set, only who holds the lock changes the word, so that there a
// plain store will do.
//
// A field that is guarded by the lock is changed as `x = x + 1`: for the thread sanitizer `x += 1`
// is an access to the whole structure, and so to the lock.

/// See cweft_sync.h.
@usableFromInline package typealias Gate = UnsafeMutablePointer<weft_gate>

/// The lowest bit of a word.
@usableFromInline package let waitsBit: UInt64 = 1

extension UInt32 {
  /// It did not get what it waited for, and is to try again.
  package static var retry: UInt32 { 3 }
}

/// How a wait in a gate ended.
struct Ended {
  let reason: WakeReason
  /// What the claim said, if that ended it.
  let outcome: UInt32

  /// Throws if the wait was cut short.
  func check() throws {
    switch reason {
    case .timedOut: throw DeadlineExceeded()
    case .cancelled: throw CancellationError()
    case .none, .woken: break
    }
  }
}

extension UnsafeMutablePointer where Pointee == weft_gate {
  @usableFromInline
  package func lock() { unsafe weft_gate_lock(self).lock() }  // SAFETY: the caller keeps the gate

  @usableFromInline
  package func unlock() { unsafe weft_gate_lock(self).unlock() }  // SAFETY: as above

  /// The state; to be used with the lock held.
  package var word: UInt64 {
    // SAFETY: the caller keeps the gate.
    // ORDERING: acquire, paired with the stores below and with compare-and-swaps without the lock.
    get { unsafe weft_word_load_acquire(weft_gate_state(self)) }
    // ORDERING: release, paired with the acquire loads and compare-and-swaps of those who come
    // without the lock.
    nonmutating set { unsafe weft_word_store_release(weft_gate_state(self), newValue) }
  }

  /// Sets the lowest bit of the state, if the rest is still as it was found.
  package func announce(_ word: inout UInt64) -> Bool {
    // SAFETY: the caller keeps the gate.
    // ORDERING: sequentially consistent; who fails with its compare-and-swap comes for the lock.
    unsafe word & waitsBit != 0
      || weft_word_compare_exchange(weft_gate_state(self), &word, word | waitsBit)
  }

  /// Waits in a line until claimed, cancelled, or the time is up. The lock is held, and is free
  /// when this returns.
  ///
  /// - Parameters:
  ///   - amount: for whoever claims.
  ///   - leaving: what has to be done, under the lock, when one left the line unserved.
  func wait(
    in line: Line, for reason: ParkReason, amount: UInt64 = 0, cancellable: Bool = true,
    until: UInt64 = .max, leaving: (inout Claimed) -> Void = { _ in }
  ) -> Ended {
    // SAFETY: the waiter lies on this stack, and this returns only when it is in no line and nobody
    // touches it. The caller keeps the gate.
    var waiter = unsafe weft_waiter()
    return unsafe withUnsafeMutablePointer(to: &waiter) { waiter in
      unsafe waiter.prepare()
      unsafe waiter.pointee.amount = amount
      unsafe weft_line_append(line, waiter)
      unsafe unlock()
      let end = unsafe waiter.wait(
        for: reason, of: self, cancellable: cancellable, until: until)
      if end == .woken { return Ended(reason: .woken, outcome: unsafe waiter.pointee.outcome) }
      var claimed = Claimed()
      unsafe lock()
      // SAFETY: invariant 2 of Waiter.swift: a claimer may have lost, and counted it all the same.
      let outcome = unsafe waiter.pointee.outcome
      if unsafe waiter.pointee.line != nil {
        unsafe weft_line_remove(waiter)
        leaving(&claimed)
      }
      unsafe unlock()
      claimed.release()
      return Ended(reason: outcome == .served ? .woken : end, outcome: outcome)
    }
  }
}

extension Claimed {
  /// Claims all that are in a line.
  mutating func claimAll(_ line: Line) {
    // SAFETY: the caller holds the lock of the line.
    while let first = unsafe line.pointee.first { _ = unsafe claim(first) }
  }
}

/// `fiber #3 "reader"`: the one that runs, for messages.
func describeCaller() -> String {
  guard let fiber = Fiber.current else { return "a plain thread" }
  return "fiber \(fiber.id)" + (fiber.name.map { " \"\($0)\"" } ?? "")
}

/// Stops the process because of a misuse.
@usableFromInline @inline(never)
func refuse(_ text: String) -> Never { fatalError("weft: \(text)") }
