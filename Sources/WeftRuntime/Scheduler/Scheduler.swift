import CWeft
import WeftContext

/// A pool of workers that runs fibers.
///
/// ```swift
/// let total = try Scheduler.run {
///   let fibers = (0..<10).map { i in Fiber { i * i } }
///   return fibers.reduce(0) { $0 + $1.join() }
/// }
/// ```
///
/// `Scheduler.run` makes the calling thread worker 0 for as long as it runs. `Scheduler.shared` has
/// threads of its own and is started by the first fiber made outside any scheduler. Several may run
/// at once, on several threads.
///
/// - **Thread safety:** any thread.
public final class Scheduler: Sendable {
  let core: SchedulerCore

  init(core: SchedulerCore) { self.core = core }

  /// Starts a scheduler on threads of its own.
  ///
  /// - Throws: ``SchedulerError`` if the configuration is out of range or a thread can't be had.
  public init(_ configuration: Configuration = .init()) throws(SchedulerError) {
    let configuration = configuration.resolved()
    try Scheduler.check(configuration)
    core = SchedulerCore(configuration: configuration, hasVisitor: false)
    try core.startThreads(from: 0)
    core.startHelpers()
  }

  /// The last reference may be dropped by one of the scheduler's own fibers, which can't wait for
  /// itself: then a thread does.
  deinit {
    if core.isOwnThread {
      core.shutDownElsewhere()
    } else {
      core.shutDown(cancelling: true)
    }
  }

  /// The scheduler of fibers that are made outside any other. Started on first use. No part of any
  /// simulation.
  public static var shared: Scheduler { SharedScheduler.get() }

  /// Runs a function as a fiber, with the calling thread as worker 0, and returns what it returns
  /// once all other fibers have ended.
  ///
  /// The main fiber stays on the calling thread. When it returns, fibers that still run are
  /// cancelled and joined, and the workers' threads and descriptors are gone.
  ///
  /// - Suspension: blocks the calling thread. The fibers do not see a Swift task around it.
  /// - Parameters:
  ///   - configuration: how many workers, how much stack, and so on.
  ///   - main: what the main fiber runs.
  /// - Throws: what `main` throws. A configuration out of range, or a call from inside another
  ///   `run`, stops the process with a message, since `main`'s error type has no room for it; use
  ///   `Scheduler(_:)` for one that throws.
  public static func run<T, E: Error>(
    _ configuration: Configuration = .init(), fileID: StaticString = #fileID,
    line: UInt = #line, _ main: () throws(E) -> T
  ) throws(E) -> T {
    var result: Result<T, E>?
    let call = {
      do throws(E) {
        result = .success(try main())
      } catch {
        result = .failure(error)
      }
    }
    // SAFETY: the site points to constants of the program, and runMain returns when main has ended.
    withoutActuallyEscaping(call) { call in
      unsafe runMain(
        configuration, site: weft_site(name: "main", fileID: fileID, line: line), call)
    }
    guard let result else {
      fatalError("weft: Scheduler.run returned before its main did. Please report this bug.")
    }
    return try result.get()
  }

  private static func runMain(
    _ configuration: Configuration, site: weft_site, _ main: @escaping () -> Void
  ) {
    // SAFETY: the worker is only compared with null; the site points to constants of the program.
    let configuration = configuration.resolved()
    do throws(SchedulerError) {
      if weft_forked_on_worker() { throw .forked }
      if unsafe weft_worker_current() != nil { throw .nested }
      try check(configuration)
      let core = SchedulerCore(configuration: configuration, hasVisitor: true)
      try core.startThreads(from: 1)
      unsafe core.runAsVisitor(site, main)
    } catch {
      fatalError("weft: \(error)")
    }
  }

  private static func check(_ configuration: Configuration) throws(SchedulerError) {
    // SAFETY: a structure of zeros, until it is acquired.
    let workers = configuration.workers
    if workers.lowerBound < 1 { throw .workersOutOfRange(workers.lowerBound) }
    if workers.upperBound > 256 { throw .workersOutOfRange(workers.upperBound) }
    for size in [configuration.stackSize, configuration.mainStackSize] {
      var stack = unsafe weft_stack()
      // SAFETY: given back unused.
      let failure = unsafe weft_stack_acquire(size.bytes, &stack)
      if failure != WEFT_STACK_OK {
        throw .noStack(unsafe StackError(failure, requested: size, errno: stack.error))
      }
      unsafe weft_stack_release(&stack)
    }
  }

  /// Stops the scheduler: refuses new fibers from outside, cancels those that run (unless told
  /// not to), waits for all to end, and ends the workers' threads. Idempotent.
  ///
  /// - Suspension: blocks the calling thread; from one of its own fibers it is refused.
  public func shutdown(cancelling: Bool = true) {
    // SAFETY: this thread's own worker.
    if let worker = unsafe weft_worker_current(), unsafe schedulerCore(of: worker) === core {
      fatalError("weft: a fiber can't shut its own scheduler down; return from its main instead")
    }
    core.shutDown(cancelling: cancelling)
  }
}

/// The shared scheduler, anew in each child of `fork()`.
private enum SharedScheduler {
  nonisolated(unsafe) private static var current: Scheduler?  // SAFETY: guarded by its lock

  static func get() -> Scheduler {
    // A lock that a fork() never leaves held in the child.
    weft_process_lock(Int32(WEFT_LOCK_SHARED))
    defer { weft_process_unlock(Int32(WEFT_LOCK_SHARED)) }
    // SAFETY: `current` is touched under the lock only.
    do {
      if let scheduler = unsafe current,
        scheduler.core.forkGeneration == weft_fork_generation()
      {
        return scheduler
      }
      if let parents = unsafe current {
        // Its threads did not come along; it must not be shut down by its deinit either.
        _ = unsafe Unmanaged.passRetained(parents)
      }
      do throws(SchedulerError) {
        // In a simulation too it is the process's own, with threads of the kernel.
        let scheduler = try Seam.outside { () throws(SchedulerError) in try Scheduler() }
        unsafe current = scheduler
        return scheduler
      } catch {
        fatalError("weft: the shared scheduler could not start: \(error)")
      }
    }
  }
}
