import CWeft

// Sleeping and waking without losing a wake.
//
//     worker                                 whoever makes work
//     ------                                 ------------------
//     1. set own idle bit                    a. put the fiber into a queue or inbox
//     2. membarrier (or a fence)             b. read the idle bits
//     3. look at every queue and inbox       c. some bit set: clear it and wake its worker
//     4. nothing: sleep while the bit is set
//
// Either (3) sees the fiber of (a), or (b) sees the bit of (1): with a locked instruction on both
// sides that is plain sequential consistency. A push into a worker's own queue has no locked
// instruction; there the membarrier of (2) makes every other running thread pass a full barrier
// between whatever it stored before and whatever it loads after, so that one of the two still
// holds. Who clears the bit in (c) makes the sleeper a searcher, and a sleeper that gives up by
// itself clears its own: the bit has one winner.
//
// Searchers. At most one worker is woken at a time: while somebody searches, (c) does nothing,
// since the searcher will find the fiber. A searcher that finds something and was the last one
// wakes another if more is left: so work spreads as fast as it is found, and a single fiber that
// comes and goes wakes nobody.
//
// A lone fiber in a busy worker's queue is left to its worker for a while (it is most likely the
// child that its parent joins next). Sleepers look again after 50 µs, 100 µs ... 1 ms as long as
// any worker is busy, and take it if the worker has not switched meanwhile. When nobody is busy
// nobody looks: an idle process uses no processor time.

private let napFirst: UInt64 = 50_000
private let napMost: UInt64 = 1_000_000

/// Work was put into the queue of a worker, by that worker.
///
/// COST: two loads and two predicted branches while nobody sleeps, or somebody searches.
@inline(__always)
func workAdded(on worker: Worker) {
  // SAFETY: the worker's own thread; worker and pool outlive its loop.
  // ORDERING: relaxed; step (b) above, after the sleeper's membarrier or, unbiased, our fence.
  if unsafe worker.pointee.queue.unbiased != 0 { weft_fence_seq() } else { weft_fence_compiler() }
  if unsafe weft_word_load_relaxed(weft_worker_away(worker)) != 0 {
    if unsafe schedulerCore(of: worker).handOver(worker) { return }
  }
  let words = unsafe SharedWords(of: worker)
  if unsafe weft_word_load_relaxed(words.sleepers) == 0 { return }
  // A lone fiber is for one that naps to take. Where nobody naps, since all slept when this worker
  // was woken, somebody has to be woken to it. So is a queue that turns over (Stealing.swift).
  let count = unsafe weft_word_load_relaxed(weft_worker_queue_stealable(worker))
  if unsafe count < 2 || isTurning(worker, count), unsafe weft_word_load_relaxed(words.napping) != 0
  {
    return
  }
  if unsafe weft_word_load_relaxed(words.searching) != 0 { return }
  unsafe schedulerCore(of: worker).wakeOne()
}

extension SchedulerCore {
  // MARK: - Waking

  /// Wakes a sleeper that takes general work, unless somebody searches already.
  func wakeOne() {
    // SAFETY: the scheduler's own words and workers, freed in its deinit; idle bits are set only
    // below `capacity`.
    // ORDERING: sequentially consistent, after the caller's fence or locked instruction: step (b)
    // above, paired with setIdle.
    if unsafe weft_word_load_seq(words.searching) != 0 { return }
    for word in 0..<4 {
      while true {
        // ORDERING: seq; the idle bits are step (b) above. The general ones may be stale: whom they
        // name wrongly passes the search on (idle).
        let bits =
          unsafe weft_word_load_seq(words.idle(word)) & weft_word_load_seq(words.general(word))
        if bits == 0 { break }
        let index = word * 64 + bits.trailingZeroBitCount
        if unsafe wake(workers[index]) { return }
      }
    }
  }

  /// Wakes this worker. False if it was not asleep, or somebody else just woke it.
  @discardableResult
  func wake(_ worker: Worker) -> Bool {
    // SAFETY: a worker of this scheduler, whose memory is freed in our deinit.
    // ORDERING: sequentially consistent. `sleeping` before the look at `keeper`, paired with
    // keepWatch, which names itself the keeper before it looks at `sleeping`.
    if unsafe !isIdle(worker) { return false }
    // Counted first, so that the sleeper can't stop searching before it began.
    _ = unsafe weft_word_add(words.searching, 1)
    guard unsafe clearIdle(worker) else {
      _ = unsafe weft_word_subtract(words.searching, 1)
      return false
    }
    _ = unsafe weft_word_exchange(weft_worker_sleeping(worker), 0)
    if unsafe weft_word_load_seq(words.keeper) == UInt64(worker.pointee.index) + 1 {
      poller.kick()
    }
    unsafe weft_futex_wake(weft_worker_sleeping(worker), 1)
    return true
  }

