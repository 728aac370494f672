import CWeft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

// Timers. Each worker has a heap of the fibers that sleep on it.
//
// The heap has a lock, since a fiber that was woken otherwise may go on elsewhere and takes its
// timer out from there, and an idle worker fires the timers of one that is busy with a long run.
//
// INVARIANT: record.cold.timer_slot == -1 exactly while it is in no heap.

extension UnsafeMutablePointer where Pointee == weft_worker {
  func lockTimers() {
    // SAFETY: a word of a worker, whose memory lives as long as its scheduler has fibers.
    unsafe weft_worker_timer_lock(self).lock()
  }

  func unlockTimers() {
    // SAFETY: as in lockTimers, by whoever took the lock.
    unsafe weft_worker_timer_lock(self).unlock()
  }

  /// GUARDED BY: the timer lock.
  var timers: UnsafeMutablePointer<TimerHeap> {
    // SAFETY: made with the worker, and released with it.
    unsafe pointee.timers.unsafelyUnwrapped.assumingMemoryBound(to: TimerHeap.self)
  }

  func makeTimers() {
    // SAFETY: a new worker has none.
    let timers = UnsafeMutablePointer<TimerHeap>.allocate(capacity: 1)
    unsafe timers.initialize(to: TimerHeap())
    unsafe pointee.timers = UnsafeMutableRawPointer(timers)
    // ORDERING: relaxed; nobody else knows the worker yet.
    unsafe weft_word_store_relaxed(weft_worker_next_deadline(self), never)
  }

  func destroyTimers() {
    // SAFETY: nobody uses the worker any more.
    unsafe timers.pointee.deallocate()
    unsafe timers.deallocate()
  }

  /// GUARDED BY: the timer lock.
  private func publishNext() {
    // SAFETY: the caller holds the timer lock.
    // ORDERING: release, paired with the acquire loads of whoever plans a sleep.
    let next = unsafe timers.pointee.nextDeadline
    unsafe weft_word_store_release(weft_worker_next_deadline(self), next)
  }

  /// GUARDED BY: the timer lock.
  func insertTimer(_ record: Record, at deadline: UInt64) {
    // SAFETY: the caller holds the timer lock, and the record is that of the running fiber, in no
    // heap.
    let slot = unsafe timers.pointee.insert(record, deadline: deadline)
    unsafe record.pointee.cold.pointee.timer_slot = Int64(slot)
    unsafe publishNext()
  }

  /// GUARDED BY: the timer lock.
  func removeTimer(_ record: Record) {
    // SAFETY: the caller holds the timer lock, which guards the timer fields of the records in the
    // heap. These have not ended: before that, a fiber takes its timer out.
    let slot = unsafe record.pointee.cold.pointee.timer_slot
    unsafe record.pointee.cold.pointee.timer_slot = -1
    unsafe timers.pointee.remove(slot: UInt32(truncatingIfNeeded: slot))
    unsafe publishNext()
  }
}

/// Makes a timer end the next wait of the running fiber, for `reason`.
private func startTimer(
  _ record: Record, on worker: Worker, at deadline: UInt64, reason: WakeReason
) {
  // SAFETY: runs as the fiber, on this worker's own thread; the record is in no heap, so its timer
  // fields are its own. suspend takes the timer out before the fiber goes on.
  unsafe record.pointee.cold.pointee.timer_wait = record.waitNumber
  unsafe record.pointee.cold.pointee.timer_reason = UInt32(truncatingIfNeeded: reason.rawValue)
  unsafe record.pointee.cold.pointee.timer_worker = worker
  unsafe worker.lockTimers()
  unsafe worker.insertTimer(record, at: deadline)
  unsafe worker.unlockTimers()
  unsafe schedulerCore(of: worker).timerAdded(deadline)
}

/// After a wait with a timer: takes it out if it did not fire.
private func stopTimer(_ record: Record) {
  // SAFETY: runs as the fiber, which alone writes `timer_worker`. That worker may be another by
  // now; its memory lives as long as its scheduler has fibers.
  guard let worker = unsafe record.pointee.cold.pointee.timer_worker else { return }
  unsafe record.pointee.cold.pointee.timer_worker = nil
  unsafe worker.lockTimers()
  if unsafe record.pointee.cold.pointee.timer_slot >= 0 { unsafe worker.removeTimer(record) }
  unsafe worker.unlockTimers()
}

/// Ends the waits whose time is up. True if a fiber became runnable.
///
/// COST: a load where no timer is due.
func fireTimers(of worker: Worker) -> Bool {
  // SAFETY: a worker's words, and its heap under its lock.
  // ORDERING: relaxed; the heap itself is read under its lock.
  let next = unsafe weft_word_load_relaxed(weft_worker_next_deadline(worker))
  if next == never { return false }
  let now = weft_clock_now()
  if next > now { return false }
  let most = unsafe worker.pointee.pool.pointee.timers_most
  var any = false
  var rest = true
  // In batches, so that the lock is never held for long.
  while rest {
    // SAFETY: under the lock the records live, since a fiber that was woken otherwise has to take
    // it before it goes on. It is held while they are queued too, so that two workers which fire
    // the same heap do not turn their order round; no code of the user's runs there.
    unsafe worker.lockTimers()
    rest = false
    for count: UInt64 in 0... {
      if unsafe worker.timers.pointee.nextDeadline > now { break }
      let record = unsafe worker.timers.pointee.first
      if count == most {
        rest = true
        break
      }
      unsafe worker.removeTimer(record)
      let reason = unsafe WakeReason(rawValue: UInt64(record.pointee.cold.pointee.timer_reason))
      let duty = unsafe record.wake(
        number: record.pointee.cold.pointee.timer_wait, reason: reason ?? .timedOut)
      if case .resume = duty {
        // SAFETY: this won the wake, so the fiber is ours.
        let flags = unsafe record.pointee.flags
        unsafe record.pointee.flags = flags | .due
        unsafe makeRunnable(record)
        any = true
      }
    }
    // SAFETY: taken above.
    unsafe worker.unlockTimers()
  }
  return any
}

/// Leaves the running fiber parked until its wait is ended, but no longer than until `limit`.
/// Whoever may end the wait has been told its number before.
///
/// A wait that cancellation ends (`cancellableFlag`) ends at the deadline around the running code
/// as well, and then reports `.cancelled`. This is the one place that sees to it: preparePark leads
/// here where there is a deadline.
///
/// - Returns: why it ended: `.timedOut` where `limit` was first. SWITCH: the worker may be another.
package func suspend(
  _ worker: Worker, flags: UInt64, reason: ParkReason, object: UnsafeRawPointer? = nil,
  until limit: UInt64 = never
) -> WakeReason {
  // SAFETY: the fiber that runs is its worker's current one; its record lives until it has ended.
  // After the switch nothing of the old worker is used.
  let current = unsafe worker.pointee.current
  var (until, timeIsUp) = (limit, WakeReason.timedOut)
  if flags & WaitBits.limited != 0 {
    let deadline = unsafe weft_fiber_scope(current).pointee.deadline
    if deadline < until { (until, timeIsUp) = (deadline, .cancelled) }
  }
  if until != never { unsafe startTimer(current, on: worker, at: until, reason: timeIsUp) }
  let next = unsafe leaveParked(worker, flags: flags, reason: reason, object: object)
  unsafe finishSwitch(unsafe weft_fiber_switch(current, next, worker))
  let ended = unsafe current.lastReason
  if until != never { unsafe stopTimer(current) }
  return ended
}
