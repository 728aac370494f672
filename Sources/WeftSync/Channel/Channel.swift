import CWeft
import WeftRuntime

// A channel is in one of these states; between them is one critical section.
//
//                     send                        send
//     ┌───────────┐ ◀──────── ┌───────────────┐ ◀──────── ┌──────────────┐
//     │ full,     │           │ some elements │           │ empty,       │
//     │ senders   │           │ nobody waits  │           │ receivers    │
//     │ wait      │ ────────▶ │               │ ────────▶ │ wait         │
//     └───────────┘  receive  └───────────────┘  receive  └──────────────┘
//
// INVARIANT: senders wait only while the buffer is full, receivers only while it is empty; never
// both. Closed: neither, and what is in the buffer is still received.

/// A queue between fibers, or threads: whoever sends waits for room, whoever receives waits for an
/// element.
///
/// ```swift
/// let squares = Channel<Int>(capacity: 8)
/// Fiber {
///   for i in 0..<100 { try squares.send(i * i) }
///   squares.close()
/// }
/// while let square = try squares.receive() { print(square) }
/// ```
///
/// With capacity 0 it is a rendezvous: a send returns only once its element is taken. Those who
/// wait are served first come, first served, and an element goes straight to a receiver that waits.
/// An element whose send threw is released, and so are those that are left when the last reference
/// to the channel goes.
///
/// Elements are sent away (`sending`), so they need not be `Sendable`, nor copyable.
///
/// - **Suspension:** `send` and `receive` park the fiber that calls, which may resume on another
///   kernel thread; a plain thread they block.
/// - **Cancellation:** one that waited leaves the channel as if it had never come; an element that
///   arrived before wins over the cancellation.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** O(1), and no allocation but for the buffer's growth.
///
/// After Go's channels, with close() as in most others: idempotent, and no crash for senders.
@safe
// SAFETY: `core` is guarded by its lock, but for what cweft_sync.h excepts.
public final class Channel<Element: ~Copyable>: @unchecked Sendable {
  /// First, so that it lies 16 bytes into the object (checked by a test).
  @exclusivity(unchecked)
  @usableFromInline final var core: weft_channel
  /// Called when it is closed or dropped. Set before anybody else has the channel.
  final var onEnd: (() -> Void)?

  /// Makes a channel that holds so many elements; 0 for a rendezvous.
  ///
  /// - Parameters:
  ///   - capacity: at least 0; a negative one stops the process with a message.
  ///   - order: which element of the buffer is received first.
  @inlinable
  public convenience init(capacity: Int = 0, order: ChannelOrder = .fifo) {
    self.init(capacity: .bounded(capacity), order: order)
  }

  /// Makes a channel.
  ///
  /// - Parameters:
  ///   - capacity: how many elements it holds.
  ///   - order: which element of the buffer is received first.
  public init(capacity: ChannelCapacity, order: ChannelOrder = .fifo) {
    unsafe core = makeChannel(capacity, order)  // SAFETY: nobody else has the object yet
  }

  deinit {
    // SAFETY: nobody else has the channel, so nobody waits; its buffer is ours.
    let buffer = unsafe pointer.buffer(of: Element.self)
    while unsafe weft_word_load_relaxed(weft_channel_count(pointer)) > 0 {
      _ = unsafe pointer.pop(Element.self)
    }
    unsafe buffer?.deallocate()
    onEnd?()
  }

