import CWeft
import WeftContext

/// A green thread: a function that runs on a worker of a scheduler, on a stack of its own, and may
/// wait without blocking the worker.
///
/// ```swift
/// let answer = Fiber { 6 * 7 }
/// print(answer.join())  // 42
/// ```
///
/// It starts at once, as `Task { }` does. Inside a fiber, code that waits (`join`, `Fiber.sleep`,
/// `Fiber.park`, …) lets others run; it is straight-line code, without `async`.
///
/// The handle is a value: copies name the same fiber. What the closure captured is released when
/// the fiber ends, even if a handle is kept; the result lives as long as a handle does. An error
/// reaches every `join`; a fiber that fails and is never joined is reported once on stderr.
///
/// - **Thread safety:** handles may be used from any thread.
/// - **Complexity:** making one takes two allocations (the fiber, the closure) and no system call;
///   it gets its stack when it first runs.
@frozen
@safe
public struct Fiber<Success: Sendable, Failure: Error>: Sendable, Hashable, Identifiable {
  @usableFromInline let cell: FiberCell

  /// Makes a fiber and starts it.
  ///
  /// - Parameters:
  ///   - name: what dumps and messages call it.
  ///   - placement: which worker runs it.
  ///   - priority: high-priority fibers run before normal ones, which are never starved.
  ///   - stackSize: how much stack it gets; nil for the scheduler's default.
  ///   - fileID: where it was made, for messages.
  ///   - line: where it was made, for messages.
  ///   - operation: what it runs. Cancelling the fiber before it starts does not keep it from
  ///     running.
  @inlinable @inline(__always)
  @discardableResult
  public init(
    name: String? = nil, placement: Placement = .automatic, priority: FiberPriority = .inherited,
    stackSize: StackSize? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    operation: consuming sending @escaping () throws(Failure) -> Success
  ) {
    // SAFETY: the site points to constants of the program.
    let record = unsafe makeFiber(
      name, placement, priority, stackSize, weft_site(name: "fiber", fileID: fileID, line: line))
    // SAFETY: the record is ours until launch, and our reference keeps it alive after.
    unsafe record.body(as: Body.self).initialize(to: Body(call: operation))
    unsafe record.runner.initialize(to: FiberRunner { record in unsafe Self.run(record) })
    unsafe launch(record, placement)
    self.cell = unsafe record.takeCell()
  }

  /// Runs the body and stores its outcome.
  @inlinable
  static func run(_ record: Record) {
    // SAFETY: init put the body there; from here on it is ours.
    unsafe finish(unsafe record.body(as: Body.self).move().call, unsafe record)
  }

  /// It owns the body, which so is released once, where one that is loaded and called would be
  /// retained and released around the call too.
  @inlinable @inline(never)
  static func finish(
    _ body: __owned @escaping () throws(Failure) -> Success, _ record: Record
  ) {
    // SAFETY: the fiber that runs stores its outcome, once.
    do throws(Failure) {
      let value = try body()
      unsafe record.storeOutcome(value, flag: .succeeded)
    } catch {
      unsafe record.storeFailure(error)
    }
  }

  @usableFromInline
  struct Body {
    @usableFromInline let call: () throws(Failure) -> Success

    @inlinable
    init(call: __owned @escaping () throws(Failure) -> Success) { self.call = call }
  }

  @inlinable
  init(cell: FiberCell) { self.cell = cell }

  /// Waits for the fiber to end, and gives its result.
  ///
  /// Never cancelled, as `await task.value` is not: `join(within:)` is. Of a finished fiber it
  /// returns at once, any number of times. Of itself it stops the process with a message.
  ///
  /// - Suspension: from a fiber, parks it, and it may resume on another thread; from a plain
  ///   thread, blocks that.
  /// - Throws: what the fiber threw.
  /// - Complexity: no allocation; two atomic operations.
  @inlinable @inline(__always)
  @discardableResult
  public func join() throws(Failure) -> Success {
    // SAFETY: the handle keeps the record alive.
    let record = unsafe cell.pointer
    if let worker = unsafe weft_worker_current() {
      let current = unsafe worker.pointee.current
      if let next = unsafe prepareJoin(record, worker) {
        unsafe finishSwitch(weft_fiber_switch(current, next, worker))
      }
    } else {
      _ = unsafe joinFromThread(record)
    }
    return try outcome()
  }

