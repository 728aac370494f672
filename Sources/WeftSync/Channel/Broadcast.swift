import CWeft
import WeftRuntime

// Elements have numbers. The ring keeps those from `head` to before `tail`; each subscription has
// the number of the one that it receives next:
//
//         head        position of a slow one      tail
//          ▼                ▼                      ▼
//     ┌────┬────┬────┬────┬────┬────┬────┬────┐
//     │ 17 │ 18 │ 19 │ 20 │ 21 │ 22 │    │    │     each with the number of those who have not
//     └────┴────┴────┴────┴────┴────┴────┴────┘     received it: at 0 it goes
//
// INVARIANT: a receiver waits only if its subscription is at the tail.

/// Sends every element to all who have subscribed.
///
/// ```swift
/// let prices = Broadcast<Int>(capacity: 16)
/// let subscription = prices.subscribe()
/// Fiber {
///   while let price = try subscription.receive() { print(price) }
/// }
/// try prices.send(42)
/// prices.close()
/// ```
///
/// It is hot: a subscriber sees what is sent after it joined, and nobody sees what is sent while
/// there is none. What those who are slow have not yet received is kept, `capacity` elements at
/// most; what happens beyond that is the `LagPolicy`'s to say.
///
/// - **Suspension:** `receive` parks until there is an element; `send` does with `LagPolicy.wait`.
///   Both may resume on another kernel thread, and block a plain thread.
/// - **Cancellation:** of a receiver loses no element, of a sender sends none.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** `send` is O(subscribers that wait), `receive` is O(1).
@safe
// SAFETY: what is not constant is guarded by the gate's lock.
public final class Broadcast<Element: Sendable>: @unchecked Sendable {
  /// GUARDED BY: its lock, as all that follows. `line`: receivers; `other`: senders.
  @exclusivity(unchecked)
  private final var gate: weft_gate
  private final var places: [Place]
  private final var head: UInt64 = 0
  private final var tail: UInt64 = 0
  private final var subscribers = 0
  private final var closed = false
  private let lag: LagPolicy

  private struct Place {
    var element: Element?
    /// Subscriptions that have not received it.
    var left = 0
  }

  /// Makes a broadcast without subscribers.
  ///
  /// - Parameters:
  ///   - capacity: how many elements are kept for those who are slow; at least 1.
  ///   - lag: what happens beyond that.
  public init(capacity: Int = 64, lag: LagPolicy = .wait) {
    if capacity < 1 {
      fatalError("weft: Broadcast(capacity: \(capacity)): the capacity must be at least 1")
    }
    self.lag = lag
    places = Array(repeating: Place(), count: capacity)
    unsafe gate = weft_gate()  // SAFETY: zeros are a value of each field
  }

  private final var pointer: UnsafeMutablePointer<weft_gate> {
    // SAFETY: the object's header is two words, and the structure follows it.
    unsafe (Unmanaged.passUnretained(self).toOpaque() + 16)
      .assumingMemoryBound(to: weft_gate.self)
  }

  /// How many subscriptions there are.
  public var subscriberCount: Int { withLock { subscribers } }

  /// Whether it was closed.
  public var isClosed: Bool { withLock { closed } }

  /// Subscribes: what is sent from now on is received. Dropping the subscription ends it.
  public func subscribe() -> Subscription {
    withLock {
      subscribers += 1
      return Subscription(self, position: tail)
    }
  }

