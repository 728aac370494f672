import CWeft
import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

// Waiting for a primitive: one protocol for all of them, for fibers and plain threads.
//
// A primitive has a lock (a word, held for some nanoseconds; no user code runs and nobody parks
// under it) and lines of waiters. A waiter lies on the stack of whoever waits, and names its wait:
// the number of the fiber's wait, or the word that the thread sleeps on. One compare-and-swap ends
// the wait, for one reason.
//
//     who waits                               who lets it go on
//     ---------                               -----------------
//     lock                                    lock
//     nothing there: append a waiter          take the first waiter out of its line
//     unlock                                  hand over (into, or out of, its slot)
//     park, or sleep                          claim it ──── lost? take back what was handed over,
//       │                                       │           and try the next
//       ▼                                     unlock
//     woken: done, no lock                    release it: make the fiber runnable, wake the thread
//     cancelled, time up: lock, leave the
//       line if still in it, unlock
//
// INVARIANTS
//   1. What is handed over is in place before the claim: a fiber that has not parked yet goes on
//      the moment it is claimed.
//   2. Whoever lost its wait to a cancellation or a timer takes the lock before it looks at its
//      slot: a waker that has handed over and then lost takes it back under that lock.
//   3. After the claim the waker touches a fiber's waiter only if the claim says that the fiber is
//      parked (it then holds the fiber), and a thread's until it has released it.
//
// So a waiter that is cancelled swallows nothing, and what was handed over was wanted.

/// One that waits. See cweft_sync.h.
@usableFromInline package typealias Waiter = UnsafeMutablePointer<weft_waiter>
/// A queue of those.
@usableFromInline package typealias Line = UnsafeMutablePointer<weft_line>

/// How a wait went that was not cut short. Zero: it was not ended by a primitive.
extension UInt32 {
  /// It got what it waited for.
  @usableFromInline package static var served: UInt32 { 1 }
  /// The primitive was closed.
  @usableFromInline package static var closed: UInt32 { 2 }
}

/// Those that were claimed under a lock and are let go after it.
@usableFromInline
@frozen
@safe
package struct Claimed: ~Copyable {
  @usableFromInline var first: Waiter?
  @usableFromInline var last: Waiter?

  @inlinable @inline(__always)
  package init() {
    unsafe first = nil
    unsafe last = nil
  }

  /// Takes a waiter out of its line and ends its wait. Under the lock of its primitive.
  ///
  /// - Returns: false if its wait was over: what was handed over has to be taken back.
  @usableFromInline
  package mutating func claim(_ waiter: Waiter, _ outcome: UInt32 = .served) -> Bool {
    // SAFETY: in a line under its lock, so the one that waits is still there. Invariant 3.
    unsafe weft_line_remove(waiter)
    unsafe waiter.pointee.outcome = outcome
    if let fiber = unsafe waiter.pointee.fiber {
      switch unsafe fiber.wake(number: waiter.pointee.number, reason: .woken) {
      case .resume: break
      case .early: return true
      case .lost:
        unsafe waiter.pointee.outcome = 0
        return false
      }
    } else {
      // ORDERING: the swap releases what was handed over to the thread, which acquires it in
      // `sleepThread`.
      var expected = UInt64(WEFT_SLEEP_WAITS)
      let word = unsafe waiter.pointee.thread.unsafelyUnwrapped
      if unsafe !weft_word_compare_exchange(word, &expected, UInt64(WEFT_SLEEP_CLAIMED)) {
        unsafe waiter.pointee.outcome = 0
        return false
      }
    }
    // SAFETY: it stays where it is until it is released.
    unsafe waiter.pointee.next = nil
    if let last = unsafe last {
      unsafe last.pointee.next = waiter
    } else {
      unsafe first = waiter
    }
    unsafe last = waiter
    return true
  }

  /// Lets all of them go on, in the order in which they were claimed. Not under a lock.
  @inlinable @inline(__always)
  package consuming func release() {
    if unsafe first != nil { unsafe releaseAll(first) }  // SAFETY: they were claimed
  }
}

