import CWeft
import WeftContext

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

extension Fiber where Success == Never, Failure == Never {
  /// Lets other fibers run. Returns at once if none is runnable.
  ///
  /// - Suspension: the fiber stays runnable, and may go on on another thread. On a plain thread it
  ///   is `sched_yield`.
  /// - Complexity: no allocation, no atomic read-modify-write.
  @inlinable @inline(__always)
  public static func yield() {
    // SAFETY: the running fiber's record lives until it has ended; after the switch finishSwitch
    // gets the worker that the fiber then is on, and nothing else of a thread is used.
    guard let worker = unsafe weft_worker_current() else {
      yieldThread()
      return
    }
    let current = unsafe worker.pointee.current
    guard let next = unsafe prepareYield(worker) else { return }
    unsafe finishSwitch(weft_fiber_switch(current, next, worker))
  }

  /// The instant that it is, on the clock that sleeps, time limits and deadlines go by: that of
  /// `ContinuousClock`, and the virtual one in a simulation.
  ///
  /// - Suspension: never. **Thread safety:** any fiber, any thread.
  public static var now: ContinuousClock.Instant { instantNow() }

  /// Waits until somebody calls `unpark()` on this fiber, or returns at once if that has happened
  /// since the last `park`.
  ///
  /// - Suspension: parks the fiber, which may go on on another thread. A plain thread can't be
  ///   unparked: there it stops the process with a message.
  /// - Throws: `CancellationError` if the fiber is cancelled, or a deadline around the call passes;
  ///   a permit stays for later.
  /// - Complexity: no allocation; one atomic operation here and one in `unpark`.
  @inlinable @inline(__always)
  public static func park() throws(CancellationError) {
    // SAFETY: as in yield; the record that is asked at the end is still the running fiber's own.
    let worker = unsafe fiberWorker("Fiber.park")
    let current = unsafe worker.pointee.current
    if let next = unsafe prepareUserPark(worker) {
      unsafe finishSwitch(weft_fiber_switch(current, next, worker))
    }
    if unsafe parkWasCancelled(current) { throw CancellationError() }
  }

  /// Waits for so long at least.
  ///
  /// Zero and negative durations yield once; durations past the end of time last for ever.
  ///
  /// - Suspension: parks the fiber; from a plain thread, blocks that.
  /// - Throws: `CancellationError` if the fiber is cancelled, or a deadline around the call passes,
  ///   before the time is up.
  public static func sleep(for duration: Duration) throws(CancellationError) {
    try sleep(untilNanoseconds: deadline(after: duration), now: duration <= .zero)
  }

  /// Waits until an instant. One that has passed yields once.
  ///
  /// - Suspension: as `sleep(for:)`.
  /// - Throws: as `sleep(for:)`.
  public static func sleep(until instant: ContinuousClock.Instant) throws(CancellationError) {
    let until = deadline(at: instant)
    try sleep(untilNanoseconds: until, now: until <= weft_clock_now())
  }

  private static func sleep(untilNanoseconds: UInt64, now: Bool) throws(CancellationError) {
    try throwIfCancelled()
    if now {
      yield()
      return
    }
    // SAFETY: the worker is this thread's, and its current fiber the one that runs; it is not used
    // after the wait.
    guard let worker = unsafe weft_worker_current() else {
      let limit = deadlineInForce()
      sleepThread(until: min(untilNanoseconds, limit))
      if limit < untilNanoseconds { throw CancellationError() }
      return
    }
    let current = unsafe worker.pointee.current
    let reason = unsafe suspend(
      worker, flags: cancellableFlag(current), reason: .sleep, until: untilNanoseconds)
    if reason == .cancelled { throw CancellationError() }
  }