  /// Sends an element to all who have subscribed.
  ///
  /// - **Suspension:** parks while somebody is `capacity` elements behind, with `LagPolicy.wait`.
  /// - **Cancellation:** nothing was sent.
  /// - Throws: `ChannelClosed`; `CancellationError`.
  public func send(_ element: Element) throws {
    try throwIfCancelled()
    // SAFETY: `self` keeps the gate.
    let lock = unsafe weft_gate_lock(pointer)
    while true {
      var claimed = Claimed()
      var dropped: Element?
      unsafe lock.lock()
      if closed {
        unsafe lock.unlock()
        throw ChannelClosed()
      }
      if tail - head < UInt64(places.count) || lag == .dropOldest {
        dropped = store(element, &claimed)
        unsafe lock.unlock()
        claimed.release()
        withExtendedLifetime((self, dropped)) {}
        return
      }
      if lag == .dropLatest {
        unsafe lock.unlock()
        return
      }
      // SAFETY: the waiter lies on this stack, and is in no line when the wait is over.
      var waiter = unsafe weft_waiter()
      let end = unsafe withUnsafeMutablePointer(to: &waiter) { waiter in
        unsafe waiter.prepare()
        unsafe weft_line_append(weft_gate_other(pointer), waiter)
        unsafe lock.unlock()
        let end = unsafe waiter.wait(for: .send, of: pointer)
        if end != .woken { unsafe waiter.leave(lock) }
        return end
      }
      // One that was let in and is cancelled too lets the next in.
      if end != .woken { throw CancellationError() }
    }
  }

  /// Under the lock. Hands the element to those who wait, and keeps it for those who don't.
  ///
  /// - Returns: what was dropped for it, to be released after the unlock.
  private func store(_ element: Element, _ claimed: inout Claimed) -> Element? {
    if subscribers == 0 { return nil }
    var dropped: Element?
    if tail - head == UInt64(places.count) {
      dropped = places[index(head)].element.take()
      head += 1
    }
    let number = tail
    tail += 1
    var left = subscribers
    // SAFETY: those in the line are there, under the lock; their subscription is alive, since its
    // receive waits.
    var next = unsafe weft_gate_line(pointer).pointee.first
    while let waiter = unsafe next {
      unsafe next = waiter.pointee.next
      let subscription = unsafe Self.subscription(of: waiter)
      // The second of two who wait for one subscription gets the next element.
      if subscription.position != number { continue }
      unsafe waiter.slot(of: Element.self).pointee = element
      subscription.position += 1
      if unsafe claimed.claim(waiter) {
        left -= 1
      } else {
        unsafe waiter.slot(of: Element.self).pointee = nil
        subscription.position -= 1
      }
    }
    if left == 0, head == number {
      head += 1
    } else {
      places[index(number)] = Place(element: element, left: left)
    }
    return dropped
  }

  private static func subscription(of waiter: Waiter) -> Subscription {
    // SAFETY: receive noted it, and keeps it while it waits.
    unsafe Unmanaged<Subscription>.fromOpaque(
      UnsafeRawPointer(bitPattern: UInt(waiter.pointee.amount)).unsafelyUnwrapped
    ).takeUnretainedValue()
  }

  private func index(_ number: UInt64) -> Int { Int(number % UInt64(places.count)) }

  /// Closes: nothing can be sent any more; what was sent is still received. Idempotent.
  ///
  /// - **Suspension:** never.
  public func close() {
    var claimed = Claimed()
    withLock {
      closed = true
      // SAFETY: under the lock.
      while let receiver = unsafe weft_gate_line(pointer).pointee.first {
        _ = unsafe claimed.claim(receiver, .closed)
      }
      while let sender = unsafe weft_gate_other(pointer).pointee.first {
        _ = unsafe claimed.claim(sender, .closed)
      }
    }
    claimed.release()
  }

  private func withLock<R>(_ body: () -> R) -> R {
    // SAFETY: `self` keeps the gate; no user code runs in `body`.
    unsafe weft_gate_lock(pointer).lock()
    defer {
      unsafe weft_gate_lock(pointer).unlock()
      withExtendedLifetime(self) {}
    }
    return body()
  }

  /// Under the lock: one subscription has received an element, or does not want it any more.
  ///
  /// - Returns: the element, if nobody is left who wants it.
  private func received(_ number: UInt64, _ claimed: inout Claimed) -> Element? {
    places[index(number)].left -= 1
    var last: Element?
    if places[index(number)].left == 0 { last = places[index(number)].element.take() }
    while head < tail, places[index(head)].left == 0 {
      head += 1
      // SAFETY: under the lock. Each place that comes free lets one sender in.
      while let sender = unsafe weft_gate_other(pointer).pointee.first {
        if unsafe claimed.claim(sender) { break }
      }
    }
    return last
  }

