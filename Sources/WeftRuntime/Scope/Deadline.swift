import CWeft

/// A deadline has passed: thrown by the `withDeadline` or `withTimeout` that set it.
///
/// ```swift
/// do {
///   try withTimeout(.milliseconds(1)) { try Fiber.park() }
/// } catch is DeadlineExceeded {
///   print("nobody came")
/// }
/// ```
public struct DeadlineExceeded: Error, Hashable, Sendable, CustomStringConvertible {
  /// The error.
  public init() {}

  /// `the deadline has passed`.
  public var description: String { "the deadline has passed" }
}

/// Runs a function whose waits end when an instant has come.
///
/// ```swift
/// let deadline = ContinuousClock.now + .milliseconds(1)
/// do {
///   try withDeadline(deadline) {
///     try Fiber.sleep(for: .seconds(60))
///   }
/// } catch is DeadlineExceeded {
///   print("too late")
/// }
/// ```
///
/// From the instant on, what can be cancelled throws `CancellationError` in the function, and
/// `Fiber.isCancelled` is true; so it is in the children of groups that were opened in it. The
/// error becomes `DeadlineExceeded` where it leaves the `withDeadline` whose instant has passed.
/// Nothing is interrupted that does not ask: the function's value is returned however late it
/// comes, and other errors pass through as they are. Afterwards the fiber is as it was before.
///
/// Deadlines nest, and the earliest is in force. `withCancellationShield` holds off those outside
/// it. Fibers that the function starts with `Fiber { }` are not limited.
///
/// - **Suspension:** never by itself; what the function does may wait.
/// - **Cancellation:** of the fiber as without: it stays a `CancellationError`.
/// - **Thread safety:** any fiber, any thread; on a plain thread it ends what blocks that. In a
///   coroutine or generator, do not yield from inside the function: whoever resumes it has the
///   deadline from then on, and does not get rid of it where another fiber goes on with the body.
/// - Parameters:
///   - instant: when waits end. In the past they end at once.
///   - body: what to run.
/// - Returns: what it returns.
/// - Throws: `DeadlineExceeded`, or what the function throws.
/// - Complexity: two looks at the clock. A wait inside costs a timer; without a deadline it costs
///   one comparison.
@inlinable
public func withDeadline<T>(
  _ instant: ContinuousClock.Instant, _ body: () throws -> T
) throws -> T {
  try runInScope(body, DeadlineScope(at: instant))
}

/// Runs a function whose waits end after some time.
///
/// ```swift
/// let value = try withTimeout(.seconds(5)) { Fiber { 6 * 7 }.join() }
/// print(value)  // 42
/// ```
///
/// As `withDeadline`, with an instant that lies so far ahead. Zero and negative durations have
/// passed already; one beyond the end of time never passes.
///
/// - **Suspension:** never by itself; what the function does may wait.
/// - **Cancellation:** as of `withDeadline`.
/// - **Thread safety:** as of `withDeadline`.
/// - Parameters:
///   - duration: after how long waits end.
///   - body: what to run.
/// - Returns: what it returns.
/// - Throws: `DeadlineExceeded`, or what the function throws.
/// - Complexity: as of `withDeadline`.
@inlinable
public func withTimeout<T>(_ duration: Duration, _ body: () throws -> T) throws -> T {
  try runInScope(body, DeadlineScope(after: duration))
}

@inlinable @inline(__always)
func runInScope<T>(_ body: () throws -> T, _ scope: DeadlineScope) throws -> T {
  let result: T
  do {
    result = try body()
  } catch {
    throw scope.leave(because: error)
  }
  scope.leave()
  return result
}

/// What to put back when a `withDeadline` is left.
@usableFromInline
@safe
struct DeadlineScope {
  private let place = ScopePlace()
  private let own: UInt64
  private let outer: UInt64

  @usableFromInline
  init(after duration: Duration) { self.init(own: deadline(after: duration)) }

  @usableFromInline
  init(at instant: ContinuousClock.Instant) { self.init(own: deadline(at: instant)) }

  private init(own: UInt64) {
    // SAFETY: the scope of the code that calls.
    let scope = unsafe weft_current_scope()
    self.own = own
    outer = unsafe scope.pointee.deadline
    unsafe scope.pointee.deadline = min(outer, own)
  }

  @usableFromInline
  func leave() {
    // SAFETY: the scope of the code that calls.
    if let scope = unsafe place.current { unsafe scope.pointee.deadline = outer }
  }

  /// - Returns: the error to throw.
  @usableFromInline
  func leave(because error: any Error) -> any Error {
    leave()
    guard error is CancellationError, weft_clock_now() >= own, !isCancelledByOthers() else {
      return error
    }
    return DeadlineExceeded()
  }

  private func isCancelledByOthers() -> Bool {
    // SAFETY: the worker is this thread's, used at once; its current fiber is the one that calls.
    guard let worker = unsafe weft_worker_current(), unsafe !worker.pointee.current.isRoot else {
      return false
    }
    return unsafe WeftRuntime.isCancelledByOthers(worker, at: weft_clock_now())
  }
}