  /// The fiber that runs, or nil on a plain thread.
  public static var current: FiberHandle? {
    // SAFETY: the worker is this thread's; every record but a root is part of a cell, which lives
    // while its fiber runs.
    guard let worker = unsafe weft_worker_current() else { return nil }
    let current = unsafe worker.pointee.current
    return unsafe current.isRoot ? nil : FiberHandle(cell: current.cell)
  }

  /// Whether waits would throw here: the running fiber was cancelled, or a deadline around this
  /// code has passed. Not inside a shield, which holds off both.
  public static var isCancelled: Bool {
    // SAFETY: the worker is this thread's, used at once.
    guard let worker = unsafe weft_worker_current() else { return deadlineHasPassed() }
    return unsafe isCancelledHere(worker)
  }

  /// Throws `CancellationError` if waits would: see `isCancelled`.
  public static func checkCancellation() throws(CancellationError) {
    if isCancelled { throw CancellationError() }
  }

  /// Runs a function during which the fiber stays on the worker that it is on.
  ///
  /// For code that something ties to its thread: a Swift job that is run on the fiber, a C library
  /// with thread-locals. Nests. On a plain thread it just runs.
  public static func pinned<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    // SAFETY: flags and depth are the running fiber's own, which is in no queue. Once pinned it
    // stays on this worker, and its record lives while it runs.
    guard let worker = unsafe weft_worker_current() else { return try body() }
    let current = unsafe worker.pointee.current
    let was = unsafe current.pointee.flags & (.pinned | .inJob)
    if unsafe current.pointee.pin_depth == 0, was == .pinned {
      return try body()  // placed there for good
    }
    unsafe current.pointee.pin_depth += 1
    unsafe current.pointee.flags |= .pinned
    unsafe weft_fiber_set_home(current, worker)
    defer {
      unsafe current.pointee.pin_depth -= 1
      if unsafe current.pointee.pin_depth == 0, unsafe current.pointee.flags & .inJob == 0 {
        unsafe current.pointee.flags &= ~.pinned
      }
    }
    return try body()
  }
}

/// The worker of the running fiber; stops the process on a plain thread.
@usableFromInline
func fiberWorker(_ operation: StaticString) -> Worker {
  // SAFETY: this thread's own worker.
  guard let worker = unsafe weft_worker_current() else {
    refuseOnForkedWorker()
    fatalError("weft: \(operation) was called on a plain thread, which can't be unparked")
  }
  return unsafe worker
}

@usableFromInline
func yieldThread() {
  refuseOnForkedWorker()
  weft_thread_yield()
}

/// Blocks a plain thread until a time. Signals do not shorten it.
func sleepThread(until: UInt64) {
  // SAFETY: the local outlives the call, and nobody else knows it.
  refuseOnForkedWorker()
  var word = weft_word()
  while true {
    let left = timeLeft(until: until)
    if left == 0 { return }
    unsafe weft_futex_wait(&word, 0, left)
  }
}

/// Cancellation ends the waits of this fiber, unless a shield holds it off. What scopes inside the
/// shield do, ends them too.
package func cancellableFlag(_ record: Record) -> UInt64 {
  // SAFETY: the running fiber's own record, which has its stack and so a cold part.
  let shields = unsafe weft_fiber_scope(record).pointee.shields
  let cancellable = shields == 0 ? WaitBits.cancellable : 0
  return cancellable | WaitBits.interruptible
}

/// Whether waits of the running fiber throw.
///
/// COST: where there is no deadline, three loads and compares; else a look at the clock as well.
package func isCancelledHere(_ worker: Worker) -> Bool {
  // SAFETY: the caller runs on this worker's thread, as its current fiber.
  let current = unsafe worker.pointee.current
  if unsafe current.isRoot { return false }
  let deadline = unsafe weft_fiber_scope(current).pointee.deadline
  let now = timeToCompare(with: deadline)
  return unsafe isCancelledByOthers(worker, at: now) || deadline <= now
}