  /// What one subscriber receives.
  ///
  // SAFETY: what is not constant is guarded by the broadcast's lock.
  /// - **Thread safety:** any fiber, any thread; several who receive share the elements.
  public final class Subscription: @unchecked Sendable {
    private let broadcast: Broadcast
    /// The number of the element that comes next. GUARDED BY: the broadcast's lock, as `missed`.
    fileprivate final var position: UInt64
    private final var missed: UInt64 = 0

    fileprivate init(_ broadcast: Broadcast, position: UInt64) {
      self.broadcast = broadcast
      self.position = position
    }

    deinit { leave() }

    /// How many elements it has lost, with `LagPolicy.dropOldest`, for being slow.
    public var missedCount: Int {
      broadcast.withLock {
        catchUp()
        return Int(missed)
      }
    }

    /// Receives the next element; waits until there is one.
    ///
    /// - **Suspension:** parks until one is sent.
    /// - **Cancellation:** loses no element.
    /// - Returns: nil if the broadcast is closed and nothing is left.
    /// - Throws: `CancellationError`.
    public func receive() throws(CancellationError) -> Element? {
      try throwIfCancelled()
      defer { withExtendedLifetime(self) {} }
      var claimed = Claimed()
      var slot: Element?
      // SAFETY: the broadcast, which `self` keeps, keeps the gate.
      let gate = unsafe broadcast.pointer
      let lock = unsafe weft_gate_lock(gate)
      unsafe lock.lock()
      if let element = take(&claimed) {
        unsafe lock.unlock()
        claimed.release()
        return element
      }
      if broadcast.closed {
        unsafe lock.unlock()
        return nil
      }
      // SAFETY: waiter and slot lie on this stack, and are in no line when the wait is over.
      var waiter = unsafe weft_waiter()
      let end = unsafe withUnsafeMutablePointer(to: &slot) { slot in
        unsafe withUnsafeMutablePointer(to: &waiter) { waiter in
          unsafe waiter.prepare(slot: slot)
          unsafe waiter.pointee.amount = UInt64(
            UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()))
          unsafe weft_line_append(weft_gate_line(gate), waiter)
          unsafe lock.unlock()
          let end = unsafe waiter.wait(for: .broadcast, of: gate)
          if end != .woken { unsafe waiter.leave(lock) }
          return end
        }
      }
      if end != .woken { throw CancellationError() }
      return slot
    }

    /// Receives the next element if there is one.
    ///
    /// - **Suspension:** never.
    public func receiveIfAvailable() -> Element? {
      var claimed = Claimed()
      let element = broadcast.withLock { take(&claimed) }
      claimed.release()
      return element
    }

    /// Under the lock.
    private func take(_ claimed: inout Claimed) -> Element? {
      catchUp()
      if position == broadcast.tail { return nil }
      let number = position
      position += 1
      // A copy that is not the last, but where nobody else wants it.
      let element = broadcast.places[broadcast.index(number)].element
      return broadcast.received(number, &claimed) ?? element
    }

    /// Under the lock: what was dropped before it was received is counted.
    private func catchUp() {
      if position < broadcast.head {
        missed += broadcast.head - position
        position = broadcast.head
      }
    }

    private func leave() {
      var claimed = Claimed()
      var unwanted: [Element] = []
      broadcast.withLock {
        catchUp()
        broadcast.subscribers -= 1
        for number in position..<max(position, broadcast.tail) {
          if let last = broadcast.received(number, &claimed) { unwanted.append(last) }
        }
      }
      claimed.release()
    }
  }
}

/// What a broadcast does when somebody is slow and its buffer is full.
public enum LagPolicy: Hashable, Sendable {
  /// The sender waits for the slowest.
  case wait
  /// Those who are slow lose the oldest element; `missedCount` tells them how many.
  case dropOldest
  /// The element that is being sent is lost for all.
  case dropLatest
}
