import CWeft

/// Runs a function that neither cancellation nor a deadline from outside ends.
///
/// ```swift
/// let fiber = Fiber {
///   do {
///     try Fiber.park()
///   } catch {
///     // Cancelled: a farewell that waits needs a shield.
///     try withCancellationShield { try Fiber.sleep(for: .milliseconds(1)) }
///   }
/// }
/// fiber.cancel()
/// try fiber.join()
/// ```
///
/// Inside it the fiber counts as not cancelled, and so do the children of groups that are opened in
/// it. It holds off the fiber's cancellation, deadlines that were set outside it, and failures of
/// groups that were opened outside it. What is set inside it counts: deadlines, groups. Afterwards
/// what was held off is in force again.
///
/// - **Suspension:** never by itself; what the function does may wait.
/// - **Cancellation:** see above.
/// - **Thread safety:** any fiber, any thread. In a coroutine or generator, do not yield from
///   inside the function: whoever resumes it is shielded from then on.
/// - Parameter body: what to run.
/// - Returns: what it returns.
/// - Throws: what it throws.
/// - Complexity: two short locks, no allocation.
@inlinable
public func withCancellationShield<T, E: Error>(_ body: () throws(E) -> T) throws(E) -> T {
  let shield = ShieldScope()
  defer { shield.leave() }
  return try body()
}

/// What to put back when a shield is left.
@usableFromInline
@safe
struct ShieldScope {
  private let place = ScopePlace()
  private let outer: UInt64

  @usableFromInline
  init() {
    // SAFETY: the scope of the code that calls.
    let scope = unsafe weft_current_scope()
    outer = unsafe scope.pointee.deadline
    unsafe scope.pointee.deadline = never
    unsafe changeShields(of: scope, by: 1)
  }

  @usableFromInline
  func leave() {
    // SAFETY: the scope of the code that calls. A carried coroutine may have come to a fiber whose
    // scope lies at the old address.
    guard let scope = unsafe place.current, unsafe scope.pointee.shields > 0 else { return }
    unsafe changeShields(of: scope, by: -1)
    unsafe scope.pointee.deadline = outer
  }

  private func changeShields(of scope: Scope, by change: Int) {
    // SAFETY: the worker is this thread's, used at once, and the scope that of its current fiber,
    // or of this plain thread: there nobody else looks at it.
    if let worker = unsafe weft_worker_current(), unsafe !worker.pointee.current.isRoot {
      unsafe worker.pointee.current.cell.changeShields(by: change)
    } else {
      unsafe scope.pointee.shields = UInt32(Int(scope.pointee.shields) + change)
    }
  }
}
