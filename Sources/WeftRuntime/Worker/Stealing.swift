import CWeft

/// Some 10 µs, and 4.
let spinRoundsMost = 240
let spinNanoseconds: UInt64 = 10_000
private let spinRoundsLeast = 97
/// Time does not pass while a simulated thread spins.
private let spinRoundsSimulated = 3
/// Rounds from one look at the queues of others to the next.
private var stealRounds: Int { Seam.isSimulated ? 1 : 32 }

/// What a search saw of another worker: its switches at first, its queue's length at last.
struct Look {
  var tick: UInt64 = .max
  var count: UInt64 = 0
}

/// Of each worker, by its index; of those with higher ones a search remembers nothing.
typealias Looks = UnsafeMutableBufferPointer<Look>
/// 1 KiB, the most that is sure to lie on the stack.
private let looksMost = 64

/// As many fibers are worth a steal in any case, and are what it takes at most.
let stealMost: UInt64 = 256

// Queues that turn over. Fibers that hand each other elements run for some hundred nanoseconds at a
// time, and together they are in one cache: to take half of them away makes all of them slower, and
// they gather again where they wake each other. So a short queue whose worker switches all the time
// is left alone at first, and where all that were in it have had their turn since the search began,
// it is marked as turning: its worker wakes nobody for it, and a searcher takes a nap, as it does
// over a lone fiber. Should it still be so after some searches, 2 ms later, half of it is taken:
// they may have nothing to do with each other.

/// Longer queues are work enough for two, however fast they turn over.
let turningMost: UInt64 = 16
/// Searches in a row that leave such a queue alone.
private let patienceMost: UInt64 = 6

/// Whether a search found so, and the queue is still short.
func isTurning(_ worker: Worker, _ count: UInt64) -> Bool {
  // SAFETY: an atomic word of a worker, which lives as long as its scheduler, and so the caller.
  // ORDERING: relaxed; a hint, which a nap later is looked at again.
  unsafe count < turningMost && weft_word_load_relaxed(weft_worker_turning(worker)) != 0
}

func markTurning(_ worker: Worker, _ isTurning: Bool) {
  // SAFETY: as above.
  // ORDERING: relaxed; a hint. Written only where it changes: its line is the owner's.
  let word = unsafe weft_worker_turning(worker)
  let value: UInt64 = isTurning ? 1 : 0
  if unsafe weft_word_load_relaxed(word) != value { unsafe weft_word_store_relaxed(word, value) }
}

/// Whether a search leaves another worker's queue alone, from which there have been so many
/// switches since it began.
private func leavesAlone(
  _ victim: Worker, _ worker: Worker, count: UInt64, switches: UInt64, last: Bool
) -> Bool {
  // SAFETY: on the searcher's own thread, which alone uses `patience`.
  if count >= turningMost || switches < 2 {
    unsafe markTurning(victim, false)
    return false
  }
  if !last { return true }
  let leaves = unsafe switches >= count && worker.pointee.patience < patienceMost
  unsafe markTurning(victim, leaves)
  unsafe worker.pointee.patience = leaves ? worker.pointee.patience + 1 : 0
  return leaves
}

extension SchedulerCore {
  /// A short spin over everybody's queues. One that finds nothing makes the next one shorter, one
  /// that does, longer: a worker whose fibers come back within microseconds is there when they do,
  /// and one that is woken by timers does not heat the room in between.
  func search(_ worker: Worker) -> Bool {
    // SAFETY: called on the worker's own thread, which alone uses its `spin_rounds`.
    let rounds = unsafe Seam.isSimulated ? spinRoundsSimulated : Int(worker.pointee.spin_rounds)
    if unsafe fireTimers(of: worker) { return true }
    // Not an array: a search must not fail for want of memory, nor take a lock of malloc's.
    let found = unsafe withUnsafeTemporaryAllocation(of: Look.self, capacity: looksMost) { looks in
      unsafe looks.initialize(repeating: Look())
      return unsafe spin(worker, rounds: rounds, looks)
    }
    let next = found ? min(rounds * 2, spinRoundsMost) : max(rounds / 2, spinRoundsLeast)
    unsafe worker.pointee.spin_rounds = UInt64(next)
    return found
  }

