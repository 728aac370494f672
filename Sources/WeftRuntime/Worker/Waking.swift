import CWeft

// Making fibers runnable: on the worker that wakes them, if that is one of their scheduler's, since
// what they wait for was just produced there; otherwise through an inbox.

/// Makes a fiber runnable that the caller holds: it won the wake, or has just made it.
package func makeRunnable(_ record: Record) {
  // SAFETY: the caller holds the fiber.
  unsafe makeRunnable(record, unsafe record.pointee.flags & (.pinned | .migrates | .simulated))
}

/// - Parameter bound: what keeps it from going just where it is woken.
private func makeRunnable(_ record: Record, _ bound: UInt32) {
  // SAFETY: `home` is the worker that ran it last, whose memory lives as long as its scheduler has
  // fibers.
  let home = unsafe record.pointee.home.unsafelyUnwrapped
  if let worker = unsafe weft_worker_current(),
    unsafe worker.pointee.pool == home.pointee.pool,
    unsafe bound == 0 || bound == .pinned && worker == home
  {
    unsafe weft_word_bump(weft_worker_woken(worker), 1)
    // ORDERING: relaxed; whether it is offered or queued, its own worker comes to it.
    if unsafe weft_word_load_relaxed(SharedWords(of: worker).searching) != 0 && bound == 0,
      unsafe offer(record, worker)
    {
      return
    }
    unsafe pushLocal(record, worker)
    unsafe workAdded(on: worker)
    return
  }
  if bound & .simulated != 0 {
    unsafe weft_seam_note(UInt32(WEFT_NOTE_WAKE), record)
    return unsafe makeRunnable(record, bound & ~.simulated)
  }
  let core = unsafe schedulerCore(of: home)
  core.refuseAfterFork()
  if bound & .pinned != 0 {
    // SAFETY: the scheduler that `core` refers to keeps `home` from being freed, even if the fiber
    // runs and ends as soon as it is pushed.
    // ORDERING: the push, then the fence, then the idle bit: step (a) to (b) of Idle.swift.
    _ = unsafe weft_inbox_push(weft_worker_mailbox(home), record)
    weft_fence_seq()
    unsafe core.wake(home)
  } else if bound != 0 {
    unsafe core.wakeElsewhere(record, from: home)
  } else {
    unsafe core.inject(record, near: home)
  }
}

// Offers. A fiber that is woken while its waker runs on is the queue's only one, most often: to
// steal it costs a microsecond (membarrier), and a searcher that took it at once would pull apart
// every pair of fibers which wake each other and then wait. So where somebody searches, a lone
// fiber is put into its worker's offer instead, one word:
//
//     owner      store the fiber (only the owner makes it non-zero)
//     owner      exchange for 0 when it looks for work: within nanoseconds, if it parks now
//     searcher   sees the same fiber for 3 µs, look after look, and no switch in between:
//                compare-and-swap for 0
//
// Whoever takes it out has it. Nobody relies on an offer: the owner takes it back before it sleeps.

/// Holds a fiber out to searchers. False if it should be queued.
@inline(never)
private func offer(_ record: Record, _ worker: Worker) -> Bool {
  // SAFETY: on the worker's own thread; the caller holds the fiber, until the store.
  // ORDERING: relaxed loads of what this thread alone makes non-zero. The store releases the fiber
  // to the compare-and-swap in takeOffer.
  let slot = unsafe weft_worker_offer(worker)
  if unsafe weft_link_load_relaxed(slot) != 0
    || weft_word_load_relaxed(weft_worker_queue_count(worker)) != 0
    || weft_word_load_relaxed(weft_worker_away(worker)) != 0
    // The searcher is this one: it runs the fiber next.
    || weft_word_load_relaxed(weft_worker_idle_since(worker)) != 0
    || worker.pointee.pool.pointee.migrates_started == 0
  {
    unsafe takeBackOffer(worker)
    return false
  }
  unsafe weft_fiber_set_home(record, worker)
  unsafe weft_link_store_release(slot, UInt(bitPattern: record))
  return true
}

/// Queues what nobody took. True if there was anything.
@discardableResult
func takeBackOffer(_ worker: Worker) -> Bool {
  // SAFETY: on the worker's own thread; what comes out is in no queue.
  // ORDERING: relaxed; a hint, this thread's own. The exchange has one winner; what a searcher left
  // in place was put there by this thread.
  let slot = unsafe weft_worker_offer(worker)
  if unsafe weft_link_load_relaxed(slot) == 0 { return false }
  guard let record = unsafe Record(bitPattern: weft_link_exchange(slot, 0)) else { return false }
  unsafe pushLocal(record, worker)
  return true
}

/// What a searcher saw of offers in its last looks.
struct SeenOffer {
  /// Looks in a row that must find the same: some 3 µs, about what it costs to take it. With less,
  /// two fibers that fill and empty a buffer for a microsecond each are pulled apart, and are half
  /// as fast on two workers as on one. (Go leaves the next goroutine of a running P alone as long.)
  static var looks: Int { Seam.isSimulated ? 3 : 40 }
  var fiber: UInt = 0
  var tick: UInt64 = 0
  var times = 0
}

/// For searchers: takes what another worker holds out, if it did in the last looks as well and has
/// not switched since.
func takeOffer(from victim: Worker, _ worker: Worker, seen: inout SeenOffer) -> Bool {
  // SAFETY: the victim's memory lives as long as the scheduler; the address is only compared.
  // ORDERING: relaxed looks; takeOffer orders what is taken.
  let held = unsafe weft_link_load_relaxed(weft_worker_offer(victim))
  if held == 0 {
    seen.times = 0
    return false
  }
  let tick = unsafe weft_word_load_relaxed(weft_worker_tick(victim))
  if seen.times == 0 || held != seen.fiber || tick != seen.tick {
    seen = SeenOffer(fiber: held, tick: tick, times: 0)
  }
  seen.times += 1
  return unsafe seen.times >= SeenOffer.looks && takeOffer(held, from: victim, worker)
}

/// For searchers: takes this fiber, which the other worker held out a moment ago, if it still does.
func takeOffer(_ fiber: UInt, from victim: Worker, _ worker: Worker) -> Bool {
  // SAFETY: the victim's memory lives as long as the scheduler. The fiber that the swap takes out
  // is ours; before that its address is only compared.
  // ORDERING: the compare-and-swap acquires what `offer` released.
  var held = fiber
  guard unsafe weft_link_compare_exchange(weft_worker_offer(victim), &held, 0) else {
    return false
  }
  let record = unsafe Record(bitPattern: held).unsafelyUnwrapped
  unsafe pushLocal(record, worker)
  unsafe weft_word_bump(weft_worker_stolen(worker), 1)
  return true
}

/// Carries out what a transition of the wait word asks for.
package func perform(_ duty: WakeDuty, _ record: Record) {
  // SAFETY: `.resume` says that the caller won the wake: the fiber is parked, in no queue, and
  // ours.
  if case .resume = duty { unsafe makeRunnable(record) }
}

/// Whether other workers may run fibers while this one does.
package func hasOtherWorkers(_ worker: Worker) -> Bool {
  // SAFETY: runs on this worker's own thread; a word of its pool.
  // ORDERING: relaxed; a hint.
  unsafe weft_word_load_relaxed(SharedWords(of: worker).active) > 1
}
