import CWeft

// A group of fibers that none of them outlives.
//
//     body                                   child
//     ----                                   -----
//     spawn: `spawned` + 1, queue it         runs
//     next:  take over the ready list        ends: appends itself to the ready list, `ended` + 1,
//            empty: note who waits and for         and wakes the body if `ended` has reached
//            which `ended`, and park               `target`, all under the lock
//     close: wait until all have ended
//
// The body's fiber can't leave the group while a child holds the lock, since it takes the same lock
// to see that child: so the wake of the wait word happens inside it. After the unlock the child
// touches nothing of the group.
//
// Children that have parked are enlisted here, so that cancellation finds them; one that never
// parks pays nothing. Those that are not enlisted look at `cancelled` when they ask whether they
// are cancelled, and again when they enlist.

typealias Group = UnsafeMutablePointer<weft_group>

/// The part of a group that knows no types, and the owner of its record.
// SAFETY: cweft_fiber.h and the notes below say what guards what.
@usableFromInline
@safe
final class GroupCore: @unchecked Sendable {
  /// First, so that a record's object is found 16 bytes before it.
  @exclusivity(unchecked)
  final var record: weft_group
  /// The fiber that opened it; nil on a plain thread.
  final let parent: FiberCell?
  /// The next group of the same fiber. GUARDED BY: the lock of the fiber's scopes
  @exclusivity(unchecked)
  final var outer: GroupCore?
  /// What the group throws at its end. GUARDED BY: record.lock
  @exclusivity(unchecked)
  final var firstError: (any Error)?

  init(parent: FiberCell?, collects: Bool) {
    // SAFETY: nobody else has the object yet; zeros are a value of each field.
    unsafe record = weft_group()
    unsafe record.target = .max
    unsafe record.collects = collects ? 1 : 0
    let scope = unsafe weft_current_scope()
    unsafe record.shields = scope.pointee.shields
    unsafe record.deadline = scope.pointee.deadline
    self.parent = parent
  }

  final var pointer: Group {
    // SAFETY: the object's header is two words, and the record follows it (checked by a test).
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_group.self)
  }

  final var isFailing: Bool {
    // SAFETY: `self` keeps the record alive.
    // ORDERING: acquire, paired with the exchange in fail(_:).
    unsafe weft_word_load_acquire(weft_group_failing(pointer)) != 0
  }

  @usableFromInline
  final var isCancelled: Bool { unsafe hasCancelled(pointer) }  // SAFETY: `self` keeps it

  // MARK: - Cancelling

  /// Cancels the children of groups, of their groups, and so on: with a list of what is left to do,
  /// since fibers nest deeper than stacks.
  static func cancel(_ groups: [GroupCore]) {
    // SAFETY: markCancelled gives references, which keep the records alive.
    var left = groups
    while let group = left.popLast() {
      for child in group.markCancelled() {
        unsafe perform(unsafe child.pointer.cancelWait(), unsafe child.pointer)
        left.append(contentsOf: child.groups(openedAtShields: 0))
      }
    }
  }

  /// The children that have parked; none if it was cancelled before.
  private func markCancelled() -> [FiberCell] {
    // SAFETY: `self` keeps the record alive, and its lock guards the list.
    let lock = unsafe weft_group_lock(pointer)
    unsafe lock.lock()
    defer { unsafe lock.unlock() }
    // ORDERING: the exchange is sequentially consistent: children see it by an acquire load.
    if unsafe weft_word_exchange(weft_group_cancelled(pointer), 1) != 0 { return [] }
    var children: [FiberCell] = []
    var child = unsafe record.enlisted
    while let found = unsafe child {
      // SAFETY: enlisted, so its run still holds a reference.
      unsafe children.append(found.cell)
      unsafe child = found.pointee.cold.pointee.sibling_next
    }
    return children
  }

  // MARK: - Failing

  /// Notes an error of a child. The first one cancels the others and ends the body's waits.
  func childFailed(_ error: any Error) {
    guard note(error) else { return }
    GroupCore.cancel([self])
    parent?.interrupt(because: self)
  }

  /// Notes the error that the body threw.
  func bodyFailed(_ error: any Error) {
    _ = note(error)
    GroupCore.cancel([self])
  }

  private func note(_ error: any Error) -> Bool {
    // SAFETY: `self` keeps the record alive, and its lock guards the error.
    // ORDERING: sequentially consistent; paired with isFailing.
    let lock = unsafe weft_group_lock(pointer)
    unsafe lock.lock()
    defer { unsafe lock.unlock() }
    if unsafe firstError != nil { return false }
    unsafe firstError = error
    _ = unsafe weft_word_exchange(weft_group_failing(pointer), 1)
    return true
  }
}

extension UnsafeMutablePointer where Pointee == weft_group {
  var core: GroupCore {
    // SAFETY: every record of a group is part of a GroupCore.
    unsafe Unmanaged<GroupCore>.fromOpaque(UnsafeMutableRawPointer(self) - 16)
      .takeUnretainedValue()
  }
}

/// Whether the group's children count as cancelled: it is marked so, or its time is up.
private func hasCancelled(_ group: Group) -> Bool {
  // SAFETY: the caller has a reference to the group, or is a child, which the group outlives.
  unsafe hasCancelled(group, at: timeToCompare(with: group.pointee.deadline))
}

