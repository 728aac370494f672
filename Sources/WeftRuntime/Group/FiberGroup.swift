import CWeft
import WeftContext

/// Runs a function that starts fibers which do not outlive it.
///
/// ```swift
/// let sum = try withFiberGroup(of: Int.self) { group in
///   for i in 0..<4 { group.spawn { i } }
///   var sum = 0
///   while let value = try group.next() { sum += value }
///   return sum
/// }
/// ```
///
/// It returns when the body has returned and every child has ended. The first error, of a child or
/// of the body, cancels all children (those that park end with `CancellationError`) and, if it was
/// a child's, ends the body's own waits with `CancellationError`; when all have ended it is thrown,
/// even if the body caught it from `next()`. What the cancellation provoked is no error.
///
/// - **Suspension:** waits for the children that are left; on a plain thread, blocks it. May resume
///   on another kernel thread.
/// - **Cancellation:** cancelling the fiber that runs the body cancels the children too, and the
///   children of their groups; so does a deadline around the call when it passes. The wait at the
///   end is not cut short: it ends when they do.
/// - **Thread safety:** any fiber, any thread.
/// - Parameters:
///   - of: what the children return.
///   - onError: whether an error cancels the siblings (the default) or is an outcome as others.
///   - body: starts the children, with the group as its argument.
/// - Returns: what the body returns.
/// - Throws: the first error.
/// - Complexity: one allocation for the group.
@inlinable
public func withFiberGroup<Child: Sendable, R>(
  of: Child.Type = Child.self, onError: FiberGroupErrorPolicy = .cancel,
  _ body: (inout FiberGroup<Child>) throws -> R
) throws -> R {
  var group = FiberGroup<Child>(core: openGroup(collects: onError == .collect))
  let core = group.core
  let result: R
  do {
    result = try body(&group)
  } catch {
    throw closeGroup(core, bodyError: error) ?? error
  }
  if let error = closeGroup(core, bodyError: nil) { throw error }
  return result
}

/// What a child's error does to its group.
public enum FiberGroupErrorPolicy: Hashable, Sendable {
  /// The first error cancels the siblings, and is thrown once all have ended.
  case cancel
  /// An error cancels nobody: it is that child's outcome, and the group throws only what its body
  /// does.
  case collect
}

/// The fibers of a `withFiberGroup`, for its body.
///
/// - **Thread safety:** the body's alone; it can't be copied out of it.
@frozen
@safe
public struct FiberGroup<Child: Sendable>: ~Copyable {
  @usableFromInline let core: GroupCore

  @inlinable
  init(core: GroupCore) { self.core = core }

  /// Starts a child. In a group that is cancelled it starts cancelled.
  ///
  /// ```swift
  /// try withFiberGroup(of: Void.self) { group in
  ///   group.spawn(name: "greeter") { print("hello") }
  /// }
  /// ```
  ///
  /// - **Suspension:** never.
  /// - Parameters:
  ///   - name: what dumps and messages call it.
  ///   - placement: which worker runs it.
  ///   - priority: high-priority fibers run before normal ones, which are never starved.
  ///   - stackSize: how much stack it gets; nil for the scheduler's default.
  ///   - fileID: where it was made, for messages.
  ///   - line: where it was made, for messages.
  ///   - operation: what it runs.
  /// - Complexity: two allocations (the fiber, the closure).
  @inlinable @inline(__always)
  public func spawn(
    name: String? = nil, placement: Placement = .automatic, priority: FiberPriority = .inherited,
    stackSize: StackSize? = nil, fileID: StaticString = #fileID, line: UInt = #line,
    operation: consuming sending @escaping () throws -> Child
  ) {
    // SAFETY: the site points to constants of the program.
    let record = unsafe makeChild(
      core, name, placement, priority, stackSize,
      weft_site(name: "child", fileID: fileID, line: line))
    // SAFETY: the record is ours until launch.
    unsafe record.body(as: Body.self).initialize(to: Body(call: operation))
    unsafe record.runner.initialize(to: FiberRunner { record in unsafe Self.run(record) })
    unsafe launchChild(record, placement)
  }

  /// Starts a child if fewer than so many run.
  ///
  /// ```swift
  /// try withFiberGroup(of: Int.self) { group in
  ///   for job in 0..<100 {
  ///     while !group.spawnIfRoom(8, operation: { job * job }) { _ = try group.next() }
  ///   }
  /// }
  /// ```
  ///
  /// - **Suspension:** never.
  /// - Parameters:
  ///   - limit: how many children may run at once.
  ///   - fileID: where it was made, for messages.
  ///   - line: where it was made, for messages.
  ///   - operation: what it runs.
  /// - Returns: whether it was started. If not, the closure is released.
  @inlinable
  public func spawnIfRoom(
    _ limit: Int, fileID: StaticString = #fileID, line: UInt = #line,
    operation: consuming sending @escaping () throws -> Child
  ) -> Bool {
    if !hasRoom(core, limit) { return false }
    spawn(fileID: fileID, line: line, operation: operation)
    return true
  }