  private func isIdle(_ worker: Worker) -> Bool {
    // SAFETY: as in wake; the index is constant after init.
    // ORDERING: seq; step (b) above.
    let index = unsafe Int(worker.pointee.index)
    return unsafe weft_word_load_seq(words.idle(index / 64)) >> UInt64(index % 64) & 1 != 0
  }

  /// Takes the worker's idle bit away. True for the one who did.
  private func clearIdle(_ worker: Worker) -> Bool {
    // SAFETY: as in wake; the index is constant after init.
    // ORDERING: the swap has one winner, and acquires what the sleeper did before it set the bit.
    let index = unsafe Int(worker.pointee.index)
    let word = unsafe words.idle(index / 64)
    let bit = UInt64(1) << UInt64(index % 64)
    var bits = unsafe weft_word_load_seq(word)
    while bits & bit != 0 {
      if unsafe weft_word_compare_exchange(word, &bits, bits & ~bit) {
        _ = unsafe weft_word_subtract(words.sleepers, 1)
        pokeHelper()
        return true
      }
    }
    return false
  }

  private func setIdle(_ worker: Worker) {
    // SAFETY: called on the worker's own thread; the words are the scheduler's.
    // ORDERING: step (1): `sleeping` before the bit, so that whoever takes the bit ends the sleep.
    // The barrier between the bit and the look for work is in sleep.
    let index = unsafe Int(worker.pointee.index)
    let word = unsafe words.idle(index / 64)
    let bit = UInt64(1) << UInt64(index % 64)
    unsafe _ = weft_word_exchange(weft_worker_sleeping(worker), 1)
    _ = unsafe weft_word_add(words.sleepers, 1)
    var bits = unsafe weft_word_load_seq(word)
    while unsafe !weft_word_compare_exchange(word, &bits, bits | bit) {}
  }

  /// From a thread that is no worker of this scheduler, or for a worker that should not run it.
  func inject(_ record: Record, near home: Worker?) {
    // SAFETY: the caller holds the fiber: it is in no queue. Workers live as long as this object.
    // ORDERING: the loads choose a target, no more. The push releases the fiber; the fence between
    // it and the idle bits is step (a) to (b), paired with setIdle.
    var target = unsafe home
    if unsafe weft_word_load_seq(words.sleepers) != 0 {
      search: for word in 0..<4 {
        let bits =
          unsafe weft_word_load_seq(words.idle(word)) & weft_word_load_seq(words.general(word))
        if bits != 0 {
          unsafe target = workers[word * 64 + bits.trailingZeroBitCount]
          break search
        }
      }
    }
    if let near = unsafe target, unsafe isAway(near) { unsafe target = nil }
    let chosen = unsafe target ?? lessLoaded()
    _ = unsafe weft_inbox_push(weft_worker_inbox(chosen), record)
    weft_fence_seq()
    if unsafe !wake(chosen) { wakeOne() }
  }

  /// The less loaded of two random workers that take general work.
  func lessLoaded() -> Worker {
    // SAFETY: words and workers of this scheduler; generalWorker gives indexes below `capacity`.
    // ORDERING: the add only makes numbers differ; the counts are relaxed, since a stale one costs
    // balance.
    var state = unsafe weft_word_add(words.nextID, 0) &* 0x9E37_79B9_7F4A_7C15 ^ weft_clock_now()
    func any() -> Worker {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return unsafe workers[generalWorker(Int(state >> 33))]
    }
    let (a, b) = unsafe (any(), any())
    let countA = unsafe weft_word_load_relaxed(weft_worker_queue_count(a))
    let countB = unsafe weft_word_load_relaxed(weft_worker_queue_count(b))
    return unsafe countA <= countB ? a : b
  }

  /// A timer was set: whoever watches timers must not sleep past it.
  func timerAdded(_ deadline: UInt64) {
    // SAFETY: words of this scheduler; the keeper is the index of a worker, plus one.
    // ORDERING: between the store of the next deadline and the load of the keeper; paired with the
    // locked instructions of keepWatch.
    weft_fence_seq()
    let keeper = unsafe weft_word_load_seq(words.keeper)
    if keeper == 0 {
      // Nobody watches: sleepers that chose no limit would never look.
      if unsafe weft_word_load_seq(words.sleepers) != 0 { unsafe passWatch(besides: nil) }
      return
    }
    if unsafe deadline < weft_word_load_seq(words.keeperDeadline) {
      unsafe wake(workers[Int(keeper) - 1])
    }
  }

