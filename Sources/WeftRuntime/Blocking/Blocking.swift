import CWeft

/// Runs a call that blocks its thread on a thread of its own, and parks the fiber meanwhile.
///
/// ```swift
/// let line = try blocking { readLine() }
/// ```
///
/// A worker that blocks in the kernel runs no other fibers; a fiber that waits here leaves its
/// worker to others. Each scheduler has threads for such calls, `Configuration.blockingThreadsMax`
/// at most; beyond that calls wait in the order in which they came. Idle threads end after some
/// seconds.
///
/// The call runs on a plain thread: inside it there is no current fiber, and fibers that it starts
/// go to the shared scheduler. `errno` is the fiber's before and after.
///
/// - **Suspension:** parks until the call has returned, and may resume on another kernel thread. On
///   a plain thread the call just runs.
/// - **Cancellation:** a call that has not started never will, and `CancellationError` is thrown.
///   One that has started reports what it returns or throws, however long it takes.
/// - **Thread safety:** any fiber, any thread.
/// - Parameter body: the call. It does not run concurrently with the fiber, which waits for it.
/// - Returns: what it returns.
/// - Throws: what it throws; `CancellationError` if it never ran.
/// - Complexity: two wake-ups of threads, some 10 µs.
public func blocking<T>(_ body: () throws -> T) throws -> T {
  // SAFETY: runs on this worker's own thread; after the wait only the scheduler's words are used,
  // which the reference `core` keeps.
  try throwIfCancelled()
  guard let worker = unsafe weft_worker_current() else { return try body() }
  let core = unsafe schedulerCore(of: worker)
  var result: Result<T, any Error>?
  let call = {
    do {
      result = .success(try body())
    } catch {
      result = .failure(error)
    }
  }
  // ORDERING: sequentially consistent: counted before the fiber is left, and so before its worker
  // can sleep.
  // Counted from before the fiber parks to after it was woken, so that no moment looks like a
  // deadlock.
  _ = unsafe weft_word_add(core.words.offloaded, 1)
  let ran = withoutActuallyEscaping(call) { unsafe core.blockingPool.run(worker, $0) }
  _ = unsafe weft_word_subtract(core.words.offloaded, 1)
  guard ran, let result else { throw CancellationError() }
  return try result.get()
}
