import CWeft
import WeftRuntime

// What is done with a channel under its lock.

@usableFromInline typealias ChannelCore = UnsafeMutablePointer<weft_channel>

/// How a send or receive ended.
@usableFromInline
@frozen
package enum WaitOutcome { case served, closed, timedOut, cancelled }

extension UnsafeMutablePointer where Pointee == weft_channel {
  @inlinable @inline(__always)
  var isClosed: Bool {
    // SAFETY: the caller keeps the channel.
    // ORDERING: acquire, paired with the store in closeChannel.
    unsafe weft_word_load_acquire(weft_channel_closed(self)) != 0
  }

  @inlinable @inline(__always)
  func buffer<Element: ~Copyable>(
    of type: Element.Type
  ) -> UnsafeMutablePointer<Element>? {
    // SAFETY: allocated by grow(_:) as this type.
    unsafe pointee.buffer?.assumingMemoryBound(to: Element.self)
  }

  // MARK: - Under the lock

  @inlinable @inline(__always)
  var stored: UInt64 {
    // SAFETY: the caller holds the lock.
    // ORDERING: relaxed; written under the lock only.
    get { unsafe weft_word_load_relaxed(weft_channel_count(self)) }
    nonmutating set { unsafe weft_word_store_relaxed(weft_channel_count(self), newValue) }
  }

  /// Hands an element to a receiver that waits, or puts it into the buffer. False if there is
  /// neither. The channel is open.
  @inlinable @inline(__always)
  func accept<Element: ~Copyable>(
    _ slot: UnsafeMutablePointer<Element?>, _ claimed: inout Claimed
  ) -> Bool {
    // SAFETY: the caller holds the lock, under which those in the lines are there. The slots are
    // theirs and ours, and hold what their owners put there, or nothing.
    while let receiver = unsafe pointee.receivers.first {
      let theirs = unsafe receiver.slot(of: Element.self)
      unsafe theirs.pointee = slot.pointee.take()
      if unsafe claimed.claim(receiver) { return true }
      unsafe slot.pointee = theirs.pointee.take()
    }
    if unsafe stored == pointee.capacity { return false }
    unsafe push(slot)
    return true
  }

  /// Puts an element into `slot`: from the buffer, or from a sender that waits. False if there is
  /// neither, and the channel is open or closed.
  @inlinable @inline(__always)
  func provide<Element: ~Copyable>(
    _ slot: UnsafeMutablePointer<Element?>, _ claimed: inout Claimed
  ) -> Bool {
    // SAFETY: as in accept.
    if unsafe stored > 0 {
      unsafe slot.pointee = pop(Element.self)
      while let sender = unsafe pointee.senders.first {
        let theirs = unsafe sender.slot(of: Element.self)
        unsafe push(theirs)
        if unsafe claimed.claim(sender) { break }
        unsafe theirs.pointee = popLatest(Element.self)
      }
      return true
    }
    while let sender = unsafe pointee.senders.first {
      let theirs = unsafe sender.slot(of: Element.self)
      unsafe slot.pointee = theirs.pointee.take()
      if unsafe claimed.claim(sender) { return true }
      unsafe theirs.pointee = slot.pointee.take()
    }
    return false
  }

  /// Moves an element from `slot` to the end of the buffer, which is not full.
  @inlinable @inline(__always)
  func push<Element: ~Copyable>(_ slot: UnsafeMutablePointer<Element?>) {
    // SAFETY: the caller holds the lock, and the slot holds an element; places from head on, as
    // many as are stored, are initialised, and no others.
    let count = unsafe stored
    if unsafe count == pointee.room { unsafe grow(Element.self) }
    let place = unsafe (pointee.head &+ count) & (pointee.room &- 1)
    let element = unsafe slot.pointee.take().unsafelyUnwrappedOnce()
    unsafe (buffer(of: Element.self).unsafelyUnwrapped + Int(truncatingIfNeeded: place))
      .initialize(to: element)
    unsafe stored = count &+ 1
  }

  /// Takes the element that is next in the channel's order. There is one.
  @inlinable @inline(__always)
  func pop<Element: ~Copyable>(_ type: Element.Type) -> Element {
    // SAFETY: as in push.
    if unsafe pointee.latest_first != 0 { return unsafe popLatest(type) }
    let place = unsafe pointee.head & (pointee.room &- 1)
    unsafe pointee.head = pointee.head &+ 1
    unsafe stored = stored &- 1
    return unsafe (buffer(of: type).unsafelyUnwrapped + Int(truncatingIfNeeded: place)).move()
  }

  @inlinable
  func popLatest<Element: ~Copyable>(_ type: Element.Type) -> Element {
    // SAFETY: as in push.
    unsafe stored = stored &- 1
    let place = unsafe (pointee.head &+ stored) & (pointee.room &- 1)
    return unsafe (buffer(of: type).unsafelyUnwrapped + Int(truncatingIfNeeded: place)).move()
  }

