import CWeft
import WeftContext

// Direct switching: a fiber that yields, parks or ends picks the next one itself and switches
// straight to it. Every such call is three steps, so that the switch itself is inlined into the
// user's frame and no mispredicted return follows it:
//
//     prepare (out of line)   picks the next fiber, notes what has to happen after the switch
//     weft_fiber_switch       inline
//     finishSwitch            out of line, on the stack of whoever goes on: does that
//
// The worker's own stack (its root fiber) runs only when there is nothing else to run.

/// Picks what runs next on this worker: a fiber, or the root when nothing is runnable.
///
/// COST: a lock without an atomic operation, a pop; every 16th time a look at inboxes and timers.
func pickNext(_ worker: Worker) -> Record {
  // SAFETY: the owner's thread; the worker outlives its loop.
  unsafe weft_word_bump(weft_worker_tick(worker), 1)
  // ORDERING: relaxed; the owner reads its own counter. The inboxes' contents come with the
  // exchange that takes them.
  let tick = unsafe weft_word_load_relaxed(weft_worker_tick(worker))
  if unsafe tick & UInt64(worker.pointee.poll_mask) == 0 || hasRemote(worker) {
    unsafe pollRemote(worker)
  }
  let queue = unsafe weft_worker_queue(worker)
  while true {
    unsafe weft_queue_lock(queue)
    let next = unsafe weft_queue_pop(queue)
    unsafe weft_queue_unlock(queue)
    if let next = unsafe next {
      unsafe worker.pointee.direct = 0
      if unsafe next.pointee.flags & .bound != 0 || bindStack(next, worker) { return unsafe next }
    } else if unsafe !pollRemote(worker) {
      return unsafe weft_worker_root(worker)
    }
  }
}

/// Takes a fiber that has not started out of this worker's queue, to run it at once.
///
/// For joins: a parent that waits for its child runs it first, so that a tree of fibers is walked
/// depth first, on few hot stacks, instead of level by level. Nil if it is elsewhere.
func takeDirectly(_ record: Record, _ worker: Worker) -> Record? {
  // SAFETY: runs on this worker's own thread.
  let queue = unsafe weft_worker_queue(worker)
  // SAFETY: the caller's handle keeps the record alive. A stale answer is corrected under the lock.
  if unsafe weft_fiber_queued(record) != queue
    || worker.pointee.direct >= worker.pointee.direct_most || Seam.refusesDirect
  {
    return nil
  }
  unsafe weft_queue_lock(queue)
  // Where it is elsewhere, whoever has it may write this at the same time; what is here stays here.
  let here = unsafe weft_fiber_queued(record) == queue && record.pointee.flags & .bound == 0
  if here { unsafe weft_queue_remove(queue, record) }
  unsafe weft_queue_unlock(queue)
  if !here { return nil }
  if unsafe !bindStack(record, worker) { return nil }
  unsafe worker.pointee.direct += 1
  return unsafe record
}

@inline(__always)
private func hasRemote(_ worker: Worker) -> Bool {
  // SAFETY: atomic words of the caller's own worker.
  // ORDERING: relaxed; a hint. The exchange in takeInbox acquires.
  unsafe UInt64(weft_link_load_relaxed(weft_worker_inbox(worker)))
    | UInt64(weft_link_load_relaxed(weft_worker_mailbox(worker)))
    | UInt64(weft_link_load_relaxed(weft_worker_offer(worker)))
    | weft_word_load_relaxed(weft_worker_away(worker)) != 0
}

/// Moves what others sent here, and what slept long enough, into the run queue. True if anything.
///
/// - Parameter yields: whether the running fiber is only letting others run.
@discardableResult
func pollRemote(_ worker: Worker, yields: Bool = false) -> Bool {
  // SAFETY: runs on this worker's own thread.
  var any = unsafe takeBackOffer(worker)
  if unsafe fireTimers(of: worker) { any = true }
  if unsafe takeInbox(weft_worker_mailbox(worker), worker) { any = true }
  if unsafe takeInbox(weft_worker_inbox(worker), worker) { any = true }
  if unsafe weft_word_load_relaxed(weft_worker_away(worker)) != 0 {
    unsafe schedulerCore(of: worker).handOver(worker)
  }
  unsafe noteQueueLength(worker)
  if weft_seam_is_open() { unsafe weft_seam_look(worker, yields) }
  return any
}

