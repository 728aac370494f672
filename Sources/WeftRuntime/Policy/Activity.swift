import CWeft

// Which workers take general work.
//
//     general ──── retire, the policy wants fewer ────▶ away (retired)
//        ▲  │                                             │   ▲
//        │  └── keep for a fiber ──▶ away (exclusive) ◀───┘   │
//        │                              │ the fiber ended     │
//        └── grow, the policy wants more, or a place is free ─┘
//
// A worker that is away runs what is pinned to it and nothing else: whatever else gets into its
// queue it hands over at its next switch (handOver); a fiber that runs on it meanwhile leaves at
// its next yield or park. Its thread sleeps like any other's.
//
// INVARIANT: a worker's bit in words.general is set exactly while its `away` says nothing of these.
// Worker 0's always is, so that there is always somebody who takes general work. GUARDED BY:
// lifeLock, for every change.

extension SchedulerCore {
  /// In init: the first so many are general; the others have no thread yet.
  func setUpActivity() {
    // SAFETY: words of this scheduler.
    let first = configuration.workers.lowerBound
    // ORDERING: relaxed; nobody else knows this scheduler yet.
    unsafe weft_word_store_relaxed(words.active, UInt64(first))
    for index in 0..<capacity { setAway(index, index < first ? 0 : WEFT_AWAY_RETIRED) }
  }

  private func setAway<N: FixedWidthInteger>(_ index: Int, _ why: N) {
    // SAFETY: the workers' memory lives as long as the scheduler.
    let general = unsafe words.general(index / 64)
    let bit = UInt64(1) << UInt64(index % 64)
    let sends = unsafe words.pool.pointee.moves == nil ? 0 : UInt64(WEFT_AWAY_SENDS)
    // ORDERING: release, paired with the acquire of whoever is about to sleep; the bits are only
    // hints, and who follows a stale one reads `away` itself.
    if why == 0 {
      unsafe weft_word_store_release(weft_worker_away(workers[index]), sends)
      unsafe weft_word_store_release(general, weft_word_load_relaxed(general) | bit)
    } else {
      unsafe weft_word_store_release(general, weft_word_load_relaxed(general) & ~bit)
      unsafe weft_word_store_release(weft_worker_away(workers[index]), UInt64(why) | sends)
    }
  }

  func isExclusive(_ index: Int) -> Bool {
    // SAFETY: as above. ORDERING: acquire, paired with setAway.
    unsafe weft_word_load_acquire(weft_worker_away(workers[index])) & UInt64(WEFT_AWAY_EXCLUSIVE)
      != 0
  }

  func isGeneral(_ index: Int) -> Bool {
    // SAFETY: as above. ORDERING: acquire, paired with setAway.
    unsafe weft_word_load_acquire(weft_worker_away(workers[index])) & UInt64(WEFT_AWAY_FROM_WORK)
      == 0
  }

  func isAsleep(_ index: Int) -> Bool {
    // SAFETY: as above. ORDERING: seq, as all idle bits.
    unsafe weft_word_load_seq(words.idle(index / 64)) >> UInt64(index % 64) & 1 == 1
  }

  var generalCount: Int { (0..<capacity).count(where: isGeneral) }
  var exclusiveCount: Int { (0..<capacity).count(where: isExclusive) }

  /// The most workers, of both classes, that should run at once: as many as there are processors,
  /// or as many as the program insists on.
  var workersLimit: Int {
    min(capacity, max(configuration.workers.lowerBound, Int(weft_cpus_available())))
  }

  /// One of the workers that take general work.
  func generalWorker(_ random: Int) -> Int {
    // SAFETY: words of this scheduler.
    var bits: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    // ORDERING: relaxed; a stale bit costs a detour.
    unsafe bits.0 = weft_word_load_relaxed(words.general(0))
    if capacity > 64 {
      unsafe bits.1 = weft_word_load_relaxed(words.general(1))
      unsafe bits.2 = weft_word_load_relaxed(words.general(2))
      unsafe bits.3 = weft_word_load_relaxed(words.general(3))
    }
    let counts = (
      bits.0.nonzeroBitCount, bits.1.nonzeroBitCount, bits.2.nonzeroBitCount,
      bits.3.nonzeroBitCount
    )
    let total = counts.0 + counts.1 + counts.2 + counts.3
    if total == 0 { return 0 }
    var rank = random % total
    var base = 0
    for (word, count) in [(bits.0, counts.0), (bits.1, counts.1), (bits.2, counts.2)] {
      if rank < count { return base + word.indexOfSetBit(rank) }
      rank -= count
      base += 64
    }
    return base + bits.3.indexOfSetBit(rank)
  }

  // MARK: - Growing and shrinking

  /// Makes so many workers take general work, as far as there are that many.
  func setActive(_ wish: Int) {
    // SAFETY: a word of this scheduler.
    // ORDERING: release; `active` is read relaxed elsewhere, or under the same lock.
    lifeLock.withLock {
      let count = min(max(wish, configuration.workers.lowerBound), capacity)
      unsafe weft_word_store_release(words.active, UInt64(count))
      rebalance(within: capacity)
    }
  }