  /// Doubles the buffer.
  @inlinable @inline(never)
  func grow<Element: ~Copyable>(_ type: Element.Type) {
    // SAFETY: as in push: all places of the old buffer are initialised, and are moved in order.
    let (old, room) = unsafe (buffer(of: type), Int(pointee.room))
    let size = Swift.max(8, room &* 2)
    let new = UnsafeMutablePointer<Element>.allocate(capacity: size)
    if let old = unsafe old {
      let first = unsafe Int(truncatingIfNeeded: pointee.head) & (room - 1)
      unsafe new.moveInitialize(from: old + first, count: room - first)
      unsafe (new + (room - first)).moveInitialize(from: old, count: first)
      unsafe old.deallocate()
    }
    unsafe pointee.buffer = UnsafeMutableRawPointer(new)
    unsafe pointee.head = 0
    unsafe pointee.room = UInt64(size)
  }
}

extension UnsafeMutablePointer where Pointee == weft_waiter {
  @inlinable @inline(__always)
  func slot<Element: ~Copyable>(of type: Element.Type) -> UnsafeMutablePointer<Element?> {
    // SAFETY: whoever waits in a channel gave a slot of its element's type.
    unsafe pointee.slot.unsafelyUnwrapped.assumingMemoryBound(to: Element?.self)
  }
}

extension Optional where Wrapped: ~Copyable {
  @inlinable @inline(__always)
  consuming func unsafelyUnwrappedOnce() -> Wrapped {
    switch consume self {
    case .some(let wrapped): return wrapped
    case .none: fatalError("weft: a channel lost an element. Please report this bug.")
    }
  }
}

// MARK: - Without the elements' type

@usableFromInline
func makeChannel(_ capacity: ChannelCapacity, _ order: ChannelOrder) -> weft_channel {
  // SAFETY: zeros are a value of each field.
  var core = unsafe weft_channel()
  switch capacity {
  case .unbounded: unsafe core.capacity = .max
  case .bounded(let count):
    if count < 0 {
      fatalError("weft: Channel(capacity: \(count)): the capacity must be at least 0")
    }
    unsafe core.capacity = UInt64(count)
  }
  unsafe core.latest_first = order == .lifo ? 1 : 0
  return unsafe core
}

/// What the first step of a send or receive came to.
@usableFromInline
@frozen
@safe
struct Begun {
  /// Whom to switch to: the caller is in a line and waits. Nil: it is over.
  @usableFromInline let next: Record?
  /// How it went, if it is over.
  @usableFromInline let outcome: WaitOutcome

  @inlinable @inline(__always)
  init(_ outcome: WaitOutcome) {
    unsafe next = nil
    self.outcome = outcome
  }

  @inlinable @inline(__always)
  init(next: Record) {
    unsafe self.next = next
    outcome = .served
  }
}

/// Puts the caller into a line, where nothing could be done at once. The lock is held, and is free
/// when this returns.
///
/// - Returns: whom to switch to, in the caller's own frame: each frame between the switch and the
///   user's code costs a mispredicted return. With a time limit, and on a plain thread, the wait is
///   done in here.
@usableFromInline
func enlist(
  _ core: ChannelCore, _ line: Line, _ reason: ParkReason, _ slot: UnsafeMutableRawPointer,
  _ waiter: Waiter, _ until: UInt64
) -> Begun {
  // SAFETY: the caller holds the lock, and keeps the channel, the slot and the waiter until the
  // wait is over.
  let lock = unsafe weft_channel_lock(core)
  if unsafe core.isClosed {
    unsafe lock.unlock()
    return Begun(.closed)
  }
  unsafe waiter.prepare(slot: slot)
  unsafe weft_line_append(line, waiter)
  unsafe lock.unlock()
  guard until == never, let worker = unsafe weft_worker_current() else {
    return Begun(unsafe finish(waiter, waiter.wait(for: reason, of: core, until: until), lock))
  }
  let current = unsafe worker.pointee.current
  let flags = unsafe cancellableFlag(current)
  if let next = unsafe preparePark(worker, flags: flags, reason: reason, object: core) {
    return unsafe Begun(next: next)
  }
  return Begun(unsafe finish(waiter, current.lastReason, lock))
}

/// After the switch back.
@usableFromInline
func finishWait(
  _ worker: Worker, _ waiter: Waiter, _ lock: UnsafeMutablePointer<weft_word>
) -> WaitOutcome {
  // SAFETY: runs on this worker's own thread, as the fiber whose waiter it is.
  unsafe finishSwitch(worker)
  return unsafe finish(waiter, worker.pointee.current.lastReason, lock)
}

/// How the wait went; out of the line if it was cut short.
private func finish(
  _ waiter: Waiter, _ end: WakeReason, _ lock: UnsafeMutablePointer<weft_word>
) -> WaitOutcome {
  // SAFETY: the caller's own waiter.
  if end == .woken { return unsafe waiter.pointee.outcome == .closed ? .closed : .served }
  unsafe waiter.leave(lock)
  return end == .timedOut ? .timedOut : .cancelled
}

/// Closes, and lets all that wait go on.
func closeChannel(_ core: ChannelCore) {
  // SAFETY: the caller keeps the channel; under the lock those in the lines are there.
  // ORDERING: release, paired with isClosed.
  var claimed = Claimed()
  let lock = unsafe weft_channel_lock(core)
  unsafe lock.lock()
  unsafe weft_word_store_release(weft_channel_closed(core), 1)
  while let receiver = unsafe core.pointee.receivers.first {
    _ = unsafe claimed.claim(receiver, .closed)
  }
  while let sender = unsafe core.pointee.senders.first {
    _ = unsafe claimed.claim(sender, .closed)
  }
  unsafe lock.unlock()
  claimed.release()
}
