import CWeft
import WeftRuntime

// What a FiberMutex does when it is not just free, or just held.
//
// Its word is the owner (the record of a fiber, or a plain thread's block) with a bit beside it:
//
//              lock: CAS                    one parks: CAS
//     ┌──────┐ ────────▶ ┌────────────────┐ ────────▶ ┌───────────────────────────┐
//     │ 0    │           │ owner          │           │ owner | waits             │ ◀─┐
//     └──────┘ ◀──────── └────────────────┘           └───────────────────────────┘   │
//         ▲    unlock: CAS                              │ unlock, under the lock      │
//         │                                             ├─ hands over: the first one ─┘
//         └─────────────────────────────────────────────┘  is the owner
//           nobody in the line, or wakes the first one,
//           which tries again: whoever comes first has it
//
// One that was woken is "on its way" until it has tried (a bit in `count`). Meanwhile nobody else
// is woken or handed the mutex: so those that parked go in the order in which they came, and there
// is never a crowd. The others in the line need no mark in the word before that one has come: it
// sets the mark again. One that lost goes back to the front of the line; after two losses the
// mutex is handed to it, so whoever parks is overtaken in two spells between its wake-ups at most.
//
// INVARIANT: somebody in the line, and no mark: somebody is on its way.
//
// REJECTED: handing over always. A mutex that is free only for who was chosen waits for that one's
// turn on a worker: under contention each lock then costs a switch. It is `handOff: true`.

/// Bits of a mutex's `count`.
enum MutexBits {
  /// One that was woken has not tried yet.
  static let onItsWay: UInt64 = 1
  /// `handOff: true`. A constant.
  static let handsOff: UInt64 = 2
}

/// How often one must have lost to be handed the mutex: its waiter's `kind`. Those that can't try
/// again, in a `select`, begin with this.
package let mutexHandOver: UInt32 = 2

/// How often one looks whether a mutex becomes free before it parks.
private let mutexLooks = 16

/// Takes a mutex that the fast path found held, or awaited.
@usableFromInline @inline(never)
func lockMutexSlow(_ mutex: Gate, _ owner: UInt64) {
  // SAFETY: the caller keeps the mutex.
  if unsafe spinForMutex(mutex, owner) { return }
  var lost: UInt32 = 0
  // SAFETY: the waiter lies on this stack, and this returns only when it was claimed and let go.
  // The caller keeps the mutex.
  var waiter = unsafe weft_waiter()
  unsafe withUnsafeMutablePointer(to: &waiter) { waiter in
    unsafe mutex.lock()
    while unsafe !takeMutexOrAnnounce(mutex, owner) {
      unsafe waiter.prepare()
      unsafe waiter.pointee.amount = owner
      unsafe waiter.pointee.kind = lost
      if lost == 0 {
        unsafe weft_line_append(weft_gate_line(mutex), waiter)
      } else {
        unsafe weft_line_prepend(weft_gate_line(mutex), waiter)
      }
      unsafe mutex.unlock()
      // Neither cancelled nor timed: only a claim ends it.
      _ = unsafe waiter.wait(for: .mutex, of: mutex, cancellable: false)
      if unsafe waiter.pointee.outcome == .served { return }
      lost += 1
      unsafe mutex.lock()
      unsafe mutex.pointee.count = mutex.pointee.count & ~MutexBits.onItsWay
    }
    unsafe mutex.unlock()
  }
}

/// Looks for a while whether the owner, which may run on another worker, lets go of it. Not where
/// somebody waits already, whose turn is first.
private func spinForMutex(_ mutex: Gate, _ owner: UInt64) -> Bool {
  // SAFETY: the caller keeps the mutex; this thread's own worker.
  if let worker = unsafe weft_worker_current(), unsafe !hasOtherWorkers(worker) { return false }
  let state = unsafe weft_gate_state(mutex)
  for _ in 0..<mutexLooks {
    // ORDERING: relaxed; the compare-and-swap acquires what the unlock released.
    let word = unsafe weft_word_load_relaxed(state)
    if word & waitsBit != 0 || word == owner { return false }
    if unsafe word == 0 && weft_word_replace(state, 0, owner) { return true }
    weft_pause()
  }
  return false
}

/// Under the lock: takes the mutex if it is free. If not, it is marked as awaited: from then on its
/// word changes under the lock only, so that the caller may put a waiter into its line.
@usableFromInline
package func takeMutexOrAnnounce(_ mutex: Gate, _ owner: UInt64) -> Bool {
  // SAFETY: the caller holds the lock, and keeps the mutex.
  // ORDERING: the compare-and-swap acquires what the unlock released.
  var word = unsafe mutex.word
  while true {
    if word == 0 {
      let waits = unsafe mutex.pointee.line.first == nil ? 0 : waitsBit
      if unsafe weft_word_compare_exchange(weft_gate_state(mutex), &word, owner | waits) {
        return true
      }
    } else if word & ~waitsBit == owner {
      unsafe mutex.unlock()
      refuse(
        "\(describeCaller()) locked a FiberMutex that it holds already, and would wait for itself. "
          + "Do all of it in one withLock.")
    } else if unsafe mutex.announce(&word) {
      return false
    }
  }
}

/// Releases a mutex for which somebody waits.
@usableFromInline @inline(never)
func unlockMutexSlow(_ mutex: Gate) {
  // SAFETY: the caller is the owner, and keeps the mutex. The bit is set, so that nobody changes
  // the word without the lock.
  var claimed = Claimed()
  unsafe mutex.lock()
  unsafe passMutexOn(mutex, &claimed)
  unsafe mutex.unlock()
  claimed.release()
}

private func passMutexOn(_ mutex: Gate, _ claimed: inout Claimed) {
  // SAFETY: as in unlockMutexSlow; under the lock those in the line are there.
  if unsafe mutex.pointee.count & MutexBits.onItsWay != 0 {
    unsafe mutex.word = 0
    return
  }
  while let first = unsafe mutex.pointee.line.first {
    if unsafe first.pointee.kind >= mutexHandOver
      || mutex.pointee.count & MutexBits.handsOff != 0
    {
      // In place before the claim, after which the mutex is its new owner's. If that had lost its
      // wait to another case of a `select`, it comes for the lock before it does anything with it.
      let waits = unsafe first.pointee.next == nil ? 0 : waitsBit
      unsafe mutex.word = first.pointee.amount | waits
      if unsafe claimed.claim(first) { return }
    } else {
      unsafe mutex.pointee.count = mutex.pointee.count | MutexBits.onItsWay
      if unsafe claimed.claim(first, .retry) {
        unsafe mutex.word = 0
        return
      }
      unsafe mutex.pointee.count = mutex.pointee.count & ~MutexBits.onItsWay
    }
  }
  unsafe mutex.word = 0
}

// MARK: - For select

/// Under the lock, after takeMutexOrAnnounce said no, and without having let go of the lock since:
/// puts a waiter into the line whose claim means that it owns the mutex. It does not try again, so
/// the mutex is handed to it when it is the first.
///
/// To give up: `leave`.
@usableFromInline
package func awaitMutex(_ mutex: Gate, _ waiter: Waiter, _ owner: UInt64) {
  // SAFETY: the caller holds the lock; the waiter is its own.
  unsafe waiter.pointee.amount = owner
  unsafe waiter.pointee.kind = mutexHandOver
  unsafe weft_line_append(weft_gate_line(mutex), waiter)
}