/// Keeps the longest that the queue was, as far as these looks see it.
func noteQueueLength(_ worker: Worker) {
  // SAFETY: runs on this worker's own thread, which alone writes the figure.
  // ORDERING: relaxed; a figure for people.
  let count = unsafe weft_word_load_relaxed(weft_worker_queue_count(worker))
  if unsafe count > weft_word_load_relaxed(weft_worker_queue_high_water(worker)) {
    unsafe weft_word_store_relaxed(weft_worker_queue_high_water(worker), count)
  }
}

/// Moves an inbox, of this worker or another, into this worker's queue. True if anything.
func takeInbox(_ inbox: UnsafeMutablePointer<weft_link>, _ worker: Worker) -> Bool {
  // SAFETY: runs on the thread of `worker`. The exchange makes the chain ours; its fibers are in no
  // queue.
  // ORDERING: relaxed; a hint. The exchange acquires what each push released.
  if unsafe weft_link_load_relaxed(inbox) == 0 { return false }
  var chain = unsafe weft_inbox_take(inbox)
  var any = false
  while let record = unsafe chain {
    unsafe chain = record.pointee.next
    unsafe pushLocal(record, worker)
    any = true
  }
  return any
}

/// Puts a runnable fiber at the end of this worker's own queue.
@inline(__always)
func pushLocal(_ record: Record, _ worker: Worker) {
  // SAFETY: the caller holds the fiber, and runs on this worker's thread.
  let queue = unsafe weft_worker_queue(worker)
  unsafe weft_fiber_set_home(record, worker)
  unsafe weft_queue_lock(queue)
  unsafe weft_queue_push(queue, record)
  unsafe weft_queue_unlock(queue)
}

func schedulerCore(of worker: Worker) -> SchedulerCore {
  // SAFETY: the scheduler outlives its workers.
  unsafe Unmanaged<SchedulerCore>.fromOpaque(worker.pointee.scheduler.unsafelyUnwrapped)
    .takeUnretainedValue()
}

/// What the fiber that was left asked for, now that it is left. Runs first thing on every stack
/// that is switched to.
@usableFromInline
package func finishSwitch(_ worker: Worker) {
  // SAFETY: runs on this worker's own thread, which alone writes these fields; `current` is the
  // fiber that goes on here.
  let after = unsafe worker.pointee.after
  unsafe worker.pointee.after = UInt32(WEFT_AFTER_NOTHING)
  if after == UInt32(WEFT_AFTER_UNLOCK) {
    // SAFETY: a yield left the queue locked with the fiber already in it: no thief could take it
    // before its registers were saved.
    unsafe weft_queue_unlock(weft_worker_queue(worker))
  } else if after != UInt32(WEFT_AFTER_NOTHING) {
    unsafe finishOther(after, worker)
  }
  unsafe worker.pointee.errno_address.pointee = worker.pointee.current.pointee.saved_errno
}

