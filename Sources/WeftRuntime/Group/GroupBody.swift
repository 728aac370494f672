import CWeft
import WeftContext

// The body's side of a group. Only whoever runs the body calls these.

/// Opens a group around the running code.
@usableFromInline
func openGroup(collects: Bool) -> GroupCore {
  // SAFETY: runs on this worker's own thread, as its current fiber.
  guard let worker = unsafe weft_worker_current() else {
    return GroupCore(parent: nil, collects: collects)
  }
  let current = unsafe worker.pointee.current
  let cell = unsafe current.cell
  let core = GroupCore(parent: cell, collects: collects)
  // A child that has a group of its own must be found by the cancellation of its siblings.
  if unsafe current.pointee.cold.pointee.registry_shard == 0 { unsafe register(current, worker) }
  cell.push(core)
  // After the push: a cancellation either saw the group, or is seen here.
  if unsafe isCancelledHere(worker) { GroupCore.cancel([core]) }
  return core
}

/// Waits for the children that are left and closes the group.
///
/// - Suspension: parks or blocks until they have ended. Not cancellable.
/// - Returns: what the group throws.
@usableFromInline
func closeGroup(_ core: GroupCore, bodyError: (any Error)?) -> (any Error)? {
  if let bodyError { core.bodyFailed(bodyError) }
  discardChildren(core)
  core.parent?.remove(core)
  return unsafe core.firstError
}

/// Waits until all children have ended, and releases what they returned.
@usableFromInline
func discardChildren(_ core: GroupCore) {
  // SAFETY: the body's own fields; the core is alive.
  let group = unsafe core.pointer
  while unsafe group.pointee.taken < group.pointee.spawned {
    // SAFETY: the record's reference is handed to us.
    if let record = unsafe takeReady(group) {
      // Here, not when its worker drops the last reference, which may be after the group's end.
      unsafe record.releaseOutcome()
      unsafe record.unmanagedCell.release()
    } else {
      _ = unsafe waitForEnds(group, until: group.pointee.spawned, flags: 0)
    }
  }
}

/// The oldest child that has ended and was not handed out; its reference goes to the caller.
private func takeReady(_ group: Group) -> Record? {
  // SAFETY: runs as the body, to which these fields belong. The records in its list have ended, and
  // the group's reference keeps each alive.
  if unsafe group.pointee.own_head == nil, unsafe !takeOver(group) { return nil }
  let record = unsafe group.pointee.own_head.unsafelyUnwrapped
  unsafe group.pointee.own_head = record.pointee.next
  // No "+=": the thread sanitizer takes it for a write to the whole record.
  unsafe group.pointee.taken = group.pointee.taken + 1
  return unsafe record
}

/// Moves what has ended to the body's own list. False if there is nothing.
private func takeOver(_ group: Group) -> Bool {
  // SAFETY: the ready list is guarded by the lock; the own list is the body's, which runs here.
  let lock = unsafe weft_group_lock(group)
  unsafe lock.lock()
  let head = unsafe group.pointee.ready_head
  let tail = unsafe group.pointee.ready_tail
  unsafe group.pointee.ready_head = nil
  unsafe group.pointee.ready_tail = nil
  unsafe lock.unlock()
  guard let head = unsafe head else { return false }
  if unsafe group.pointee.own_head == nil {
    unsafe group.pointee.own_head = head
  } else {
    unsafe group.pointee.own_tail.unsafelyUnwrapped.pointee.next = head
  }
  unsafe group.pointee.own_tail = tail
  return true
}

/// Waits until so many children have ended since the group was opened.
private func waitForEnds(_ group: Group, until target: UInt64, flags: UInt64) -> WakeReason {
  // SAFETY: runs as the body; the lock guards who waits and for what. The group lives on, as its
  // body does not leave it.
  // ORDERING: relaxed; the lock publishes the zero to the child that sets the word.
  let worker = unsafe weft_worker_current()
  let current = unsafe worker?.pointee.current
  let lock = unsafe weft_group_lock(group)
  unsafe lock.lock()
  if unsafe group.pointee.ended >= target {
    unsafe lock.unlock()
    return .woken
  }
  unsafe group.pointee.waiter = current
  unsafe group.pointee.waiter_number = current?.waitNumber ?? 0
  unsafe group.pointee.target = target
  unsafe weft_word_store_relaxed(weft_group_woken(group), 0)
  unsafe lock.unlock()
  // SAFETY: as above. After the switch the old worker is not used.
  let reason =
    if let worker = unsafe worker {
      unsafe suspend(worker, flags: flags, reason: .group, object: group)
    } else {
      unsafe blockThread(
        unsafe weft_group_woken(group),
        until: flags & WaitBits.limited == 0 ? never : deadlineInForce())
    }
  if reason != .woken {
    unsafe lock.lock()
    unsafe group.pointee.target = .max
    unsafe lock.unlock()
  }
  return reason
}

