import CWeft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A kernel thread of the runtime's own; in a simulation, one that is simulated.
///
/// To be joined or detached, once.
// SAFETY: a virtual thread is not freed before it was joined.
@safe
package struct KernelThread {
  // SAFETY: as above.
  @safe
  private enum Kind {
    case kernel(pthread_t)
    case virtual(UnsafeMutablePointer<weft_virtual>)
  }

  private final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  private let kind: Kind

  private init(_ kind: Kind) { self.kind = kind }

  /// Starts a thread, which owns what the function captures.
  ///
  /// - Throws: `SchedulerError.noThread`; the function is released and never runs.
  package static func start(
    _ body: @escaping @Sendable () -> Void
  ) throws(SchedulerError) -> KernelThread {
    // SAFETY: the thread takes the reference over; where there is no thread it is dropped here.
    let start = unsafe Unmanaged.passRetained(Start(body))
    unsafe weft_thread_keeps(start.toOpaque())
    do throws(SchedulerError) {
      if let seam = unsafe weft_seam_current() {
        return try unsafe startVirtual(seam, start.toOpaque())
      }
      return try unsafe startKernel(start.toOpaque())
    } catch {
      unsafe start.release()
      throw error
    }
  }

  /// What a thread runs first.
  private static func run(_ start: UnsafeMutableRawPointer) {
    // SAFETY: the reference of `start`, which the thread keeps while the function runs.
    let own = unsafe Unmanaged<Start>.fromOpaque(start).takeRetainedValue()
    own.body()
  }

  private static func startKernel(
    _ start: UnsafeMutableRawPointer
  ) throws(SchedulerError) -> KernelThread {
    #if canImport(Darwin)
      var thread: pthread_t?
    #else
      var thread = pthread_t()
    #endif
    // SAFETY: the thread gets the pointer that `run` expects.
    let status = unsafe pthread_create(
      &thread, nil,
      { argument in
        #if canImport(Darwin)
          unsafe KernelThread.run(argument)
        #else
          unsafe KernelThread.run(argument.unsafelyUnwrapped)
        #endif
        return nil
      }, start)
    if status != 0 { throw .noThread(errno: status) }
    #if canImport(Darwin)
      return unsafe KernelThread(.kernel(thread.unsafelyUnwrapped))
    #else
      return KernelThread(.kernel(thread))
    #endif
  }

  private static func startVirtual(
    _ seam: UnsafeMutablePointer<weft_seam>, _ start: UnsafeMutableRawPointer
  ) throws(SchedulerError) -> KernelThread {
    // SAFETY: the simulator runs the function with the pointer that it expects, once.
    let refused = weft_seam_fails(UInt32(WEFT_FAULT_THREAD))
    guard !refused,
      let thread = unsafe seam.pointee.start(seam, { unsafe KernelThread.run($0) }, start)
    else { throw .noThread(errno: EAGAIN) }
    return unsafe KernelThread(.virtual(thread))
  }

  /// Waits until it has ended.
  package func join() {
    switch kind {
    case .kernel(let thread): pthread_join(thread, nil)
    case .virtual(let thread):
      // SAFETY: a virtual thread is joined by one of its simulation.
      if let seam = unsafe weft_seam_current() { unsafe seam.pointee.join(seam, thread) }
    }
  }

  /// Nobody will join it.
  package func detach() {
    switch kind {
    case .kernel(let thread): pthread_detach(thread)
    case .virtual: break  // its simulation waits for all
    }
  }

  /// Whether it is the one that calls.
  package var isCurrent: Bool {
    // SAFETY: only compared.
    switch kind {
    case .kernel(let thread): return pthread_equal(thread, pthread_self()) != 0
    case .virtual(let thread): return unsafe weft_seam_current()?.pointee.current == thread
    }
  }
}