  // MARK: - Sleeping

  /// Anything that a worker that is about to sleep should do instead.
  private func workExists(for worker: Worker) -> Bool {
    // SAFETY: called on the worker's own thread; of other workers only atomic words are read.
    // ORDERING: step (3): acquire loads after the barrier in sleep, paired with step (a) of whoever
    // queues a fiber.
    if isStopping { return true }
    // The last end of a run may have come while this worker was still looking around.
    if unsafe isDrained(for: worker) { return true }
    if unsafe weft_link_load_acquire(weft_worker_mailbox(worker)) != 0 { return true }
    if unsafe weft_word_load_acquire(weft_worker_queue_count(worker)) != 0 { return true }
    if unsafe weft_link_load_acquire(weft_worker_inbox(worker)) != 0 { return true }
    if unsafe weft_link_load_acquire(weft_worker_offer(worker)) != 0 { return true }
    if unsafe isAway(worker) { return false }
    for index in 0..<capacity {
      let other = unsafe workers[index]
      let stealable = unsafe weft_word_load_acquire(weft_worker_queue_stealable(other))
      if stealable >= debug.worthALook, unsafe !isTurning(other, stealable) { return true }
      if unsafe weft_link_load_acquire(weft_worker_inbox(other)) != 0 { return true }
    }
    return false
  }

  /// Looks for work, for some microseconds, and then sleeps until there is some.
  func idle(_ worker: Worker) {
    // SAFETY: called on the worker's own thread.
    // ORDERING: sequentially consistent adds; whoever sees a searcher relies on its next look at
    // the queues, which comes after its add, or on step (3) after its subtract. Relaxed stores of
    // counters that the owner alone writes.
    let started = weft_clock_now()
    unsafe weft_word_store_relaxed(weft_worker_idle_since(worker), started)
    unsafe weft_word_store_relaxed(weft_worker_stacks_cached(worker), weft_stack_cached())
    unsafe markTurning(worker, false)
    defer {
      unsafe weft_word_store_relaxed(weft_worker_idle_since(worker), 0)
      unsafe weft_word_bump(
        weft_worker_idle_nanoseconds(worker), weft_clock_now() &- started)
    }
    _ = unsafe weft_word_add(words.searching, 1)
    var nap = napFirst
    while true {
      let found = unsafe search(worker)
      // SAFETY: as above.
      let searchers = unsafe weft_word_subtract(words.searching, 1)
      if found {
        // The last searcher passes the search on if there is more.
        if searchers == 1, unsafe moreExists(besides: worker) { wakeOne() }
        return unsafe handWatchOver(worker)
      }
      // Drained: it is the loop around this that ends.
      if unsafe isStopping || hasWorkOfItsOwn(worker) || isDrained(for: worker) {
        return unsafe handWatchOver(worker)
      }
      // One that takes no general work was woken for its own, and searched for nobody.
      if searchers == 1, unsafe isAway(worker) && moreExists(besides: worker) { wakeOne() }
      // Whoever wakes us makes us a searcher again; giving up by ourselves, we become one.
      if unsafe !sleep(worker, nap: &nap) {
        _ = unsafe weft_word_add(words.searching, 1)
      } else if weft_clock_now() &- started < 2 * spinNanoseconds {
        // It should have spun a little longer.
        unsafe worker.pointee.spin_rounds = UInt64(spinRoundsMost)
      }
      // Stacks may have become free since somebody found none. SAFETY: as above.
      if unsafe weft_word_load_relaxed(words.starved) != 0 { serveStackLines(most: 32) }
    }
  }

  /// Whether the visitor's wait for the last fiber is over.
  private func isDrained(for worker: Worker) -> Bool {
    // SAFETY: the index is constant after init.
    unsafe isDraining && hasVisitor && worker.pointee.index == 0 && live == 0
  }

  func hasWorkOfItsOwn(_ worker: Worker) -> Bool {
    // SAFETY: called on the worker's own thread; atomic words of its record.
    // ORDERING: acquire, but no more than a hint: the queue's lock and the exchange on the inbox
    // order what is taken.
    unsafe weft_word_load_acquire(weft_worker_queue_count(worker)) != 0
      || weft_link_load_acquire(weft_worker_mailbox(worker)) != 0
      || weft_link_load_acquire(weft_worker_inbox(worker)) != 0
      || weft_link_load_acquire(weft_worker_offer(worker)) != 0
  }

