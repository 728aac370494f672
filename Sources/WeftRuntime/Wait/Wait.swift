import CWeft

// Waiting: the one protocol under park, sleep, join and every primitive.
//
// A fiber has one word for it. Its upper 48 bits count the waits; whoever wants to end a wait names
// its number, so that a late waker, timer or cancellation never ends a later one. One compare-and-
// swap decides who wins.
//
//                 wake(n), timer(n), cancel
//          ┌─────────────────────────────────────────┐
//          │          (ended, not yet parked)        ▼
//     running, n ── publish ──▶ parked, n      early, n ── publish ──▶ running, n + 1  (stays
//          ▲                       │                                    runnable: no wait)
//          │                       │ wake(n), timer(n), cancel, unpark
//          │                       ▼
//          └── resumed ──── running, n + 1, with the reason of the winner
//
// "publish" runs on the next stack, after the switch away (WEFT_AFTER_PARK): whoever finds a fiber
// parked finds its registers saved. The permit of `unpark` and the mark of `cancel` are bits of the
// same word, so that neither can slip through between a check and the publishing.

/// The parts of the word.
enum WaitBits {
  /// The fiber is parked: who clears this bit makes the fiber runnable.
  static let parked: UInt64 = 1
  /// `unpark` was called and nobody has used it yet.
  static let permit: UInt64 = 2
  /// Two bits: the running wait was ended before it was published, for this reason.
  static let earlyShift: UInt64 = 2
  /// Two bits: why the last wait ended.
  static let lastShift: UInt64 = 4
  /// The wait is `Fiber.park`: a permit ends it.
  static let parkWait: UInt64 = 1 << 6
  /// Cancellation ends the wait.
  static let cancellable = UInt64(WEFT_WAIT_CANCELLABLE)
  /// The fiber is cancelled, for good.
  static let cancelled = UInt64(WEFT_WAIT_CANCELLED)
  /// A scope around the running code ends its waits: a group of its own that fails. Set and cleared
  /// under the lock of the fiber's scopes (Scopes.swift).
  static let interrupted = UInt64(WEFT_WAIT_INTERRUPTED)
  /// Such a scope ends the wait.
  static let interruptible: UInt64 = 1 << 10
  static let numberShift: UInt64 = 16

  static let early: UInt64 = 3 << earlyShift
  static let last: UInt64 = 3 << lastShift
  static let flags: UInt64 = parkWait | cancellable | interruptible
  /// A deadline around the running code ends waits with either of these.
  static let limited: UInt64 = cancellable | interruptible

  /// Whether the marks in `word` end a wait with these flags.
  static func ends(_ word: UInt64, flags: UInt64) -> Bool {
    flags & cancellable != 0 && word & cancelled != 0
      || flags & interruptible != 0 && word & interrupted != 0
  }
}

/// Why a wait ended.
@usableFromInline
package enum WakeReason: UInt64 {
  case none = 0
  case woken = 1
  case timedOut = 2
  case cancelled = 3
}

/// What the caller of a transition has to do next.
package enum WakeDuty {
  /// The wait is over already: nothing.
  case lost
  /// It is ended, and its fiber has not parked yet: nothing more.
  case early
  /// It is ended and the fiber is ours: make it runnable.
  case resume
}

extension UnsafeMutablePointer where Pointee == weft_fiber {
  /// The number of the wait that comes next, or is under way. Only the fiber itself asks.
  package var waitNumber: UInt64 {
    // SAFETY: the fiber's own record, or that of one which waits with this number noted.
    // ORDERING: relaxed; only the fiber itself, or the winner that resumed it, changes the number.
    unsafe weft_word_load_relaxed(weft_fiber_wait(self)) >> WaitBits.numberShift
  }

  /// Why the last wait ended. Only the fiber itself asks.
  package var lastReason: WakeReason {
    // SAFETY: the fiber that runs asks about itself.
    // ORDERING: relaxed; written by the winner before it made this fiber runnable.
    let word = unsafe weft_word_load_relaxed(weft_fiber_wait(self))
    return WakeReason(rawValue: (word & WaitBits.last) >> WaitBits.lastShift) ?? .none
  }

  var isCancelled: Bool {
    // SAFETY: the caller has a handle, or is the fiber.
    // ORDERING: acquire, paired with the compare-and-swap in cancel(): who sees the mark sees what
    // the canceller did before.
    unsafe weft_word_load_acquire(weft_fiber_wait(self)) & WaitBits.cancelled != 0
  }

  /// The word after the wait in `word` has ended.
  private func ended(_ word: UInt64, _ reason: WakeReason) -> UInt64 {
    let kept = word & (WaitBits.permit | WaitBits.cancelled | WaitBits.interrupted)
    let number = (word >> WaitBits.numberShift) &+ 1
    return kept | reason.rawValue << WaitBits.lastShift | number << WaitBits.numberShift
  }