@inline(never)
private func finishOther(_ after: UInt32, _ worker: Worker) {
  // SAFETY: `previous` was set together with `after` and is not running any more.
  let previous = unsafe worker.pointee.previous.unsafelyUnwrapped
  switch after {
  case UInt32(WEFT_AFTER_PARK):
    // SAFETY: until it is published below, the fiber that was left is still this thread's.
    // Afterwards it is not touched, unless publishing failed.
    let flags = unsafe UInt64(UInt(bitPattern: worker.pointee.after_argument))
    unsafe weft_word_bump(weft_worker_parked(worker), 1)
    if unsafe !previous.publishParked(flags: flags) { unsafe pushLocal(previous, worker) }
  case UInt32(WEFT_AFTER_JOIN):
    unsafe weft_word_bump(weft_worker_parked(worker), 1)
    // SAFETY: the joiner's handle, on its stack, keeps the target alive while it waits.
    let target = unsafe worker.pointee.after_argument.unsafelyUnwrapped
      .assumingMemoryBound(to: weft_fiber.self)
    if unsafe !addJoiner(previous, to: target) { unsafe pushLocal(previous, worker) }
  case UInt32(WEFT_AFTER_END):
    // SAFETY: the run's reference, dropped last, keeps the record alive.
    unsafe weft_word_bump(weft_worker_ended(worker), 1)
    // ORDERING: the count before the phase; paired with the membarrier of beginDraining.
    if unsafe worker.pointee.queue.unbiased != 0 { weft_fence_seq() } else { weft_fence_compiler() }
    let words = unsafe SharedWords(of: worker)
    if words.isDraining { unsafe schedulerCore(of: worker).endedDraining() }
    // A huge stack is unmapped when it is given back, so it could not be before.
    if unsafe previous.pointee.cold != nil { unsafe weft_fiber_release_stack(previous) }
    if unsafe weft_word_load_relaxed(words.starved) != 0 {
      _ = unsafe weft_word_exchange(words.stackRefusals, 0)
      unsafe schedulerCore(of: worker).serveStackLines(most: 1)
    }
    unsafe weft_fiber_destroy_sanitizer(worker.pointee.after_argument)
    unsafe dropRun(previous, worker)
  // SAFETY: whoever set the function set its argument with it, for this one call.
  default:
    unsafe worker.pointee.after_function.unsafelyUnwrapped(
      worker, previous, worker.pointee.after_argument)
  }
}

/// Drops the reference of the run.
@inline(__always)
private func dropRun(_ record: Record, _ worker: Worker) {
  // SAFETY: the fiber has ended, and nothing runs on its stack.
  // A group's body, or joiners, may change other flags at the same time.
  if unsafe weft_fiber_flags(record) & .owns == 0 {
    unsafe record.unmanagedCell.release()
    return
  }
  // It may run a `deinit` of the user's, on a stack that belongs to another fiber or to the worker:
  // for that time this is a plain thread, where waiting blocks.
  // SAFETY: the worker is the one that this thread had.
  weft_worker_set_current(nil)
  unsafe record.unmanagedCell.release()
  unsafe weft_worker_set_current(worker)
}

/// Notes errno, which belongs to the fiber, before it is left.
@inline(__always)
func leave(_ worker: Worker) {
  // SAFETY: runs on this worker's own thread, whose errno the address is.
  unsafe worker.pointee.current.pointee.saved_errno = worker.pointee.errno_address.pointee
}

// MARK: - Yield

/// Nil if nothing else is runnable: the caller goes on.
@usableFromInline
func prepareYield(_ worker: Worker) -> Record? {
  // SAFETY: runs on this worker's own thread, as the fiber that yields. Between lock and unlock the
  // queue is ours; what came out of it is in no queue.
  let current = unsafe worker.pointee.current
  unsafe weft_word_bump(weft_worker_tick(worker), 1)
  // ORDERING: relaxed, as in pickNext.
  let tick = unsafe weft_word_load_relaxed(weft_worker_tick(worker))
  if unsafe tick & UInt64(worker.pointee.poll_mask) == 0 || hasRemote(worker) {
    unsafe pollRemote(worker, yields: true)
  }
  let queue = unsafe weft_worker_queue(worker)
  unsafe weft_queue_lock(queue)
  guard let next = unsafe weft_queue_rotate(queue, current) else {
    unsafe weft_queue_unlock(queue)
    return unsafe leaveAwayWorker(current, worker)
  }
  if unsafe next.pointee.flags & .bound == 0 { return unsafe bindForYield(next, worker) }
  unsafe worker.pointee.after = UInt32(WEFT_AFTER_UNLOCK)
  unsafe leave(worker)
  return unsafe next
}

