import Glibc

/// Runs a function on a new kernel thread, waits for it, and returns what it returns.
///
/// Tests run inside a Swift task; a function that must not see one runs here.
public func onNewThread<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
  var result: Result<R, E>?
  let work = {
    do throws(E) {
      result = .success(try body())
    } catch {
      result = .failure(error)
    }
  }
  withoutActuallyEscaping(work) { work in
    // SAFETY: this thread touches nothing until the other has ended.
    let thread = unsafe Thread.sharing(work)
    thread.join()
  }
  return try result!.get()
}

/// Hands a value over to a new kernel thread, which consumes it, and waits.
public func onNewThread<Value: ~Copyable, R: Sendable>(
  sending value: consuming sending Value,
  _ body: @Sendable (consuming Value) throws -> R
) throws -> R {
  let cell = UnsafeMutablePointer<Value>.allocate(capacity: 1)
  // SAFETY: initialised here, taken once, by the thread that is joined before the memory goes.
  unsafe cell.initialize(to: value)
  defer { unsafe cell.deallocate() }
  return try onNewThread { () throws in try body(unsafe cell.move()) }
}

/// A kernel thread that runs one function.
///
/// `@unchecked Sendable`: SAFETY: the handle never changes; pthread_join may be called anywhere.
public final class Thread: @unchecked Sendable {
  private final class Work {
    let call: () -> Void
    init(_ call: @escaping () -> Void) { self.call = call }
  }

  private let handle: pthread_t

  /// Starts a thread.
  public init(_ body: sending @escaping () -> Void) { handle = Self.start(body) }

  private init(handle: pthread_t) { self.handle = handle }

  /// Starts a thread that shares what `body` captured; the caller answers for it.
  @unsafe
  public static func sharing(_ body: @escaping () -> Void) -> Thread {
    Thread(handle: start(body))
  }

  private static func start(_ body: @escaping () -> Void) -> pthread_t {
    var handle = pthread_t()
    // SAFETY: the new thread takes the reference that is passed to it here.
    let work = unsafe Unmanaged.passRetained(Work(body))
    let failure = unsafe pthread_create(
      &handle, nil,
      { work in
        // SAFETY: retained for this thread above, taken once.
        let work = unsafe Unmanaged<Work>.fromOpaque(work!).takeRetainedValue()
        work.call()
        return nil
      }, unsafe work.toOpaque())
    precondition(failure == 0, "a thread could not be made: error \(failure)")
    return handle
  }

  /// Waits until the thread's function has returned. Once.
  public func join() {
    let failure = pthread_join(handle, nil)
    precondition(failure == 0, "a thread could not be joined: error \(failure)")
  }
}

/// Some threads that start their work at the same time and are waited for.
public func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let threads = (0..<count).map { index in Thread { body(index) } }
  for thread in threads { thread.join() }
}
