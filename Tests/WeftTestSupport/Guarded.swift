import Glibc

/// A value behind a pthread mutex. Thread sanitizer knows those; it reports a race on what a
/// `Synchronization.Mutex` guards.
///
/// `@unchecked Sendable`: SAFETY: the value is touched with the mutex held.
@safe
public final class Guarded<Value>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var value: Value

  /// Guards a value.
  public init(_ value: Value) {
    self.value = value
    // SAFETY: initialised here and destroyed in deinit; nobody holds it then.
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe pthread_mutex_init(mutex, nil)
  }

  deinit {
    // SAFETY: nobody else has this object any more.
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  /// Runs a function with the value, alone.
  public func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    // SAFETY: alive as long as self.
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