/// The same where the next fiber has no stack yet. The yielding one is in the queue, which is
/// locked.
private func bindForYield(_ next: Record, _ worker: Worker) -> Record? {
  // SAFETY: runs on this worker's own thread, with its queue locked.
  let current = unsafe worker.pointee.current
  let queue = unsafe weft_worker_queue(worker)
  // SAFETY: until it is left, the yielding fiber must not be stolen, so it comes out again while
  // the lock is released. Binding may take a system call: not under the lock.
  unsafe weft_queue_remove(queue, current)
  unsafe weft_queue_unlock(queue)
  // Where no stack can be had, the fiber waits in the line, and this one goes on.
  if unsafe !bindStack(next, worker) { return nil }
  unsafe weft_queue_lock(queue)
  unsafe weft_queue_push(queue, current)
  unsafe worker.pointee.after = UInt32(WEFT_AFTER_UNLOCK)
  unsafe leave(worker)
  return unsafe next
}

/// A fiber that yields on a worker that takes no general work, with nothing else to run there, goes
/// elsewhere: the worker's own stack runs next, and sends it off. Nil if it may stay.
private func leaveAwayWorker(_ current: Record, _ worker: Worker) -> Record? {
  // SAFETY: runs on this worker's own thread, as the fiber that yields; it is injected only after
  // the switch away.
  // ORDERING: relaxed; a hint that the next yield sees again.
  if unsafe weft_word_load_relaxed(weft_worker_away(worker)) == 0
    || current.pointee.flags & .pinned != 0
  {
    return nil
  }
  unsafe worker.pointee.previous = current
  unsafe worker.pointee.after_argument = nil
  unsafe worker.pointee.after_function = { worker, fiber, _ in
    let core = unsafe schedulerCore(of: worker)
    unsafe core.sendAway(fiber, from: worker)
  }
  unsafe worker.pointee.after = UInt32(WEFT_AFTER_CALL)
  unsafe leave(worker)
  return unsafe weft_worker_root(worker)
}

// MARK: - Waiting

/// The first step of a wait whose switch is inlined into its caller: a park. Whoever may end the
/// wait has been told its number before.
///
/// - Returns: whom to switch to. Nil: there is a deadline, and so the wait was done here, and is
///   over; `lastReason` says how it ended, as it does after the switch.
@usableFromInline
package func preparePark(
  _ worker: Worker, flags: UInt64, reason: ParkReason, object: UnsafeRawPointer? = nil
) -> Record? {
  // SAFETY: runs on this worker's own thread as the fiber that parks.
  if flags & WaitBits.limited != 0,
    unsafe weft_fiber_scope(worker.pointee.current).pointee.deadline != never
  {
    _ = unsafe suspend(worker, flags: flags, reason: reason, object: object)
    return nil
  }
  return unsafe leaveParked(worker, flags: flags, reason: reason, object: object)
}

/// The first step of every wait but a join, for suspend and preparePark alone: deadlines are theirs
/// to mind.
@inline(__always)
func leaveParked(
  _ worker: Worker, flags: UInt64, reason: ParkReason, object: UnsafeRawPointer?
) -> Record {
  // SAFETY: runs on this worker's own thread as the fiber that parks, which has a stack and so a
  // cold part; others see it parked only after the switch away.
  let current = unsafe worker.pointee.current
  unsafe current.pointee.cold.pointee.wait_reason = reason.rawValue
  unsafe current.pointee.cold.pointee.wait_object = UnsafeMutableRawPointer(mutating: object)
  if unsafe current.pointee.cold.pointee.registry_shard == 0 { unsafe register(current, worker) }
  let next = unsafe pickNext(worker)
  unsafe worker.pointee.previous = current
  unsafe worker.pointee.after_argument = UnsafeMutableRawPointer(bitPattern: UInt(flags))
  unsafe worker.pointee.after = UInt32(WEFT_AFTER_PARK)
  unsafe leave(worker)
  return unsafe next
}

