import CWeft
import WeftRuntime

extension Channel where Element: ~Copyable {
  /// In a `select`: receives an element.
  ///
  /// - Parameter body: runs with the element, after the exchange; nil if the channel is closed and
  ///   nothing is left in it.
  @inlinable @inline(__always)
  public func onReceive<Output>(
    _ body: @escaping (consuming sending Element?) throws -> Output
  ) -> ReceiveCase<Element, Output> {
    ReceiveCase(channel: self, body: body)
  }
}

extension Channel where Element: ~Copyable {
  /// In a `select`: sends an element that can't be copied.
  ///
  /// - Parameters:
  ///   - element: released if another case wins.
  ///   - body: runs after the exchange.
  @inlinable
  @_disfavoredOverload
  public func onSend<Output>(
    _ element: consuming sending Element, _ body: @escaping () throws -> Output
  ) -> MoveCase<Element, Output> {
    MoveCase(channel: self, element: element, body: body)
  }
}

extension Channel {
  /// In a `select`: sends an element.
  ///
  /// - Parameters:
  ///   - element: released if another case wins.
  ///   - body: runs after the exchange.
  @inlinable @inline(__always)
  public func onSend<Output>(
    _ element: consuming sending Element, _ body: @escaping () throws -> Output
  ) -> SendCase<Element, Output> {
    SendCase(channel: self, slot: element, body: body)
  }

  /// In a `select`: sends an element.
  ///
  /// - Parameter element: released if another case wins.
  @inlinable @inline(__always)
  public func onSend(_ element: consuming sending Element) -> SendCase<Element, Void> {
    SendCase(channel: self, slot: element, body: {})
  }
}

/// By a number, since with a pointer the compiler would take the element for the sender's still.
@inlinable @inline(__always)
func takeSlot<Element: ~Copyable>(at address: UInt, into element: inout Element?) {
  // SAFETY: the callers pass the address of a case's slot.
  let slot = unsafe UnsafeMutablePointer<Element?>(bitPattern: address).unsafelyUnwrapped
  unsafe element = slot.pointee.take()
}

/// A case that receives.
@frozen
@safe
public struct ReceiveCase<Element: ~Copyable, Output>: SelectPart {
  @usableFromInline let channel: Channel<Element>
  @usableFromInline let body: (consuming sending Element?) throws -> Output

  @inlinable @inline(__always)
  init(
    channel: Channel<Element>, body: @escaping (consuming sending Element?) throws -> Output
  ) {
    self.channel = channel
    self.body = body
  }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _bytes(_ part: UnsafeMutablePointer<Self>) -> Int {
    MemoryLayout<Element?>.size + MemoryLayout<Element?>.alignment - 1
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the part keeps the channel; the memory has room, as _bytes says.
    unsafe cases.pointee.lock = weft_channel_lock(part.pointee.channel.pointer)
    let slot = unsafe memory.alignedUp(for: Element?.self)
    unsafe slot.bindMemory(to: Element?.self, capacity: 1).initialize(to: nil)
    unsafe cases.pointee.waiter.slot = slot
    unsafe memory = slot + MemoryLayout<Element?>.size
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    // SAFETY: as above.
    let core = unsafe part.pointee.channel.pointer
    let isReady =
      unsafe core.stored > 0 || !weft_line_seems_empty(weft_channel_senders(core)) || core.isClosed
    return isReady ? 1 : 0
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    // SAFETY: as above; the caller holds the lock.
    let core = unsafe part.pointee.channel.pointer
    return unsafe core.provide(weft_case_waiter(one).slot(of: Element.self), &claimed.claimed)
      || core.isClosed
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    unsafe weft_line_append(
      weft_channel_receivers(part.pointee.channel.pointer), weft_case_waiter(one))
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    // SAFETY: as above; nobody else has the slot any more. What did not win was handed nothing.
    var element: Element?
    takeSlot(at: unsafe UInt(bitPattern: one.pointee.waiter.slot), into: &element)
    return try unsafe part.pointee.body(element)
  }
}