  /// Brings the number of general workers to what it should be. GUARDED BY: lifeLock
  ///
  /// - Parameter limit: how many workers of both classes there may be.
  func rebalance(within limit: Int) {
    // SAFETY: indexes below `capacity`.
    if isStopping { return }
    var count = generalCount
    let exclusive = exclusiveCount
    for index in 0..<capacity where count < active && count + exclusive < limit {
      if isGeneral(index) || isExclusive(index) { continue }
      do throws(SchedulerError) {
        try startThreadLocked(index)
      } catch {
        // No thread can be had: those that there are do the work. The next period tries again.
        return
      }
      setAway(index, 0)
      unsafe wake(workers[index])
      count += 1
    }
    for index in (1..<max(capacity, 1)).reversed() where count > active && isGeneral(index) {
      // SAFETY: as above.
      setAway(index, WEFT_AWAY_RETIRED)
      // It may sleep with something in its inbox that was sent there just before.
      unsafe wake(workers[index])
      count -= 1
    }
  }

  /// A worker that a fiber was placed on by number may have no thread yet.
  func ensureThread(_ index: Int) {
    // ORDERING: acquire; a worker that was general, or has run, has one.
    if isGeneral(index) || (hasVisitor && index == 0) { return }
    do throws(SchedulerError) {
      try lifeLock.withLock { () throws(SchedulerError) in
        if !isStopping { try startThreadLocked(index) }
      }
    } catch {
      fatalError("weft: \(error)")
    }
  }

  /// On a worker that takes no general work: gives what is in its queue to those that do. Fibers
  /// that are pinned to it stay. False if it does take general work.
  @discardableResult
  func handOver(_ worker: Worker) -> Bool {
    // SAFETY: on the worker's own thread.
    if unsafe !isAway(worker) { return false }
    let queue = unsafe weft_worker_queue(worker)
    while unsafe weft_word_load_relaxed(weft_worker_queue_count(worker)) != 0 {
      var taken: UInt64 = 0
      unsafe weft_queue_lock(queue)
      var chain = unsafe weft_queue_cut(queue, 64, migratesStarted, &taken)
      unsafe weft_queue_unlock(queue)
      if taken == 0 { return true }
      while let record = unsafe chain {
        unsafe chain = record.pointee.next
        unsafe inject(record, near: nil)
      }
    }
    return true
  }

  // MARK: - Exclusive placement

  /// Gives a new fiber a worker of its own and queues it there, or lets it wait for one.
  func placeExclusively(_ record: Record) {
    // SAFETY: the fiber is new, and ours until it is queued.
    unsafe record.pointee.flags |= .pinned | .exclusive
    let placed = lifeLock.withLock { () -> Bool in
      let candidates = exclusiveCandidates()
      let taken = exclusiveCount
      guard let index = policy.exclusiveWorker(from: candidates), candidates.contains(index) else {
        // Those that end free theirs; where there are none it would wait for ever.
        if taken == 0 { fatalError("weft: \(SchedulerError.noExclusiveWorker)") }
        unsafe exclusiveLine.append(record.cell)
        return false
      }
      do throws(SchedulerError) {
        try startThreadLocked(index)
      } catch {
        fatalError("weft: \(error)")
      }
      setAway(index, WEFT_AWAY_EXCLUSIVE)
      // SAFETY: the caller holds the record, which is not queued yet.
      unsafe weft_fiber_set_home(record, workers[index])
      // Another one steps in for it, if there is one to spare.
      rebalance(within: workersLimit)
      return true
    }
    if placed { unsafe makeRunnable(record) }
  }

  /// Workers that may be taken, the best first. GUARDED BY: lifeLock
  private func exclusiveCandidates() -> [Int] {
    let free = (1..<max(capacity, 1)).reversed().filter { !isExclusive($0) }
    let general = free.filter(isGeneral)
    // One look at each: one that falls asleep between two looks would be in neither list.
    let asleep = general.filter(isAsleep)
    let shared = asleep + general.filter { !asleep.contains($0) }
    let retired = free.filter { !isGeneral($0) }
    return generalCount + exclusiveCount < workersLimit ? retired + shared : shared + retired
  }

  /// The exclusive fiber of this worker is about to end.
  func releaseExclusive(_ worker: Worker) {
    let next = lifeLock.withLock { () -> FiberCell? in
      if !exclusiveLine.isEmpty {
        let next = exclusiveLine.removeFirst()
        // SAFETY: it is in no queue yet.
        unsafe weft_fiber_set_home(next.pointer, worker)
        return next
      }
      setAway(unsafe Int(worker.pointee.index), WEFT_AWAY_RETIRED)
      rebalance(within: workersLimit)
      return nil
    }
    if let next { unsafe makeRunnable(next.pointer) }
  }
}

extension UInt64 {
  /// The place of the set bit that has `rank` set bits below it.
  func indexOfSetBit(_ rank: Int) -> Int {
    var bits = self
    for _ in 0..<rank { bits &= bits &- 1 }
    return bits.trailingZeroBitCount
  }
}