/// The same without the fiber's own deadlines.
///
/// - Parameter now: to compare with the deadline of the group that the fiber is a child of. 0 if
///   that has not passed.
func isCancelledByOthers(_ worker: Worker, at now: UInt64) -> Bool {
  // SAFETY: as in isCancelledHere.
  // ORDERING: acquire, as in isCancelled.
  let word = unsafe weft_word_load_acquire(weft_fiber_wait(worker.pointee.current))
  return unsafe word & WaitBits.interrupted != 0 || isCancelledAsFiber(worker, word, at: now)
}

/// The part that concerns the whole fiber, not a scope of its own.
func isCancelledAsFiber(_ worker: Worker, _ word: UInt64, at now: UInt64) -> Bool {
  // SAFETY: as in isCancelledHere; not a root, so it has a cold part while it runs.
  let current = unsafe worker.pointee.current
  if unsafe weft_fiber_scope(current).pointee.shields > 0 { return false }
  if word & WaitBits.cancelled != 0 { return true }
  let draining = unsafe SharedWords(of: worker).isCancelling && current.pointee.flags & .main == 0
  guard unsafe draining || isInCancelledGroup(current, at: now) else { return false }
  // Noted in the fiber itself, which handles show, and which lasts longer than those two.
  _ = unsafe current.cancelWait()
  return true
}

/// A wait of a fiber that is cancelled throws. Others run first, all the same: whoever waits in a
/// loop, and ignores its cancellation, must not keep them from running for ever.
@inlinable @inline(__always)
package func throwIfCancelled() throws(CancellationError) {
  if seemsCancelled(), noticesCancellation() { throw CancellationError() }
}

/// Whether the caller may be cancelled. False is certain.
///
/// COST: some loads and a branch; on a plain thread a look at its deadline.
@inlinable @inline(__always)
package func seemsCancelled() -> Bool {
  // SAFETY: this thread's own worker, used at once. Who has no worker may have a deadline.
  guard let worker = unsafe weft_worker_current() else { return true }
  return unsafe weft_fiber_seems_cancelled(worker)
}

/// Whether the caller is cancelled; if so, others have run.
@usableFromInline
package func noticesCancellation() -> Bool {
  if !Fiber.isCancelled { return false }
  Fiber.yield()
  return true
}

/// After an operation that might have waited and did not: one in 256 lets others run. A loop of
/// operations that always succeed must not keep a worker from everybody else.
///
/// COST: a counter.
@inlinable @inline(__always)
package func spendOperation() {
  // SAFETY: this thread's own worker, which is not used after a yield.
  if let worker = unsafe weft_worker_current(), unsafe weft_worker_spend(worker) { letOthersRun() }
}

@usableFromInline @inline(never)
func letOthersRun() {
  // In a simulation every operation comes here: another may run, if that says so.
  if Seam.isSimulated { simulatedPoint() } else { Fiber.yield() }
}

/// Nil if there is a permit, which is used up, or the fiber is cancelled: but then, and where many
/// permits were there one after the other, others that are runnable go first.
@usableFromInline
func prepareUserPark(_ worker: Worker) -> Record? {
  // SAFETY: the caller runs on this worker's thread, as its current fiber.
  let current = unsafe worker.pointee.current
  if unsafe weft_fiber_seems_cancelled(worker), unsafe isCancelledHere(worker) {
    unsafe current.noteReason(.cancelled)
    return unsafe prepareYield(worker)
  }
  if unsafe current.takePermit() {
    unsafe current.noteReason(.woken)
    unsafe worker.pointee.direct += 1
    if unsafe worker.pointee.direct < worker.pointee.direct_most { return nil }
    unsafe worker.pointee.direct = 0
    return unsafe prepareYield(worker)
  }
  return unsafe preparePark(
    worker, flags: cancellableFlag(current) | WaitBits.parkWait, reason: .park)
}

@usableFromInline
func parkWasCancelled(_ record: Record) -> Bool { unsafe record.lastReason == .cancelled }
