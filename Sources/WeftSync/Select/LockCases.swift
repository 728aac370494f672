import CWeft
import WeftRuntime

extension FiberMutex where Value: ~Copyable {
  /// In a `select`: locks the mutex.
  ///
  /// - Parameter body: has the value to itself; after it the mutex is free again.
  @inlinable @inline(__always)
  public func onLock<Output>(
    _ body: @escaping (inout sending Value) throws -> Output
  ) -> LockCase<Value, Output> {
    LockCase(mutex: self, body: body)
  }
}

extension FiberSemaphore {
  /// In a `select`: takes permits.
  ///
  /// - Parameters:
  ///   - count: at least 0; a negative number stops the process with a message.
  ///   - body: runs with the permits, which it, or somebody else, gives back.
  @inlinable @inline(__always)
  public func onWait<Output>(
    _ count: Int = 1, _ body: @escaping () throws -> Output
  ) -> PermitCase<Output> {
    if count < 0 { refuseCount(count) }
    return PermitCase(semaphore: self, count: UInt64(count), body: body)
  }
}

extension Promise {
  /// In a `select`: waits for the promise's value.
  ///
  /// - Parameter body: runs with it. The error that the promise was given comes out of the
  ///   `select`.
  @inlinable @inline(__always)
  public func onValue<Output>(
    _ body: @escaping (Value) throws -> Output
  ) -> PromiseCase<Value, Output> {
    PromiseCase(promise: self, body: body)
  }
}

/// A case that locks a mutex.
@frozen
@safe
public struct LockCase<Value: ~Copyable, Output>: SelectPart {
  @usableFromInline let mutex: FiberMutex<Value>
  @usableFromInline let body: (inout sending Value) throws -> Output

  @inlinable @inline(__always)
  init(mutex: FiberMutex<Value>, body: @escaping (inout sending Value) throws -> Output) {
    self.mutex = mutex
    self.body = body
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the part keeps the mutex.
    unsafe cases.pointee.lock = weft_gate_lock(part.pointee.mutex.pointer)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    // SAFETY: as above.
    // ORDERING: relaxed; looked into under the lock.
    unsafe weft_word_load_relaxed(weft_gate_state(part.pointee.mutex.pointer)) == 0 ? 1 : 0
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    // SAFETY: as above; the caller holds the lock.
    unsafe takeMutexOrAnnounce(part.pointee.mutex.pointer, weft_owner_current())
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    unsafe awaitMutex(
      part.pointee.mutex.pointer, weft_case_waiter(one), weft_owner_current())
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    // SAFETY: as above; the mutex is the caller's.
    try unsafe part.pointee.mutex.withOwnedLock(part.pointee.body)
  }
}

/// A case that takes permits.
@frozen
@safe
public struct PermitCase<Output>: SelectPart {
  @usableFromInline let semaphore: FiberSemaphore
  @usableFromInline let count: UInt64
  @usableFromInline let body: () throws -> Output

  @inlinable @inline(__always)
  init(semaphore: FiberSemaphore, count: UInt64, body: @escaping () throws -> Output) {
    self.semaphore = semaphore
    self.count = count
    self.body = body
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the part keeps the semaphore.
    unsafe cases.pointee.lock = weft_gate_lock(part.pointee.semaphore.pointer)
    unsafe cases.pointee.kind = UInt32(WEFT_CASE_PERMITS)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    // SAFETY: as above.
    // ORDERING: relaxed; looked into under the lock.
    let word = unsafe weft_word_load_relaxed(weft_gate_state(part.pointee.semaphore.pointer))
    return unsafe word >> 1 >= part.pointee.count ? 1 : 0
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    // SAFETY: as above; the caller holds the lock.
    unsafe takePermitsOrAnnounce(part.pointee.semaphore.pointer, part.pointee.count)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    unsafe awaitPermits(
      part.pointee.semaphore.pointer, weft_case_waiter(one), part.pointee.count)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    try unsafe part.pointee.body()  // SAFETY: as above
  }
}

/// A case of a promise.
@frozen
@safe
public struct PromiseCase<Value: Sendable, Output>: SelectPart {
  @usableFromInline let promise: Promise<Value>
  @usableFromInline let body: (Value) throws -> Output

  @inlinable @inline(__always)
  init(promise: Promise<Value>, body: @escaping (Value) throws -> Output) {
    self.promise = promise
    self.body = body
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the part keeps the promise.
    unsafe cases.pointee.lock = weft_gate_lock(part.pointee.promise.pointer)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    unsafe part.pointee.promise.isSettled ? 1 : 0  // SAFETY: as above
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    unsafe part.pointee.promise.isSettled  // SAFETY: as above
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    unsafe weft_line_append(
      weft_gate_line(part.pointee.promise.pointer), weft_case_waiter(one))
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    // SAFETY: as above; it is settled.
    try unsafe part.pointee.body(part.pointee.promise.result.unsafelyUnwrapped.get())
  }
}