private func hasCancelled(_ group: Group, at now: UInt64) -> Bool {
  // SAFETY: as above.
  // ORDERING: acquire, paired with the exchange in markCancelled.
  unsafe weft_word_load_acquire(weft_group_cancelled(group)) != 0 || group.pointee.deadline <= now
}

// MARK: - The child's side

/// Whether the fiber is a child of a group that is cancelled, or whose deadline is not after `now`.
func isInCancelledGroup(_ record: Record, at now: UInt64) -> Bool {
  // SAFETY: the caller is the fiber; flag and group are constant once it is queued, and the group
  // outlives it.
  guard unsafe record.pointee.flags & .child != 0, let group = unsafe record.pointee.group else {
    return false
  }
  return unsafe hasCancelled(group, at: now)
}

/// At a child's first park: from now on cancellation finds it.
func enlist(_ record: Record) {
  // SAFETY: runs as the child, which the group outlives; the group's lock guards the list and the
  // links, and who is in it has not ended.
  let group = unsafe record.pointee.group.unsafelyUnwrapped
  let lock = unsafe weft_group_lock(group)
  unsafe lock.lock()
  let first = unsafe group.pointee.enlisted
  unsafe record.pointee.cold.pointee.sibling_next = first
  unsafe record.pointee.cold.pointee.sibling_previous = nil
  unsafe first?.pointee.cold.pointee.sibling_previous = record
  unsafe group.pointee.enlisted = record
  unsafe record.pointee.flags |= .enlisted
  let cancelled = unsafe hasCancelled(group)
  unsafe lock.unlock()
  if cancelled { _ = unsafe record.cancelWait() }
}

/// Called under the group's lock.
private func delist(_ record: Record, from group: Group) {
  // SAFETY: under the lock, those in the list have not ended, and so have their cold parts.
  let next = unsafe record.pointee.cold.pointee.sibling_next
  let previous = unsafe record.pointee.cold.pointee.sibling_previous
  unsafe next?.pointee.cold.pointee.sibling_previous = previous
  if let previous = unsafe previous {
    unsafe previous.pointee.cold.pointee.sibling_next = next
  } else {
    unsafe group.pointee.enlisted = next
  }
}

/// A child's closure threw. Runs as the child, before its end.
@usableFromInline
func childThrew(_ record: Record, _ error: any Error) {
  // SAFETY: the group outlives its children.
  let group = unsafe record.pointee.group.unsafelyUnwrapped
  let worker = unsafe weft_worker_current().unsafelyUnwrapped
  if error is CancellationError,
    unsafe hasCancelled(group) || SharedWords(of: worker).isCancelling
  {
    unsafe record.pointee.flags |= .provoked
  } else if unsafe group.pointee.collects == 0 {
    unsafe group.core.childFailed(error)
  }
}

/// A child has ended: hands its record, and with it the group's reference, to the body.
///
/// - Returns: the body's fiber, if it waited for this one and may run right here.
func childEnded(_ record: Record, _ worker: Worker) -> Record? {
  // SAFETY: the group outlives the child until the unlock: its body takes this lock to see the
  // child. The run's reference keeps the record alive after. Its link is free, as it is in no
  // queue.
  let group = unsafe record.pointee.group.unsafelyUnwrapped
  let lock = unsafe weft_group_lock(group)
  unsafe record.pointee.next = nil
  unsafe lock.lock()
  if unsafe record.pointee.flags & .enlisted != 0 { unsafe delist(record, from: group) }
  if let tail = unsafe group.pointee.ready_tail {
    unsafe tail.pointee.next = record
  } else {
    unsafe group.pointee.ready_head = record
  }
  unsafe group.pointee.ready_tail = record
  unsafe group.pointee.ended = group.pointee.ended + 1
  // ORDERING: release, paired with hasEnded. A child has no joiners, so a store will do.
  unsafe weft_link_store_release(weft_fiber_joiners(record), endedMark)
  // SAFETY: still under the lock.
  guard unsafe group.pointee.ended == group.pointee.target else {
    unsafe lock.unlock()
    return nil
  }
  unsafe group.pointee.target = .max
  guard let waiter = unsafe group.pointee.waiter else {
    let woken = unsafe weft_group_woken(group)
    // ORDERING: release, paired with the acquire load in the thread's loop.
    unsafe weft_word_store_release(woken, 1)
    unsafe lock.unlock()
    // Waking an address that is nobody's any more is harmless.
    unsafe weft_futex_wake(woken, 1)
    return nil
  }
  // SAFETY: the waiter does not go on before this lock is free: it notes itself, and gives up its
  // wait, under it.
  let duty = unsafe waiter.wake(number: group.pointee.waiter_number, reason: .woken)
  unsafe lock.unlock()
  guard case .resume = duty else { return nil }
  // SAFETY: the wake is won, so the waiter is parked, in no queue, and ours.
  // ORDERING: relaxed; the worker's own count.
  if unsafe weft_word_load_relaxed(weft_worker_queue_count(worker)) == 0,
    unsafe mayRun(waiter, on: worker)
  {
    unsafe weft_fiber_set_home(waiter, worker)
    return unsafe waiter
  }
  // Behind those that are runnable: they may be its children, whose results it then finds at once.
  unsafe makeRunnable(waiter)
  return nil
}