  /// Publishes that the fiber is parked. Runs on the next stack.
  ///
  /// - Returns: false if the wait was ended meanwhile: the fiber is still the caller's, and has to
  ///   be made runnable.
  func publishParked(flags: UInt64) -> Bool {
    // SAFETY: until the swap that parks it nobody can resume the fiber, so the record lives.
    // ORDERING: every compare-and-swap on this word is sequentially consistent; the one that
    // parks releases the saved registers to the one that resumes.
    var word = unsafe weft_word_load_relaxed(weft_fiber_wait(self))
    while true {
      var next = word | WaitBits.parked | flags
      var stays = false
      let early = (word & WaitBits.early) >> WaitBits.earlyShift
      if early != 0 {
        next = unsafe ended(word, WakeReason(rawValue: early) ?? .woken)
        stays = true
      } else if flags & WaitBits.parkWait != 0, word & WaitBits.permit != 0 {
        next = unsafe ended(word & ~WaitBits.permit, .woken)
        stays = true
      } else if WaitBits.ends(word, flags: flags) {
        next = unsafe ended(word, .cancelled)
        stays = true
      }
      if unsafe weft_word_compare_exchange(weft_fiber_wait(self), &word, next) { return !stays }
    }
  }

  /// Ends the wait before it begins, for a reason that the fiber found itself.
  package func noteReason(_ reason: WakeReason) {
    // SAFETY: the fiber that runs asks about itself.
    // ORDERING: relaxed; a guess that the compare-and-swap checks.
    var word = unsafe weft_word_load_relaxed(weft_fiber_wait(self))
    while unsafe !weft_word_compare_exchange(weft_fiber_wait(self), &word, ended(word, reason)) {}
  }

  /// Ends wait `number` for `reason`, if nobody has yet.
  package func wake(number: UInt64, reason: WakeReason) -> WakeDuty {
    // SAFETY: a fiber does not go on before whoever has its number has let go of it: it takes its
    // timer out under the lock, and waits until its join node is served.
    // ORDERING: relaxed; a guess that the compare-and-swap checks.
    var word = unsafe weft_word_load_relaxed(weft_fiber_wait(self))
    while true {
      // The number has 48 bits in the word.
      if word >> WaitBits.numberShift != number & (.max >> WaitBits.numberShift) { return .lost }
      if word & WaitBits.early != 0 { return .lost }
      let parked = word & WaitBits.parked != 0
      let next =
        parked ? unsafe ended(word, reason) : word | reason.rawValue << WaitBits.earlyShift
      if unsafe weft_word_compare_exchange(weft_fiber_wait(self), &word, next) {
        return parked ? .resume : .early
      }
    }
  }

  /// Leaves a permit, or ends a `Fiber.park`.
  func grantPermit() -> WakeDuty {
    // SAFETY: the caller's handle keeps the record alive.
    // ORDERING: relaxed; a guess that the compare-and-swap checks.
    let parkWait = WaitBits.parked | WaitBits.parkWait
    var word = unsafe weft_word_load_relaxed(weft_fiber_wait(self))
    while true {
      let parked = word & parkWait == parkWait
      let next = parked ? unsafe ended(word, .woken) : word | WaitBits.permit
      if unsafe weft_word_compare_exchange(weft_fiber_wait(self), &word, next) {
        return parked ? .resume : .early
      }
    }
  }

  /// Uses up a permit, if there is one. Only the fiber itself asks.
  func takePermit() -> Bool {
    // SAFETY: the fiber that runs asks about itself.
    // ORDERING: relaxed; what the permit publishes is acquired by the swap that takes it, and one
    // that is missed here is seen by publishParked.
    var word = unsafe weft_word_load_relaxed(weft_fiber_wait(self))
    while word & WaitBits.permit != 0 {
      if unsafe weft_word_compare_exchange(
        weft_fiber_wait(self), &word, word & ~WaitBits.permit)
      {
        return true
      }
    }
    return false
  }

  /// Marks the fiber as cancelled, and ends its wait if that can be cancelled.
  func cancelWait() -> WakeDuty {
    // SAFETY: as in mark.
    unsafe mark(WaitBits.cancelled, ending: WaitBits.cancellable)
  }

  /// Marks the fiber as interrupted by a scope of its own, and ends its wait if that can be.
  func interruptWait() -> WakeDuty {
    // SAFETY: as in mark.
    unsafe mark(WaitBits.interrupted, ending: WaitBits.interruptible)
  }

  private func mark(_ bit: UInt64, ending flag: UInt64) -> WakeDuty {
    // SAFETY: the caller keeps the record alive: by a reference, as the fiber itself, or under a
    // lock that the fiber takes before it ends.
    // ORDERING: relaxed; a guess that the compare-and-swap checks. Who finds the mark set has
    // nothing to publish.
    let ends = WaitBits.parked | flag
    var word = unsafe weft_word_load_relaxed(weft_fiber_wait(self))
    while true {
      if word & bit != 0 { return .lost }
      let parked = word & ends == ends
      let marked = word | bit
      let next = parked ? unsafe ended(marked, .cancelled) : marked
      if unsafe weft_word_compare_exchange(weft_fiber_wait(self), &word, next) {
        return parked ? .resume : .early
      }
    }
  }

  /// Takes the mark of interruptWait away.
  func clearInterrupt() {
    // SAFETY: the fiber's own record; its scopes' lock keeps others from setting the mark
    // meanwhile.
    // ORDERING: relaxed; a guess that the compare-and-swap checks.
    var word = unsafe weft_word_load_relaxed(weft_fiber_wait(self))
    while word & WaitBits.interrupted != 0 {
      if unsafe weft_word_compare_exchange(
        weft_fiber_wait(self), &word, word & ~WaitBits.interrupted)
      {
        return
      }
    }
  }
}