/// Before a fiber's first park.
func register(_ record: Record, _ worker: Worker) {
  // SAFETY: the running fiber's own record. It is taken out, by willEnd, before it ends.
  // ORDERING: relaxed load of the phase after the shard's lock: if the walk of beginDraining took
  // that lock first, the phase that it set before is seen here; else the walk finds the fiber.
  let core = unsafe schedulerCore(of: worker)
  unsafe core.registry.add(record, shard: worker.pointee.index)
  if unsafe record.pointee.flags & .child != 0 { unsafe enlist(record) }
  // A shutdown marks those in the registry; one that came in after its walk marks itself.
  if core.isCancelling, unsafe record.pointee.flags & .main == 0 { _ = unsafe record.cancelWait() }
}

// MARK: - Beginning and end

/// The first Swift frame of a fiber.
func fiberMain(_ record: Record, _ worker: Worker) {
  // SAFETY: the switch hands over the worker of this thread, and the fiber that now runs on it.
  unsafe finishSwitch(worker)
  unsafe weft_word_bump(weft_worker_ran(worker), 1)
  unsafe record.pointee.flags |= .started
  unsafe runBody(record)
  // SWITCH: the fiber may have moved; everything of the worker is read anew.
  guard let worker = unsafe weft_worker_current() else {
    fatalError("weft: \(SchedulerError.forked)")
  }
  unsafe endFiber(record, worker)
}

/// A frame of its own, so that whatever it owns is released before the last switch.
@inline(never)
private func runBody(_ record: Record) {
  // SAFETY: the spawn put the runner there, and each fiber runs once; the record's run keeps it
  // alive.
  if unsafe record.pointee.flags & (.locals | .named) != 0 { unsafe prepareBody(record) }
  unsafe callOnce(unsafe record.runner.move().call, unsafe record)
  if unsafe record.pointee.flags & (.owns | .locals) != 0 { unsafe record.releaseAtEnd() }
}

@inline(never)
private func prepareBody(_ record: Record) {
  // SAFETY: runs as the fiber, on its own stack.
  if unsafe record.pointee.flags & .locals != 0 { unsafe record.adoptLocals() }
  if unsafe record.pointee.flags & .named != 0 { unsafe record.nameStack() }
}

/// A closure that is called where it was loaded is retained and released around the call. One that
/// is handed over is released once, at the end.
@inline(never)
private func callOnce(_ body: __owned @escaping (Record) -> Void, _ record: Record) {
  // SAFETY: the runner gets the record that it was made for.
  unsafe body(record)
}

private func endFiber(_ record: Record, _ worker: Worker) -> Never {
  // SAFETY: runs on the fiber's own stack and this worker's own thread.
  unsafe willEnd(record, worker)
  // SAFETY: from here on the joiners may read the outcome; the record lives until WEFT_AFTER_END.
  let joiner = unsafe publishEnd(record, worker)
  unsafe worker.pointee.after_argument = weft_fiber_unbind(record)
  // SAFETY: `joiner` was taken from the list: it is parked, in no queue, and ours. The stack that
  // was given back is not handed to another thread while this one is on it.
  var next = unsafe joiner
  if let joiner = unsafe next,
    unsafe worker.pointee.direct >= worker.pointee.direct_most || Seam.refusesDirect
  {
    unsafe pushLocal(joiner, worker)
    unsafe next = nil
  }
  if unsafe weft_fiber_flags(record) & .main != 0 {
    // The end of a run: its loop decides what is next.
    if let joiner = unsafe next { unsafe pushLocal(joiner, worker) }
    unsafe next = weft_worker_root(worker)
  } else if unsafe next == nil {
    unsafe next = pickNext(worker)
  } else {
    unsafe worker.pointee.direct += 1
  }
  unsafe worker.pointee.previous = record
  unsafe worker.pointee.after = UInt32(WEFT_AFTER_END)
  unsafe weft_fiber_switch_last(record, next.unsafelyUnwrapped, worker)
  fatalError("weft: a fiber was continued after its end. Please report this bug.")
}
