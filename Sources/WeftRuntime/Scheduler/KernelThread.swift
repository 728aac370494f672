import CWeft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Kernel threads of the runtime's own.
enum KernelThread {
  private final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Starts a thread, which owns what the function captures. It is to be joined or detached.
  ///
  /// - Throws: `SchedulerError.noThread`; the function is released and never runs.
  static func start(_ body: @escaping @Sendable () -> Void) throws(SchedulerError) -> pthread_t {
    #if canImport(Darwin)
      var thread: pthread_t?
    #else
      var thread = pthread_t()
    #endif
    // SAFETY: the thread takes the reference over; where there is no thread it is dropped below.
    let start = unsafe Unmanaged.passRetained(Start(body))
    unsafe weft_thread_keeps(start.toOpaque())
    let status = unsafe pthread_create(
      &thread, nil,
      { argument in
        #if canImport(Darwin)
          let start = unsafe Unmanaged<Start>.fromOpaque(argument)
        #else
          let start = unsafe Unmanaged<Start>.fromOpaque(argument.unsafelyUnwrapped)
        #endif
        // SAFETY: the reference of `start`, which the thread keeps while the function runs.
        let own = unsafe start.takeRetainedValue()
        own.body()
        return nil
      }, start.toOpaque())
    if status != 0 {
      // SAFETY: no thread was started, so the reference is still here.
      unsafe start.release()
      throw .noThread(errno: status)
    }
    #if canImport(Darwin)
      return unsafe thread.unsafelyUnwrapped
    #else
      return thread
    #endif
  }
}