  /// The outcome of a fiber that has ended.
  @inlinable
  package func outcome() throws(Failure) -> Success {
    // SAFETY: ended, so nobody writes the outcome any more; it is copied out.
    let record = unsafe cell.pointer
    if unsafe weft_fiber_flags(record) & .failed != 0 {
      unsafe markJoined(record)
      throw unsafe record.outcome(as: Failure.self).pointee
    }
    return unsafe record.outcome(as: Success.self).pointee
  }

  /// Waits for the fiber to end for so long at most.
  ///
  /// - Suspension: as `join()`.
  /// - Returns: its result, or nil when the time is up.
  /// - Throws: what the fiber threw; `CancellationError` if the waiting fiber is cancelled, or a
  ///   deadline around the call passes first.
  public func join(within duration: Duration) throws -> Success? {
    // SAFETY: the handle keeps the record alive.
    let record = unsafe cell.pointer
    if unsafe !hasEnded(record) {
      try throwIfCancelled()
      let until = deadline(after: duration)
      // SWITCH: the worker is asked for only here.
      if let worker = unsafe weft_worker_current() {
        switch unsafe joinFromFiber(record, worker, until: until) {
        case .timedOut: return nil
        case .cancelled: throw CancellationError()
        default: break
        }
      } else {
        let limit = deadlineInForce()
        if unsafe !joinFromThread(record, until: min(until, limit)) {
          if limit < until { throw CancellationError() }
          return nil
        }
      }
    }
    return try outcome()
  }

  /// Cancels the fiber: its waits end with `CancellationError`, now and later, unless shielded.
  /// Idempotent; does nothing after the end. Fibers made inside it are not reached, children of its
  /// groups are.
  public func cancel() { cell.cancel() }

  /// Leaves the fiber one permit: ends its `Fiber.park`, or lets the next one return at once.
  /// Permits do not add up.
  public func unpark() { cell.unpark() }

  /// Whether the fiber has ended.
  public var isFinished: Bool { unsafe hasEnded(cell.pointer) }  // SAFETY: `cell` keeps the record
  /// Whether the fiber was cancelled. Asked by the fiber itself, also whether its scheduler or its
  /// group cancels it; others see that once the fiber has asked, or has waited.
  public var isCancelled: Bool { cell.isCancelled }
  /// A number that no other fiber of this process has.
  public var id: FiberID { cell.id }
  /// The name that it was given.
  public var name: String? { cell.name }

  /// The record, which the handle keeps.
  @inlinable
  package var record: Record { unsafe cell.pointer }

  /// Whether both name the same fiber.
  public static func == (a: Fiber, b: Fiber) -> Bool { a.cell === b.cell }
  /// Hashes the fiber's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(cell)) }
}

/// A number that no other fiber of this process has.
public struct FiberID: Hashable, Sendable, CustomStringConvertible {
  /// Counts from 1.
  public let rawValue: UInt64
  /// `#7`.
  public var description: String { "#\(rawValue)" }
}

/// Which worker runs a fiber.
public enum Placement: Hashable, Sendable {
  /// The scheduler's placement policy decides.
  case automatic
  /// The queue of the worker that makes it, whatever the policy says; idle workers may steal it.
  case here
  /// This worker, and no other ever.
  case worker(Int)
  /// A worker that runs nothing else until the fiber ends.
  case exclusive
}

/// The two classes of fibers.
public enum FiberPriority: Hashable, Sendable {
  /// As the fiber that makes it; normal outside fibers.
  case inherited
  /// Runs when its turn comes. At least one pick in sixteen goes to a normal fiber that waits.
  case normal
  /// Runs before normal ones.
  case high
}

/// The fiber that runs, whatever its types.
public struct FiberHandle: Sendable, Hashable, Identifiable {
  let cell: FiberCell

  /// A number that no other fiber of this process has.
  public var id: FiberID { cell.id }
  /// The name that it was given.
  public var name: String? { cell.name }
  /// Whether the fiber was cancelled, as `Fiber.isCancelled` of a handle says.
  public var isCancelled: Bool { cell.isCancelled }
  /// Cancels the fiber.
  public func cancel() { cell.cancel() }
  /// Leaves the fiber one permit for `Fiber.park`.
  public func unpark() { cell.unpark() }

  /// Whether both name the same fiber.
  public static func == (a: FiberHandle, b: FiberHandle) -> Bool { a.cell === b.cell }
  /// Hashes the fiber's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(cell)) }
}