/// Lets those in a chain go on.
@usableFromInline
func releaseAll(_ first: Waiter?) {
  // SAFETY: claimed, and so there until it is let go: its link is read before. A fiber is ours.
  var next = unsafe first
  while let waiter = unsafe next {
    unsafe next = waiter.pointee.next
    if let fiber = unsafe waiter.pointee.fiber {
      unsafe makeRunnable(fiber)
    } else {
      let word = unsafe waiter.pointee.thread.unsafelyUnwrapped
      // ORDERING: release, paired with the acquire loads in sleepThread. Waking an address that is
      // nobody's any more is harmless.
      unsafe weft_word_store_release(word, UInt64(WEFT_SLEEP_RELEASED))
      unsafe weft_futex_wake(word, 1)
    }
  }
}

extension UnsafeMutablePointer where Pointee == weft_waiter {
  /// Names the wait that comes next, of the fiber or thread that calls.
  @usableFromInline
  package func prepare(slot: UnsafeMutableRawPointer? = nil) {
    // SAFETY: the caller's own waiter, in no line yet.
    unsafe pointee.outcome = 0
    unsafe pointee.slot = slot
    if let worker = unsafe weft_worker_current() {
      let current = unsafe worker.pointee.current
      unsafe pointee.fiber = current
      unsafe pointee.number = current.waitNumber
    } else {
      refuseOnForkedWorker()
      unsafe pointee.fiber = nil
      unsafe pointee.thread = weft_waiter_sleep(self)
      // ORDERING: relaxed; nobody else knows the waiter yet.
      unsafe weft_word_store_relaxed(weft_waiter_sleep(self), UInt64(WEFT_SLEEP_WAITS))
    }
  }

  /// Parks the fiber, or blocks the thread, until the wait that `prepare` named is ended.
  ///
  /// - Suspension: SWITCH: the worker may be another.
  @usableFromInline
  package func wait(
    for reason: ParkReason, of object: UnsafeRawPointer?, cancellable: Bool = true,
    until: UInt64 = .max
  ) -> WakeReason {
    // SAFETY: the caller's own; a fiber's record lives while it runs.
    guard let fiber = unsafe pointee.fiber else {
      // The deadlines of fibers are suspend's to mind.
      let deadline = cancellable ? deadlineInForce() : never
      let end = unsafe sleepThread(
        pointee.thread.unsafelyUnwrapped, until: min(until, deadline))
      return end == .timedOut && deadline < until ? .cancelled : end
    }
    let worker = unsafe weft_worker_current().unsafelyUnwrapped
    return unsafe suspend(
      worker, flags: cancellable ? cancellableFlag(fiber) : 0, reason: reason, object: object,
      until: until)
  }

  /// After a wait that was cut short: leaves the line, under the lock.
  @usableFromInline
  package func leave(_ lock: UnsafeMutablePointer<weft_word>) {
    // SAFETY: the caller's own waiter; invariant 2.
    unsafe lock.lock()
    if unsafe pointee.line != nil { unsafe weft_line_remove(self) }
    unsafe lock.unlock()
  }
}

/// Blocks a plain thread until it was claimed and released, or the time is up.
private func sleepThread(_ word: UnsafeMutablePointer<weft_word>, until: UInt64) -> WakeReason {
  // SAFETY: the word is the caller's, on its stack; after it gave up, or was released, nobody else
  // touches it.
  // ORDERING: acquire, paired with the swap in `claim` and the store in `releaseAll`.
  while true {
    let state = unsafe weft_word_load_acquire(word)
    if state == UInt64(WEFT_SLEEP_RELEASED) { return .woken }
    if state == UInt64(WEFT_SLEEP_CLAIMED) {
      // For some nanoseconds, unless the waker's processor was taken away.
      weft_thread_yield()
      continue
    }
    let now = until == never ? 0 : weft_clock_now()
    if now >= until {
      var expected = UInt64(WEFT_SLEEP_WAITS)
      if unsafe weft_word_compare_exchange(word, &expected, UInt64(WEFT_SLEEP_GAVE_UP)) {
        return .timedOut
      }
      continue
    }
    unsafe weft_futex_wait(
      word, UInt32(WEFT_SLEEP_WAITS), until == never ? never : until - now)
  }
}