  /// Runs the body of a child and stores its outcome.
  @inlinable
  static func run(_ record: Record) {
    // SAFETY: spawn put the body there; from here on it is ours.
    unsafe finish(unsafe record.body(as: Body.self).move().call, unsafe record)
  }

  /// It owns the body, as the one of Fiber does.
  @inlinable @inline(never)
  static func finish(_ body: __owned @escaping () throws -> Child, _ record: Record) {
    // SAFETY: the fiber that runs stores its outcome, once.
    do {
      let value = try body()
      unsafe record.storeOutcome(value, flag: .succeeded)
    } catch {
      // "as": or the language would open it and store what is inside.
      unsafe record.storeOutcome(error as any Error, flag: .failed)
      unsafe childThrew(record, error)
    }
  }

  @usableFromInline
  struct Body {
    @usableFromInline let call: () throws -> Child

    @inlinable
    init(call: __owned @escaping () throws -> Child) { self.call = call }
  }

  // MARK: - Results

  /// Waits for the next child to end, in the order in which they do.
  ///
  /// Children that end with the cancellation that the group gave them are passed over.
  ///
  /// - **Suspension:** parks until a child ends; on a plain thread, blocks it.
  /// - **Cancellation:** `CancellationError` if the fiber was cancelled, a deadline around the call
  ///   has passed, or a group around this one fails; no result is lost.
  /// - Returns: what it returned; nil if no child is left.
  /// - Throws: what it threw.
  /// - Complexity: no allocation.
  @inlinable
  public func next() throws -> Child? {
    // SAFETY: runs as the body, which alone calls this.
    while let record = unsafe try nextChild(core, uncancellable: false) {
      // SAFETY: it has ended, and its reference was handed to us.
      if unsafe record.pointee.flags & .failed == 0 {
        return unsafe record.takeOutcome(as: Child.self)
      }
      let provoked = unsafe record.pointee.flags & .provoked != 0
      let error = unsafe record.takeOutcome(as: (any Error).self)
      if !provoked { throw error }
    }
    return nil
  }

  /// Waits for the next child to end, and gives its outcome, whatever it is.
  ///
  /// - **Suspension:** parks until a child ends; on a plain thread, blocks it.
  /// - **Cancellation:** none: when the fiber is cancelled so are the children, which then end.
  /// - Returns: its outcome; nil if no child is left.
  /// - Complexity: no allocation.
  @inlinable
  public func nextResult() -> Result<Child, any Error>? {
    // SAFETY: runs as the body, which alone calls this.
    guard let record = unsafe try? nextChild(core, uncancellable: true) else { return nil }
    // SAFETY: it has ended, and its reference was handed to us.
    if unsafe record.pointee.flags & .failed == 0 {
      return .success(unsafe record.takeOutcome(as: Child.self))
    }
    return .failure(unsafe record.takeOutcome(as: (any Error).self))
  }

  /// Waits until all children have ended, and releases what they returned.
  ///
  /// An error of theirs is thrown at the end of the group.
  ///
  /// - **Suspension:** parks until the last has ended; on a plain thread, blocks it.
  /// - **Cancellation:** none: when the fiber is cancelled so are the children, which then end.
  public func waitForAll() { discardChildren(core) }

  /// Cancels all children. Those started afterwards start cancelled. What they throw because of it
  /// is no error of the group.
  ///
  /// - **Suspension:** never.
  public func cancelAll() { GroupCore.cancel([core]) }

  /// Whether the group was cancelled: by `cancelAll()`, an error, or its fiber's cancellation.
  @inlinable
  public var isCancelled: Bool { core.isCancelled }

  /// Whether no child is left whose outcome was not handed out.
  @inlinable
  public var isEmpty: Bool { hasNoChildren(core) }
}

/// The body's alone.
@available(*, unavailable)
extension FiberGroup: Sendable {}

extension UnsafeMutablePointer where Pointee == weft_fiber {
  /// Moves the outcome out of a child that has ended, and drops the reference to it.
  @inlinable @inline(__always)
  func takeOutcome<T>(as type: T.Type) -> T {
    // SAFETY: stored as this type; the flags that deinit reads change with it.
    let value = unsafe outcome(as: T.self).move()
    if unsafe pointee.flags & .owns != 0 {
      unsafe weft_fiber_clear_flag(self, .owns)
      unsafe runner.deinitialize(count: 1)
      if !fitsInRecord(T.self) { unsafe pointee.body.0?.deallocate() }
    }
    unsafe releaseChild(self)
    return value
  }
}

// SAFETY: the caller has the group's reference, and gives it up.
@usableFromInline
func releaseChild(_ record: Record) { unsafe record.unmanagedCell.release() }
