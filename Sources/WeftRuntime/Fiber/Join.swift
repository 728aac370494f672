import CWeft
import WeftContext

// Joining. A record's `joiners` is a list of those who wait for its end, or the mark that it has
// ended. Its entries are told apart by their low bits:
//
//     0                 nobody
//     1                 ended
//     record            a fiber, linked through its `next` (it is in no queue while it waits)
//     node | 2          a plain thread, or a fiber with a time limit
//     list | 4          somebody is taking a node out (spin)
//
// An untimed join is never cancelled, so a fiber in the list needs no wait of its own: the push
// happens after the switch away, and whoever takes the list finds it parked.

let endedMark: UInt = 1
private let nodeTag: UInt = 2
private let busyTag: UInt = 4

package typealias JoinNode = UnsafeMutablePointer<weft_join_node>

/// Whether the fiber has ended, and its outcome may be read.
package func hasEnded(_ record: Record) -> Bool {
  // SAFETY: the caller has a reference.
  // ORDERING: acquire, paired with the exchange in publishEnd.
  unsafe weft_link_load_acquire(weft_fiber_joiners(record)) == endedMark
}

/// Adds an entry, whose link `setNext` writes. False if the fiber has ended.
private func push(_ entry: UInt, to target: Record, setNext: (UInt) -> Void) -> Bool {
  // SAFETY: the caller keeps the target alive, by a handle.
  // ORDERING: acquire: who finds the end mark may read the outcome; paired with publishEnd.
  let joiners = unsafe weft_fiber_joiners(target)
  var list = unsafe weft_link_load_acquire(joiners)
  while true {
    if list == endedMark { return false }
    if list & busyTag != 0 {
      weft_pause()
      unsafe list = weft_link_load_acquire(joiners)
      continue
    }
    setNext(list)
    // ORDERING: release, paired with the exchange that takes the list.
    if unsafe weft_link_compare_exchange(joiners, &list, entry) { return true }
  }
}

/// After the switch away from `fiber`: makes it wait for `target`.
func addJoiner(_ fiber: Record, to target: Record) -> Bool {
  // SAFETY: the switch away is done and nobody else knows that the fiber waits: its link is ours
  // until the push succeeds, and not touched after.
  unsafe push(UInt(bitPattern: fiber), to: target) { list in
    unsafe fiber.pointee.next = Record(bitPattern: list)
  }
}

package func addNode(_ node: JoinNode, to target: Record) -> Bool {
  // SAFETY: the node lies on the caller's stack, which stays until it is taken out or served.
  unsafe push(UInt(bitPattern: node) | nodeTag, to: target) { unsafe node.pointee.next = $0 }
}

/// Takes a node out again whose time is up. False if the fiber has ended: its node is being, or has
/// been, served.
package func removeNode(_ node: JoinNode, from target: Record) -> Bool {
  // SAFETY: the caller keeps the target alive, and the node is its own.
  // ORDERING: the swap that sets the busy mark acquires the entries, as publishEnd does.
  let joiners = unsafe weft_fiber_joiners(target)
  let entry = UInt(bitPattern: node) | nodeTag
  var list = unsafe weft_link_load_acquire(joiners)
  while true {
    if list == endedMark { return false }
    if list & busyTag != 0 {
      weft_pause()
      unsafe list = weft_link_load_acquire(joiners)
    } else if unsafe weft_link_compare_exchange(joiners, &list, list | busyTag) {
      break
    }
  }
  // SAFETY: while the list is busy nobody changes it, and its entries are parked or asleep.
  var head = list
  if head == entry {
    unsafe head = node.pointee.next
  } else {
    var previous = head
    while linkAfter(previous) != entry { previous = linkAfter(previous) }
    unsafe setLink(after: previous, to: node.pointee.next)
  }
  // ORDERING: release, paired with the next compare-and-swap or exchange.
  unsafe weft_link_store_release(joiners, head)
  return true
}

