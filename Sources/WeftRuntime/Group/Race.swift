import CWeft

/// Runs several functions at once, each in a fiber, and returns what the first to succeed returns.
///
/// ```swift
/// let servers = ["near", "far"]
/// let answer = try race(
///   servers.map { server in
///     {
///       try Fiber.sleep(for: .milliseconds(server.count))
///       return "from \(server)"
///     }
///   })
/// print(answer)  // from far
/// ```
///
/// In an array literal Swift wants each closure marked `@Sendable in`; as arguments of their own
/// they need no mark.
///
/// The others are cancelled, and it returns when they have ended: one that does not look at its
/// cancellation is waited for.
///
/// - **Suspension:** parks until all have ended; on a plain thread, blocks it. May resume on
///   another kernel thread.
/// - **Cancellation:** when the fiber is cancelled, or a deadline around the call passes, so are
///   all of them, and `CancellationError` is thrown once they have ended. A value that was there
///   before wins. In a fiber that is cancelled already none is started.
/// - **Thread safety:** any fiber, any thread.
/// - Parameter operations: what to run.
/// - Returns: the first value.
/// - Throws: if all fail, the error that was first in time.
/// - Precondition: there is at least one.
/// - Complexity: a group, and a fiber for each.
@inlinable
public func race<T: Sendable>(_ operations: [@Sendable () throws -> T]) throws -> T {
  if operations.isEmpty { refuseEmptyRace() }
  try throwIfCancelled()
  return try withFiberGroup(of: T.self, onError: .collect) { group in
    for operation in operations { group.spawn(operation: operation) }
    var firstError: (any Error)?
    while let result = try group.nextArrived() {
      switch result {
      case .success(let value):
        group.cancelAll()
        return value
      case .failure(let error):
        if firstError == nil { firstError = error }
      }
    }
    throw firstError ?? CancellationError()
  }
}

/// Runs several functions at once, each in a fiber, and returns what the first to succeed returns.
///
/// ```swift
/// let text = try race(
///   {
///     try Fiber.sleep(for: .seconds(60))
///     return "slow"
///   }, { "fast" })
/// print(text)  // fast
/// ```
///
/// As `race` with an array, which says all else.
///
/// - Parameters:
///   - first: what to run.
///   - others: what to run beside it.
/// - Returns: the first value.
/// - Throws: if all fail, the error that was first in time.
@inlinable
public func race<T: Sendable>(
  _ first: @escaping @Sendable () throws -> T, _ others: (@Sendable () throws -> T)...
) throws -> T {
  try race([first] + others)
}

@usableFromInline
func refuseEmptyRace() -> Never {
  fatalError("weft: race was called without operations, so none can win. Give it one at least.")
}

extension FiberGroup {
  /// As next(), but each child's outcome is a result, and those that have ended come before the
  /// cancellation of the caller.
  @inlinable
  func nextArrived() throws(CancellationError) -> Result<Child, any Error>? {
    // SAFETY: runs as the body, which alone calls this. The child has ended, and its reference was
    // handed to us.
    guard let record = unsafe try nextArrivedChild(core) else { return nil }
    if unsafe record.pointee.flags & .failed == 0 {
      return .success(unsafe record.takeOutcome(as: Child.self))
    }
    return .failure(unsafe record.takeOutcome(as: (any Error).self))
  }
}