private func blockThread(
  _ word: UnsafeMutablePointer<weft_word>, until deadline: UInt64
) -> WakeReason {
  // SAFETY: the word is the group's, which its body keeps while it waits here.
  // ORDERING: acquire, paired with the store in childEnded.
  while unsafe weft_word_load_acquire(word) == 0 {
    let left = timeLeft(until: deadline)
    if left == 0 { return .cancelled }
    unsafe weft_futex_wait(word, 0, left)
  }
  return .woken
}

// MARK: - Next

/// The next child that ends, in the order of their ends; nil if none is left.
///
/// - Throws: `CancellationError` if the fiber was cancelled, unless `uncancellable`. That the group
///   itself fails does not end the wait.
@usableFromInline
func nextChild(_ core: GroupCore, uncancellable: Bool) throws(CancellationError) -> Record? {
  // SAFETY: runs as the body, to which these fields belong.
  let group = unsafe core.pointer
  while true {
    if !uncancellable, isCancelledFromOutside(core) {
      Fiber.yield()  // as in throwIfCancelled
      throw CancellationError()
    }
    if let record = unsafe takeReady(group) { return unsafe record }
    if unsafe group.pointee.taken == group.pointee.spawned { return nil }
    // In a group that fails all children are cancelled, and have to be waited for anyway.
    var flags: UInt64 = 0
    if !uncancellable, !core.isFailing {
      let worker = unsafe weft_worker_current()
      flags = unsafe worker.map { unsafe cancellableFlag($0.pointee.current) } ?? WaitBits.limited
    }
    _ = unsafe waitForEnds(group, until: group.pointee.taken + 1, flags: flags)
    // SWITCH: the worker may be another. A child that ended meanwhile wins over a cancellation.
    if let record = unsafe takeReady(group) { return unsafe record }
  }
}

/// The same, but one that has ended is handed out even if the fiber was cancelled meanwhile.
@usableFromInline
func nextArrivedChild(_ core: GroupCore) throws(CancellationError) -> Record? {
  // SAFETY: runs as the body.
  if let record = unsafe takeReady(core.pointer) { return unsafe record }
  return unsafe try nextChild(core, uncancellable: false)
}

/// Whether anything but the group itself cancels its body.
private func isCancelledFromOutside(_ core: GroupCore) -> Bool {
  // SAFETY: runs on this worker's own thread, as its current fiber.
  // ORDERING: acquire, as in isCancelled.
  if deadlineHasPassed() { return true }
  guard let worker = unsafe weft_worker_current(), unsafe isCancelledHere(worker) else {
    return false
  }
  let current = unsafe worker.pointee.current
  let word = unsafe weft_word_load_acquire(weft_fiber_wait(current))
  if unsafe isCancelledAsFiber(worker, word, at: 0) { return true }
  let cell = unsafe current.cell
  let lock = unsafe weft_fiber_scopes_lock(current)
  unsafe lock.lock()
  defer { unsafe lock.unlock() }
  return cell.hasFailingGroup(besides: core)
}

// MARK: - Spawning

/// A child whose closure the caller puts in; the group's reference is the record's.
@usableFromInline
func makeChild(
  _ core: GroupCore, _ name: String?, _ placement: Placement, _ priority: FiberPriority,
  _ stackSize: StackSize?, _ site: weft_site
) -> Record {
  // SAFETY: the site points to constants of the program.
  // The reference of the handle is the group's.
  let record = unsafe makeFiber(name, placement, priority, stackSize, site)
  // SAFETY: not yet queued, so ours; the group outlives it.
  unsafe record.pointee.flags |= .child
  unsafe record.pointee.group = core.pointer
  if core.isCancelled { _ = unsafe record.cancelWait() }
  unsafe core.pointer.pointee.spawned = core.pointer.pointee.spawned + 1
  return unsafe record
}

@usableFromInline
func launchChild(_ record: Record, _ placement: Placement) {
  // SAFETY: the group's reference keeps it alive: the child may have ended when this returns, and
  // still lies in the list that only we take it from.
  unsafe launch(record, placement)
}

/// Whether fewer than so many children run.
@usableFromInline
func hasRoom(_ core: GroupCore, _ limit: Int) -> Bool {
  // SAFETY: runs as the body; `ended` is read under the lock.
  let group = unsafe core.pointer
  let lock = unsafe weft_group_lock(group)
  unsafe lock.lock()
  let running = unsafe group.pointee.spawned - group.pointee.ended
  unsafe lock.unlock()
  return running < limit
}

/// Whether every child was handed out.
@usableFromInline
func hasNoChildren(_ core: GroupCore) -> Bool {
  // SAFETY: runs as the body, to which these fields belong.
  unsafe core.pointer.pointee.taken == core.pointer.pointee.spawned
}