  private func moreExists(besides worker: Worker) -> Bool {
    // SAFETY: atomic words of workers, which live as long as this object.
    // ORDERING: relaxed; a hint. What is missed here is found by the fiber's own worker.
    for index in 0..<capacity {
      let other = unsafe workers[index]
      let least: UInt64 = unsafe other == worker ? 1 : debug.worthALook
      let stealable = unsafe weft_word_load_relaxed(weft_worker_queue_stealable(other))
      if stealable >= least, unsafe other == worker || !isTurning(other, stealable) { return true }
      if unsafe weft_link_load_relaxed(weft_worker_inbox(other)) != 0 { return true }
    }
    return false
  }

  /// True if woken by somebody, who has made this worker a searcher.
  private func sleep(_ worker: Worker, nap: inout UInt64) -> Bool {
    // SAFETY: called on the worker's own thread.
    // ORDERING: loads after the barrier of step 2, which only choose how long to sleep.
    // Counted before the idle bit is set: else a worker whose fibers wake each other all the time
    // would wake this one while it is still on its way to sleep, again and again.
    let mayNap = unsafe !isAway(worker)
    if mayNap { _ = unsafe weft_word_add(words.napping, 1) }
    unsafe setIdle(worker)
    // Step 2.
    if unsafe worker.pointee.queue.unbiased == 0 { weft_membarrier() } else { weft_fence_seq() }
    // SAFETY: as above.
    if unsafe workExists(for: worker) {
      if mayNap {
        _ = unsafe weft_word_subtract(words.napping, 1)
        // A lone fiber may have been left to the nap that this is not going to take.
        if unsafe aLoneOneWaits(besides: worker) { wakeOne() }
      }
      return unsafe !clearIdle(worker)
    }
    // SAFETY: as above.
    var busy = !allAsleep
    var naps = mayNap && busy
    if !naps {
      if mayNap { _ = unsafe weft_word_subtract(words.napping, 1) }
      // One that was woken meanwhile may have left a lone fiber to this nap.
      busy = !allAsleep
      naps = unsafe mayNap && busy || weft_word_load_relaxed(words.starved) != 0
      if naps { _ = unsafe weft_word_add(words.napping, 1) }
    }
    // SAFETY: as above.
    defer { if naps { _ = unsafe weft_word_subtract(words.napping, 1) } }
    var limit = never
    if naps {
      // Each worker its own time: two that wake at the same moments would each find the other
      // awake, and nap for ever.
      limit = unsafe nap + nap / 16 * UInt64(worker.pointee.index % 16)
      nap = debug.contains(.steal) ? napFirst : min(nap * 2, napMost)
    }
    if !busy, naps, hopelesslyStarved { limit = min(limit, considerDeadlock()) }
    // What a million fibers leave is looked at once more, in case they come back soon.
    // SAFETY: as above.
    let settleLimit: UInt64 =
      !Seam.isSimulated && settleMemory(atOnce: false) ? 1_000_000_000 : never
    if unsafe becomeKeeper(worker) {
      unsafe keepWatch(worker, limit: min(limit, settleLimit))
    } else {
      if !busy { limit = considerDeadlock() }
      limit = min(limit, settleLimit)
      if limit > 0 { unsafe weft_futex_wait(weft_worker_sleeping(worker), 1, limit) }
    }
    return unsafe !clearIdle(worker)
  }

  /// Gives back what a large use left of stacks and records. True if something is left for later.
  func settleMemory(atOnce: Bool) -> Bool {
    let (stacks, records) = (weft_stack_settle(atOnce), weft_record_settle(atOnce))
    return stacks || records
  }

  private func aLoneOneWaits(besides worker: Worker) -> Bool {
    // SAFETY: atomic words of workers, which live as long as this object.
    // ORDERING: acquire, after the locked instruction that took the nap back: paired with the fence
    // of workAdded, or our membarrier, before it looked at `napping`.
    (0..<capacity).contains { index in
      let other = unsafe workers[index]
      return unsafe other != worker
        && weft_word_load_acquire(weft_worker_queue_stealable(other)) != 0
    }
  }

  /// Fibers wait for a stack, and every worker has found none many times since the last fiber
  /// ended: each has a cache of its own, so that one refusal says little.
  var hopelesslyStarved: Bool {
    // SAFETY: words of this scheduler.
    // ORDERING: relaxed; it gates a report that looks for itself.
    unsafe weft_word_load_relaxed(words.starved) != 0
      && weft_word_load_relaxed(words.stackRefusals) > UInt64(20 * capacity)
  }