  private func spin(_ worker: Worker, rounds: Int, _ looks: Looks) -> Bool {
    // SAFETY: called on the worker's own thread.
    let away = unsafe isAway(worker)
    var seen = SeenOffer()
    for round in 0..<rounds {
      if unsafe hasWorkOfItsOwn(worker) || isStopping { return true }
      if !away {
        // Some looks at each of the others in turn. SAFETY: as above.
        let victim = unsafe workers[
          (Int(worker.pointee.index) + 1 + round / SeenOffer.looks) % capacity]
        if capacity > 2, round % SeenOffer.looks == 0 { seen.times = 0 }
        if unsafe victim != worker, unsafe takeOffer(from: victim, worker, seen: &seen) {
          return true
        }
        // SAFETY: as above.
        if round % stealRounds == 0,
          unsafe steal(worker, looks, last: round + stealRounds >= rounds)
        {
          return true
        }
      }
      for _ in 0..<4 { weft_pause() }
    }
    return false
  }

  /// Takes fibers from another worker into this one's queue. True if it got any.
  ///
  /// A steal stops the victim for some microseconds, so it should be worth it: a queue that has
  /// grown since the look before is left to grow until there is enough, or this is the `last` look
  /// of a search. Then a lone fiber is taken too, from a victim that has not switched since the
  /// first look.
  func steal(_ worker: Worker, _ looks: Looks, last: Bool) -> Bool {
    // SAFETY: runs on the thief's own thread, which alone writes `random`; of the victim only
    // atomic words are read. Its memory lives as long as this object.
    unsafe worker.pointee.random =
      worker.pointee.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    let start = unsafe Int((worker.pointee.random >> 33) % UInt64(capacity))
    for offset in 0..<capacity {
      let index = (start + offset) % capacity
      let victim = unsafe workers[index]
      if unsafe victim == worker { continue }
      if unsafe takeInbox(weft_worker_inbox(victim), worker) { return true }
      // ORDERING: relaxed; hints. The victim's lock, or the swap of an offer, orders what is taken.
      let count = unsafe weft_word_load_relaxed(weft_worker_queue_stealable(victim))
      let tick = unsafe weft_word_load_relaxed(weft_worker_tick(victim))
      // SAFETY: this search's own memory.
      let known = unsafe index < looks.count ? looks[index] : Look()
      if index < looks.count {
        unsafe looks[index].count = count
        if known.tick == .max { unsafe looks[index].tick = tick }
      }
      let takesAll = debug.contains(.steal)
      let isStill = takesAll || last && known.tick == tick
      // SAFETY: as above.
      let held = unsafe isStill ? weft_link_load_relaxed(weft_worker_offer(victim)) : 0
      if held != 0, unsafe takeOffer(held, from: victim, worker) { return true }
      if count == 0 { continue }
      // SAFETY: as above.
      if count >= 2, !takesAll, known.tick != .max,
        unsafe leavesAlone(victim, worker, count: count, switches: tick &- known.tick, last: last)
      {
        continue
      }
      let isWorth =
        count >= stealMost || count >= 2 && (last || count <= known.count)
        || isStill
      // SAFETY: runs on the thief's own thread.
      if isWorth, unsafe cut(victim, worker, count) { return true }
    }
    return false
  }

  /// Half of the victim's queue, up to a limit. A steal costs both sides some microseconds, most of
  /// them for the membarrier, so that from a long queue it should bring many; and each costs some
  /// nanoseconds under the lock, while the victim waits.
  private func cut(_ victim: Worker, _ worker: Worker, _ count: UInt64) -> Bool {
    // SAFETY: between lock and unlock the victim's queue is ours; the fibers of the chain are in no
    // queue any more, so that this thread holds them.
    // ORDERING: the lock's; cweft_fiber.h has the argument.
    let queue = unsafe weft_worker_queue(victim)
    guard unsafe weft_queue_lock_thief(queue) else { return false }
    var taken: UInt64 = 0
    let share = debug.contains(.steal) ? count : (count + 1) / 2
    var chain = unsafe weft_queue_cut(
      queue, min(share, debug.stealMost), migratesStarted, &taken)
    unsafe weft_queue_unlock_thief(queue)
    while let record = unsafe chain {
      unsafe chain = record.pointee.next
      unsafe pushLocal(record, worker)
    }
    unsafe weft_word_bump(weft_worker_stolen(worker), taken)
    return taken > 0
  }
}