  /// The address of the part without a type; valid while the object is.
  @inlinable @inline(__always)
  final var pointer: ChannelCore {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_channel.self)
  }

  // MARK: - Sending

  /// Sends an element; waits while there is no room for it.
  ///
  /// - **Suspension:** parks until there is room, or with capacity 0 until the element is taken.
  /// - **Cancellation:** the element was not sent, and is released.
  /// - Throws: `ChannelClosed`; `CancellationError`.
  @inlinable @inline(__always)
  public func send(_ element: consuming sending Element) throws {
    // SAFETY: the local is the element's place until this returns; nobody else has it after.
    var slot: Element? = consume element
    try unsafe withUnsafeMutablePointer(to: &slot) { slot in try unsafe send(from: slot) }
  }

  /// Sends an element; waits while there is no room for it, so long at most.
  ///
  /// - **Suspension:** as `send(_:)`.
  /// - **Cancellation:** as `send(_:)`.
  /// - Throws: `ChannelClosed`; `DeadlineExceeded` if it was not taken in time, and then was not
  ///   sent and is released; `CancellationError`.
  @inlinable
  public func send(_ element: consuming sending Element, within duration: Duration) throws {
    var slot: Element? = consume element
    // SAFETY: as in send(_:).
    try unsafe withUnsafeMutablePointer(to: &slot) { slot in
      try unsafe send(from: slot, until: deadline(after: duration))
    }
  }

  /// Sends an element if that can be done at once: there is room for it, or a receiver waits.
  ///
  /// - **Suspension:** never.
  /// - Returns: whether it was sent. If not, it is released.
  /// - Throws: `ChannelClosed`.
  @inlinable
  public func sendIfAvailable(_ element: consuming sending Element) throws(ChannelClosed) -> Bool {
    var slot: Element? = consume element
    return try sendIfAvailable(from: &slot)
  }

  /// The same for an element that is kept if it can't be sent.
  ///
  /// ```swift
  /// let channel = Channel<[Int]>(capacity: 1)
  /// var job: [Int]? = [1, 2, 3]
  /// if try !channel.sendIfAvailable(from: &job) { print("kept: \(job ?? [])") }
  /// ```
  ///
  /// - **Suspension:** never.
  /// - Parameter element: taken, and nil after, if it was sent. Nil is no element: nothing is sent.
  /// - Returns: whether it was sent.
  /// - Throws: `ChannelClosed`; the element is kept.
  @inlinable
  public func sendIfAvailable(from element: inout sending Element?) throws(ChannelClosed) -> Bool {
    if element == nil { return false }
    // SAFETY: the pointer is used under the lock only, before this returns.
    return try unsafe withUnsafeMutablePointer(to: &element) { slot throws(ChannelClosed) in
      var claimed = Claimed()
      let core = unsafe pointer
      unsafe weft_channel_lock(core).lock()
      let isClosed = unsafe core.isClosed
      let isSent = unsafe !isClosed && core.accept(slot, &claimed)
      unsafe weft_channel_lock(core).unlock()
      claimed.release()
      withExtendedLifetime(self) {}
      if isClosed { throw ChannelClosed() }
      return isSent
    }
  }

  // MARK: - Receiving

  /// Receives an element; waits until there is one.
  ///
  /// Prefer `while let element = try channel.receive()` to `for element in channel`, whose end by
  /// cancellation looks like a close.
  ///
  /// - **Suspension:** parks until an element comes or the channel is closed.
  /// - **Cancellation:** takes no element.
  /// - Returns: nil if the channel is closed, and nothing is left in it.
  /// - Throws: `CancellationError`.
  @inlinable @inline(__always)
  public func receive() throws(CancellationError) -> sending Element? {
    var slot: Element?
    // SAFETY: the local is the element's place until this returns; nobody else has it after.
    let outcome = unsafe withUnsafeMutablePointer(to: &slot) { slot in
      unsafe receive(into: slot, until: .max)
    }
    if outcome == .cancelled { throw CancellationError() }
    return slot
  }

  /// Receives an element; waits for one so long at most.
  ///
  /// - **Suspension:** as `receive()`.
  /// - **Cancellation:** takes no element.
  /// - Returns: nil if the channel is closed, and nothing is left in it.
  /// - Throws: `DeadlineExceeded` if none came in time; `CancellationError`.
  @inlinable
  public func receive(within duration: Duration) throws -> sending Element? {
    var slot: Element?
    // SAFETY: as in receive().
    let outcome = unsafe withUnsafeMutablePointer(to: &slot) { slot in
      unsafe receive(into: slot, until: deadline(after: duration))
    }
    if outcome == .timedOut { throw DeadlineExceeded() }
    if outcome == .cancelled { throw CancellationError() }
    return slot
  }

  /// Receives an element if there is one.
  ///
  /// - **Suspension:** never.
  /// - Returns: nil if there is none, or the channel is closed: `isClosed` tells.
  @inlinable
  public func receiveIfAvailable() -> sending Element? {
    var slot: Element?
    // SAFETY: the local is used under the lock only.
    unsafe withUnsafeMutablePointer(to: &slot) { slot in
      var claimed = Claimed()
      let core = unsafe pointer
      unsafe weft_channel_lock(core).lock()
      _ = unsafe core.provide(slot, &claimed)
      unsafe weft_channel_lock(core).unlock()
      claimed.release()
      withExtendedLifetime(self) {}
    }
    return slot
  }

  // MARK: - Closing

  /// Closes the channel: nothing can be sent any more; what is in it is still received.
  ///
  /// Senders that wait throw `ChannelClosed`, receivers that wait get nil, all at once. Closing a
  /// closed channel does nothing.
  ///
  /// - **Suspension:** never.
  public func close() {
    // SAFETY: `self` keeps the core.
    unsafe closeChannel(pointer)
    onEnd?()
  }

  /// Whether the channel was closed. There may be elements left in it.
  public var isClosed: Bool { unsafe pointer.isClosed }  // SAFETY: `self` keeps it

  /// How many elements are in the buffer.
  public var count: Int {
    // SAFETY: `self` keeps it.
    // ORDERING: relaxed; a figure that may be old when it is used.
    Int(unsafe weft_word_load_relaxed(weft_channel_count(pointer)))
  }
}

