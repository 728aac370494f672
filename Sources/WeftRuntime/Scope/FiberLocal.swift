import CWeft

/// A value that code has for the time of a call, and that the fibers which it starts inherit.
///
/// ```swift
/// enum Request {
///   static let id = FiberLocal<String?>(nil)
/// }
/// Request.id.withValue("r-17") {
///   let seen = Fiber { Request.id.value }.join()
///   print(seen ?? "none")  // r-17
/// }
/// ```
///
/// A fiber and a group's child start with what was bound where they were started, and keep it
/// alive until they end; handles to them do not. On a plain thread `value` is the default, but
/// inside `withValue` of the same thread.
///
/// - **Thread safety:** any fiber, any thread. What is bound belongs to the fiber, wherever it
///   runs. In a coroutine or generator, do not yield from inside `withValue`: whoever resumes it
///   has the binding from then on.
public final class FiberLocal<Value: Sendable>: Sendable {
  @usableFromInline let defaultValue: Value

  /// A local that is not bound yet. Meant for a `static let`.
  ///
  /// - Parameter defaultValue: what `value` is where nothing is bound.
  @inlinable
  public init(_ defaultValue: Value) { self.defaultValue = defaultValue }

  /// What is bound here, or the default.
  ///
  /// - **Suspension:** never.
  /// - Complexity: O(n) for n locals that are bound here.
  @inlinable
  public var value: Value {
    guard let link = findLocal(self) else { return defaultValue }
    // SAFETY: found by its key, which is this object, and only withValue makes links with it.
    return unsafe unsafeDowncast(link, to: LocalLink<Value>.self).value
  }

  /// Runs a function in which `value` is another.
  ///
  /// ```swift
  /// let depth = FiberLocal(0)
  /// depth.withValue(depth.value + 1) { print(depth.value) }  // 1
  /// ```
  ///
  /// - **Suspension:** never by itself; what the function does may wait.
  /// - Parameters:
  ///   - value: what is bound for the time of the call.
  ///   - body: what to run.
  /// - Returns: what it returns.
  /// - Throws: what it throws.
  /// - Complexity: O(n) for n locals that are bound here; one allocation, and one for each local
  ///   that was bound since this one was.
  @inlinable
  public func withValue<R, E: Error>(
    _ value: Value, _ body: () throws(E) -> R
  ) throws(E) -> R {
    let scope = LocalScope(LocalLink(key: self, value: value))
    defer { scope.leave() }
    return try body()
  }
}

/// The link that holds a local's value.
// SAFETY: constant, and of a Sendable type.
@usableFromInline
final class LocalLink<Value: Sendable>: LocalBinding, @unchecked Sendable {
  @usableFromInline let value: Value

  @usableFromInline
  init(key: FiberLocal<Value>, value: Value) {
    self.value = value
    super.init(key: key)
  }

  override func copy() -> LocalBinding {
    // SAFETY: init took the key from a local of this type.
    unsafe LocalLink(key: unsafeDowncast(key, to: FiberLocal<Value>.self), value: value)
  }
}