private func linkAfter(_ entry: UInt) -> UInt {
  // SAFETY: the caller has the list to itself, by the busy mark or by taking it; who waits in it
  // stays, and with it the link.
  if entry & nodeTag != 0 {
    return unsafe JoinNode(bitPattern: entry & ~nodeTag).unsafelyUnwrapped.pointee.next
  }
  return unsafe UInt(bitPattern: Record(bitPattern: entry).unsafelyUnwrapped.pointee.next)
}

private func setLink(after entry: UInt, to next: UInt) {
  // SAFETY: as in linkAfter.
  if entry & nodeTag != 0 {
    unsafe JoinNode(bitPattern: entry & ~nodeTag).unsafelyUnwrapped.pointee.next = next
  } else {
    unsafe Record(bitPattern: entry).unsafelyUnwrapped.pointee.next = Record(bitPattern: next)
  }
}

/// Marks the fiber as ended and wakes those who wait for it.
///
/// - Returns: one of them that may run right here, instead of going through the queue.
func publishEnd(_ record: Record, _ worker: Worker) -> Record? {
  // SAFETY: runs as the fiber that ends; the run's reference keeps its record alive.
  if unsafe record.pointee.flags & .child != 0 { return unsafe childEnded(record, worker) }
  let joiners = unsafe weft_fiber_joiners(record)
  var list = unsafe weft_link_load_acquire(joiners)
  while true {
    if list & busyTag != 0 {
      weft_pause()
      unsafe list = weft_link_load_acquire(joiners)
      continue
    }
    // SAFETY: from here on the entries are ours: each link is read before whoever it belongs to is
    // let go.
    // ORDERING: acquire-release; it releases the outcome to hasEnded, and acquires the entries.
    if unsafe weft_link_compare_exchange(joiners, &list, endedMark) { break }
  }
  var direct: Record?
  while list != 0 {
    let entry = list
    list = linkAfter(entry)
    if entry & nodeTag != 0 {
      unsafe serve(unsafe JoinNode(bitPattern: entry & ~nodeTag).unsafelyUnwrapped)
      continue
    }
    // SAFETY: it is parked, in no queue, and out of the list: this thread holds it.
    let fiber = unsafe Record(bitPattern: entry).unsafelyUnwrapped
    if unsafe direct == nil && mayRun(fiber, on: worker) {
      unsafe weft_fiber_set_home(fiber, worker)
      unsafe direct = fiber
    } else {
      unsafe makeRunnable(fiber)
    }
  }
  return unsafe direct
}

/// Whether a fiber that waits may go on right here.
func mayRun(_ fiber: Record, on worker: Worker) -> Bool {
  // SAFETY: the caller holds the fiber; its home's memory lives as long as its scheduler has
  // fibers.
  let home = unsafe fiber.pointee.home.unsafelyUnwrapped
  return unsafe home.pointee.pool == worker.pointee.pool
    && (fiber.pointee.flags & .pinned == 0
      ? weft_word_load_relaxed(weft_worker_away(worker)) == 0 : home == worker)
}

private func serve(_ node: JoinNode) {
  // SAFETY: whoever the node belongs to does not leave before `done` is set.
  // ORDERING: release, paired with the acquire loads of the two that wait for it below.
  if let record = unsafe node.pointee.record {
    unsafe perform(unsafe record.wake(number: node.pointee.number, reason: .woken), unsafe record)
  }
  // The last touch: the node is on the stack of one that goes on now. Waking an address that is
  // nobody's any more is harmless.
  if unsafe node.pointee.record == nil && node.pointee.number != 0 { weft_threads_unblock() }
  if let thread = unsafe node.pointee.thread {
    // It waits for other things too: whoever comes first ends its wait, and need not tell it more.
    var expected = UInt64(WEFT_SLEEP_WAITS)
    _ = unsafe weft_word_compare_exchange(thread, &expected, UInt64(WEFT_SLEEP_RELEASED))
    unsafe weft_futex_wake(thread, 1)
  }
  let done = unsafe weft_join_node_done(node)
  unsafe weft_word_store_release(done, 1)
  unsafe weft_futex_wake(done, 1)
}

// MARK: - The three ways to join