extension Channel where Element: ~Copyable {
  /// Sends what is in `slot`.
  ///
  /// COST: where nobody has to wait, an exchange and a store for the lock, and with a receiver that
  /// waits a compare-and-swap to claim it.
  @inlinable @inline(__always)
  func send(from slot: UnsafeMutablePointer<Element?>, until: UInt64 = .max) throws {
    // SAFETY: the slot is the caller's, and stays until this returns, as does the waiter; `self`
    // keeps the core, as long as the line at the end says.
    let outcome = unsafe withUnsafeTemporaryAllocation(of: weft_waiter.self, capacity: 1) {
      unsafe wait($0.baseAddress.unsafelyUnwrapped) {
        unsafe Self.beginSend(pointer, slot, $0, until)
      }
    }
    withExtendedLifetime(self) {}
    switch outcome {
    case .served: return
    case .closed: throw ChannelClosed()
    case .timedOut: throw DeadlineExceeded()
    case .cancelled: throw CancellationError()
    }
  }

  /// Receives into `slot`, which is empty.
  @inlinable @inline(__always)
  func receive(into slot: UnsafeMutablePointer<Element?>, until: UInt64) -> WaitOutcome {
    // SAFETY: as in send(from:).
    let outcome = unsafe withUnsafeTemporaryAllocation(of: weft_waiter.self, capacity: 1) {
      unsafe wait($0.baseAddress.unsafelyUnwrapped) {
        unsafe Self.beginReceive(pointer, slot, $0, until)
      }
    }
    withExtendedLifetime(self) {}
    return outcome
  }

  /// Begins, and waits where it has to, with the switch in the caller's frame.
  @inlinable @inline(__always)
  func wait(_ waiter: Waiter, _ begin: (Waiter) -> Begun) -> WaitOutcome {
    // SAFETY: where there is somebody to switch to, this is a fiber in a line, ready to be left.
    let begun = unsafe begin(waiter)
    guard let next = unsafe begun.next else { return begun.outcome }
    let worker = unsafe weft_worker_current().unsafelyUnwrapped
    let left = unsafe weft_fiber_switch(worker.pointee.current, next, worker)
    return unsafe finishWait(left, waiter, weft_channel_lock(pointer))
  }

  @inlinable @inline(never)
  static func beginSend(
    _ core: ChannelCore, _ slot: UnsafeMutablePointer<Element?>, _ waiter: Waiter, _ until: UInt64
  ) -> Begun {
    // SAFETY: as in send(from:).
    if seemsCancelled(), noticesCancellation() { return Begun(.cancelled) }
    let lock = unsafe weft_channel_lock(core)
    unsafe lock.lock()
    var claimed = Claimed()
    if unsafe !core.isClosed && core.accept(slot, &claimed) {
      unsafe lock.unlock()
      claimed.release()
      spendOperation()
      return Begun(.served)
    }
    return unsafe enlist(core, weft_channel_senders(core), .send, slot, waiter, until)
  }

  @inlinable @inline(never)
  static func beginReceive(
    _ core: ChannelCore, _ slot: UnsafeMutablePointer<Element?>, _ waiter: Waiter, _ until: UInt64
  ) -> Begun {
    // SAFETY: as in send(from:).
    if seemsCancelled(), noticesCancellation() { return Begun(.cancelled) }
    let lock = unsafe weft_channel_lock(core)
    unsafe lock.lock()
    var claimed = Claimed()
    if unsafe core.provide(slot, &claimed) {
      unsafe lock.unlock()
      claimed.release()
      spendOperation()
      return Begun(.served)
    }
    return unsafe enlist(core, weft_channel_receivers(core), .receive, slot, waiter, until)
  }
}

extension Channel: Sequence {
  /// Receives until the channel is closed and empty, or the fiber is cancelled.
  public struct Iterator: IteratorProtocol {
    @usableFromInline let channel: Channel

    @inlinable
    init(_ channel: Channel) { self.channel = channel }

    /// Waits for the next element.
    @inlinable
    public func next() -> Element? {
      do throws(CancellationError) { return try channel.receive() } catch { return nil }
    }
  }

  /// An iterator that receives.
  @inlinable
  public func makeIterator() -> Iterator { Iterator(self) }
}
