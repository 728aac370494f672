import CWeft

// What is open around a fiber's code: the list of its groups, innermost first, in
// `FiberCell.group`. Another thread walks it when it cancels the fiber.
//
// GUARDED BY: the lock of the fiber's scopes (weft_fiber_scopes_lock): the list, changes of
// `shields`, and the mark `interrupted` in the wait word.
//
// INVARIANT: under that lock, `interrupted` is set exactly if one of the open groups fails that was
// opened at the fiber's present depth of shields. A shield so holds off the failures of groups
// around it, and not those of groups inside it.

extension FiberCell {
  /// The open groups that were opened at this depth of shields.
  func groups(openedAtShields depth: UInt32) -> [GroupCore] {
    // SAFETY: `self` keeps the record alive; the lock guards the list. The depth of a group is a
    // constant.
    let lock = unsafe weft_fiber_scopes_lock(pointer)
    unsafe lock.lock()
    defer { unsafe lock.unlock() }
    var groups: [GroupCore] = []
    var group = unsafe self.group
    while let open = group {
      if unsafe open.pointer.pointee.shields == depth { groups.append(open) }
      group = unsafe open.outer
    }
    return groups
  }

  func push(_ group: GroupCore) {
    // SAFETY: `self` keeps the record alive; the lock guards the list.
    let lock = unsafe weft_fiber_scopes_lock(pointer)
    unsafe lock.lock()
    unsafe group.outer = unsafe self.group
    unsafe self.group = group
    unsafe lock.unlock()
  }

  /// Takes a group out, which is the first but where a coroutine carried it to another fiber.
  func remove(_ group: GroupCore) {
    // SAFETY: `self` keeps the record alive; the lock guards the list.
    let lock = unsafe weft_fiber_scopes_lock(pointer)
    unsafe lock.lock()
    defer { unsafe lock.unlock() }
    if unsafe self.group === group {
      unsafe self.group = group.outer
    } else {
      var before = unsafe self.group
      while let open = before, unsafe open.outer !== group { before = unsafe open.outer }
      unsafe before?.outer = unsafe group.outer
    }
    unsafe group.outer = nil
    refreshInterrupt()
  }

  /// Enters (1) or leaves (-1) a shield of the running fiber.
  func changeShields(by change: Int) {
    // SAFETY: runs as the fiber, which has a cold part; the lock guards the depth.
    let lock = unsafe weft_fiber_scopes_lock(pointer)
    unsafe lock.lock()
    defer { unsafe lock.unlock() }
    let scope = unsafe weft_fiber_scope(pointer)
    unsafe scope.pointee.shields = UInt32(Int(scope.pointee.shields) + change)
    refreshInterrupt()
  }

  /// Called under the lock, by the fiber itself.
  private func refreshInterrupt() {
    // SAFETY: `self` keeps the record alive.
    if hasFailingGroup(besides: nil) {
      _ = unsafe pointer.interruptWait()
    } else {
      unsafe pointer.clearInterrupt()
    }
  }

  /// Whether a group in force fails. Called under the lock.
  func hasFailingGroup(besides excluded: GroupCore?) -> Bool {
    // SAFETY: under the lock; the fiber has not ended, since the group that asks is open in it or
    // it asks itself, and so has its cold part.
    let depth = unsafe weft_fiber_scope(pointer).pointee.shields
    var group = unsafe self.group
    while let open = group {
      if open !== excluded, unsafe open.pointer.pointee.shields == depth,
        open.isFailing
      {
        return true
      }
      group = unsafe open.outer
    }
    return false
  }

  /// A group of this fiber fails: ends the waits of its body, and cancels the groups inside it.
  func interrupt(because group: GroupCore) {
    // SAFETY: `self` keeps the record alive; the lock guards the list. The fiber has a cold part:
    // it does not leave the group before the child that failed has ended.
    let lock = unsafe weft_fiber_scopes_lock(pointer)
    let depth = unsafe group.pointer.pointee.shields
    var inside: [GroupCore] = []
    var duty = WakeDuty.lost
    unsafe lock.lock()
    var open = unsafe self.group
    while let inner = open, inner !== group {
      if unsafe inner.pointer.pointee.shields == depth { inside.append(inner) }
      open = unsafe inner.outer
    }
    if unsafe weft_fiber_scope(pointer).pointee.shields == depth {
      duty = unsafe pointer.interruptWait()
    }
    unsafe lock.unlock()
    // SAFETY: a wait that was ended leaves the fiber to us.
    unsafe perform(duty, unsafe pointer)
    GroupCore.cancel(inside)
  }
}