/// From a fiber: the first step. Nil if it has ended already.
@usableFromInline
func prepareJoin(_ target: Record, _ worker: Worker) -> Record? {
  // SAFETY: runs as the fiber that joins, on this worker's own thread; its handle keeps the target
  // alive.
  if unsafe hasEnded(target) { return nil }
  let current = unsafe worker.pointee.current
  if unsafe current == target { unsafe joinedItself(target) }
  unsafe current.pointee.cold.pointee.wait_reason = ParkReason.join.rawValue
  unsafe current.pointee.cold.pointee.wait_object = UnsafeMutableRawPointer(target)
  if unsafe current.pointee.cold.pointee.registry_shard == 0 { unsafe register(current, worker) }
  if unsafe worker.pointee.direct == 0 { unsafe noteQueueLength(worker) }
  let next = unsafe takeDirectly(target, worker) ?? pickNext(worker)
  unsafe worker.pointee.previous = current
  unsafe worker.pointee.after_argument = UnsafeMutableRawPointer(target)
  unsafe worker.pointee.after = UInt32(WEFT_AFTER_JOIN)
  unsafe leave(worker)
  return unsafe next
}

private func joinedItself(_ record: Record) -> Never {
  // SAFETY: the running fiber's own record; the site names constants of the program.
  var site = unsafe record.pointee.site
  unsafe weft_fatal("a fiber joined itself", &site, "Join it from another fiber.")
}

/// From a plain thread: blocks it.
@usableFromInline
func joinFromThread(_ target: Record, until: UInt64 = .max) -> Bool {
  // SAFETY: the caller's handle keeps the target alive. The node lies on this stack, and this
  // returns only when it is out of the list, or served.
  // ORDERING: acquire, paired with the release in serve.
  if unsafe hasEnded(target) { return true }
  unsafe refuseAfterFork(of: target)
  var node = unsafe weft_join_node()
  return unsafe withUnsafeMutablePointer(to: &node) { node in
    let done = unsafe weft_join_node_done(node)
    // What blocks until a fiber ends can't wake one: a deadlock report may count on that.
    let counts = until == never && weft_threads_block()
    unsafe node.pointee.number = counts ? 1 : 0
    if unsafe !addNode(node, to: target) {
      if counts { weft_threads_unblock() }
      return true
    }
    // SAFETY: as above.
    while unsafe weft_word_load_acquire(done) == 0 {
      let left = timeLeft(until: until)
      if left == 0 {
        if unsafe removeNode(node, from: target) { return false }
        // Served at this very moment.
        while unsafe weft_word_load_acquire(done) == 0 { weft_pause() }
        return true
      }
      unsafe weft_futex_wait(done, 0, left)
    }
    return true
  }
}

/// From a fiber, with a time limit, and cancellable.
func joinFromFiber(_ target: Record, _ worker: Worker, until: UInt64) -> WakeReason {
  // SAFETY: runs as the fiber that joins; its handle keeps the target alive. The node lies on this
  // stack, and this returns only when it is out of the list, or served.
  // ORDERING: acquire, paired with the release in serve.
  let current = unsafe worker.pointee.current
  if unsafe current == target { unsafe joinedItself(target) }
  var node = unsafe weft_join_node()
  unsafe node.record = current
  unsafe node.number = current.waitNumber
  return unsafe withUnsafeMutablePointer(to: &node) { node in
    if unsafe !addNode(node, to: target) {
      return .woken
    }
    var reason = unsafe suspend(
      worker, flags: cancellableFlag(current), reason: .join, object: target, until: until)
    // It may run on with the target alive: a dump must not take it for one that waits.
    unsafe current.pointee.cold.pointee.wait_reason = ParkReason.none.rawValue
    if reason != .woken, unsafe !removeNode(node, from: target) { reason = .woken }
    if reason == .woken {
      // The node is on this stack: whoever ended the fiber must have let go of it.
      let done = unsafe weft_join_node_done(node)
      while unsafe weft_word_load_acquire(done) == 0 { weft_pause() }
    }
    return reason
  }
}