/// A case that sends.
@frozen
@safe
public struct SendCase<Element, Output>: SelectPart {
  @usableFromInline let channel: Channel<Element>
  @usableFromInline let body: () throws -> Output
  @usableFromInline var slot: Element?

  @inlinable @inline(__always)
  init(
    channel: Channel<Element>, slot: consuming Element, body: @escaping () throws -> Output
  ) {
    self.channel = channel
    self.body = body
    self.slot = slot
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the part keeps the channel, and has the slot.
    unsafe cases.pointee.lock = weft_channel_lock(part.pointee.channel.pointer)
    unsafe cases.pointee.waiter.slot = UnsafeMutableRawPointer(address(of: &part.pointee.slot))
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    // SAFETY: as above. The capacity is a constant.
    let core = unsafe part.pointee.channel.pointer
    let isReady =
      unsafe core.stored < core.pointee.capacity
      || !weft_line_seems_empty(weft_channel_receivers(core)) || core.isClosed
    return isReady ? 1 : 0
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    // SAFETY: as above; the caller holds the lock.
    let core = unsafe part.pointee.channel.pointer
    if unsafe core.isClosed {
      unsafe one.pointee.waiter.outcome = .closed
      return true
    }
    return unsafe core.accept(address(of: &part.pointee.slot), &claimed.claimed)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    unsafe weft_line_append(
      weft_channel_senders(part.pointee.channel.pointer), weft_case_waiter(one))
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    // SAFETY: as above.
    if unsafe one.pointee.waiter.outcome == .closed { throw ChannelClosed() }
    return try unsafe part.pointee.body()
  }
}

/// A case that sends an element that can't be copied.
@frozen
@safe
public struct MoveCase<Element: ~Copyable, Output>: SelectPart {
  @usableFromInline let channel: Channel<Element>
  @usableFromInline let body: () throws -> Output
  @usableFromInline let box: SendBox<Element>

  @inlinable @inline(__always)
  init(
    channel: Channel<Element>, element: consuming Element, body: @escaping () throws -> Output
  ) {
    self.channel = channel
    self.body = body
    self.box = SendBox(element)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the part keeps the channel, and the box.
    unsafe cases.pointee.lock = weft_channel_lock(part.pointee.channel.pointer)
    unsafe cases.pointee.waiter.slot = UnsafeMutableRawPointer(part.pointee.box.slot)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    // SAFETY: as above. The capacity is a constant.
    let core = unsafe part.pointee.channel.pointer
    let isReady =
      unsafe core.stored < core.pointee.capacity
      || !weft_line_seems_empty(weft_channel_receivers(core)) || core.isClosed
    return isReady ? 1 : 0
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    // SAFETY: as above; the caller holds the lock.
    let core = unsafe part.pointee.channel.pointer
    if unsafe core.isClosed {
      unsafe one.pointee.waiter.outcome = .closed
      return true
    }
    return unsafe core.accept(part.pointee.box.slot, &claimed.claimed)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    unsafe weft_line_append(
      weft_channel_senders(part.pointee.channel.pointer), weft_case_waiter(one))
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    // SAFETY: as above.
    if unsafe one.pointee.waiter.outcome == .closed { throw ChannelClosed() }
    return try unsafe part.pointee.body()
  }
}

/// Where an element lies that can't be copied, while a case is handed around that can.
@usableFromInline
@safe
final class SendBox<Element: ~Copyable> {
  @usableFromInline let slot: UnsafeMutablePointer<Element?>

  @usableFromInline
  init(_ element: consuming Element) {
    // SAFETY: freed in deinit.
    unsafe slot = .allocate(capacity: 1)
    unsafe slot.initialize(to: element)
  }

  deinit {
    // SAFETY: nobody else has the slot any more.
    unsafe slot.deinitialize(count: 1)
    unsafe slot.deallocate()
  }
}