  /// Every worker that has a thread sleeps.
  var allAsleep: Bool {
    // SAFETY: words of this scheduler.
    unsafe weft_word_load_seq(words.sleepers) >= weft_word_load_seq(words.launched)
  }

  /// Takes no general work.
  func isAway(_ worker: Worker) -> Bool {
    // SAFETY: an atomic word of a worker, which lives as long as this object.
    unsafe weft_word_load_acquire(weft_worker_away(worker)) & UInt64(WEFT_AWAY_FROM_WORK) != 0
  }

  private func becomeKeeper(_ worker: Worker) -> Bool {
    // SAFETY: a word of this scheduler; the index is constant after init.
    // ORDERING: sequentially consistent: paired with wake, which looks at `keeper` after
    // `sleeping`.
    var nobody: UInt64 = 0
    return unsafe weft_word_compare_exchange(
      words.keeper, &nobody, UInt64(worker.pointee.index) + 1)
  }

  /// The one sleeper that minds the clock and the poller.
  private func keepWatch(_ worker: Worker, limit: UInt64) {
    // SAFETY: atomic words of this scheduler and its workers, on the keeper's own thread.
    // ORDERING: acquire loads, paired with publishNext. The exchange of the deadline comes before
    // the second look, as in timerAdded the new deadline comes before the look at this one: one of
    // the two sees the other.
    var next = never
    for index in 0..<capacity {
      unsafe next = min(next, weft_word_load_acquire(weft_worker_next_deadline(workers[index])))
    }
    // SAFETY: as above.
    unsafe _ = weft_word_exchange(words.keeperDeadline, next)
    // A timer that was set meanwhile did not see the deadline: look once more.
    for index in 0..<capacity {
      unsafe next = min(next, weft_word_load_acquire(weft_worker_next_deadline(workers[index])))
    }
    let limit = next == never && limit == never ? considerDeadlock() : limit
    // ORDERING: `sleeping` after `keeper`, paired with wake, which does the reverse.
    let now = weft_clock_now()
    let time = min(limit, next == never ? never : next > now ? next - now : 0)
    if time > 0, unsafe weft_word_load_seq(weft_worker_sleeping(worker)) == 1 {
      waitPunctually(time)
    }
    // A fiber between its timer and a queue is seen by nobody, and this worker still counts as
    // asleep: no deadlock must be concluded from that.
    _ = unsafe weft_word_add(words.firing, 1)
    // SAFETY: as above; of other workers' timers fireTimers takes the lock.
    _ = unsafe weft_word_exchange(words.keeper, 0)
    for index in 0..<capacity { _ = unsafe fireTimers(of: workers[index]) }
    _ = unsafe weft_word_subtract(words.firing, 1)
  }

  /// A fifth of the slack that the kernel takes by itself: half of the sleepers wake within 30 µs,
  /// not 60, and those that wake so close together still cost one wake-up. For this wait only:
  /// the threads and programs that this thread starts begin with what it has.
  private func waitPunctually(_ time: UInt64) {
    if time == never || Seam.isSimulated { return poller.wait(time) }
    let slack = weft_timer_slack(10_000)
    poller.wait(time)
    _ = weft_timer_slack(slack)
  }

  /// This worker leaves for work: if it kept the watch, and there are timers, a sleeper takes it.
  ///
  /// Not at the end of each keeping: one that only looked around would wake another, which would
  /// find it awake, and so on for as long as there is a timer.
  private func handWatchOver(_ worker: Worker) {
    // SAFETY: words of this scheduler and its workers.
    // ORDERING: sequentially consistent: `keeper` was cleared before the look at `sleepers`, which
    // a worker raises before it tries to become the keeper: either it is, or it is seen here.
    if unsafe weft_word_load_seq(words.keeper) != 0 || weft_word_load_seq(words.sleepers) == 0 {
      return
    }
    for index in 0..<capacity
    where unsafe weft_word_load_acquire(weft_worker_next_deadline(workers[index])) != never {
      return unsafe passWatch(besides: worker)
    }
  }

  /// Wakes a sleeper, so that it becomes the keeper, whether somebody searches or not.
  func passWatch(besides worker: Worker?) {
    // SAFETY: words of this scheduler and its workers.
    // ORDERING: sequentially consistent, as in wakeOne.
    for word in 0..<4 {
      var bits = unsafe weft_word_load_seq(words.idle(word))
      while bits != 0 {
        let index = word * 64 + bits.trailingZeroBitCount
        bits &= bits - 1
        if unsafe workers[index] != worker, unsafe wake(workers[index]) { return }
      }
    }
  }
}
