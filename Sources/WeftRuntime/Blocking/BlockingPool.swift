import CWeft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

// Threads for calls that block. Each scheduler has its own, started when they are needed and ended
// after some idle seconds; the scheduler's end joins those that are left. First come, first served.
//
// A call lies on the stack of the fiber that waits for it. Its states:
//
//     queued ── a thread takes it ──▶ running ── returns ──▶ done
//       │
//       └── the fiber is cancelled: taken out, never ran
//
// INVARIANT: after the wake inside the lock that makes it done, no thread touches the call.

/// A call, on its fiber's stack. GUARDED BY: the pool's lock, but for `body` and `errno`, which are
/// the thread's while it runs.
@unsafe
struct BlockingCall {
  enum State { case queued, running, done }

  let body: () -> Void
  let record: Record
  /// The wait that its end ends.
  var number: UInt64
  var state = State.queued
  var errno: Int32
  var next: UnsafeMutablePointer<BlockingCall>?
  var previous: UnsafeMutablePointer<BlockingCall>?
}

// SAFETY: what is not constant is guarded by `lock`.
@safe
final class BlockingPool: @unchecked Sendable {
  private typealias Call = UnsafeMutablePointer<BlockingCall>

  private let limit: Int
  private let idleNanoseconds: UInt64
  private let lock = CLock()
  /// Changes whenever an idle thread has something to look at; they sleep on it.
  private let changes: UnsafeMutablePointer<weft_word>

  // GUARDED BY: lock
  private var head: Call?
  private var tail: Call?
  private var queued = 0
  private var running = 0
  private var idle = 0
  private var isStopping = false
  private var threads: [KernelThread] = []
  /// Those that have ended and must be joined.
  private var ended: [KernelThread] = []

  init(limit: Int, idleNanoseconds: UInt64 = 5_000_000_000) {
    // SAFETY: memory of our own, freed in deinit.
    self.limit = max(1, limit)
    self.idleNanoseconds = idleNanoseconds
    unsafe changes = .allocate(capacity: 1)
    unsafe changes.initialize(to: weft_word())
  }

  deinit { unsafe changes.deallocate() }  // SAFETY: no thread is left, each held a reference

  // MARK: - The fiber's side

  /// Runs a function on a thread of the pool and parks the running fiber meanwhile.
  ///
  /// - Returns: false if the fiber was cancelled before the function started: it never will.
  func run(_ worker: Worker, _ body: @escaping () -> Void) -> Bool {
    // SAFETY: runs on this worker's own thread, as its current fiber.
    let current = unsafe worker.pointee.current
    var call = unsafe BlockingCall(
      body: body, record: current, number: current.waitNumber, errno: weft_errno_address().pointee)
    // SAFETY: the call lies on this stack, and this returns only when no thread will touch it: it
    // was taken out of the list, or is done.
    let ran = unsafe withUnsafeMutablePointer(to: &call) { call in
      // No thread could be had: this worker has to do it.
      if unsafe !submit(call) {
        unsafe call.pointee.body()
        unsafe call.pointee.errno = weft_errno_address().pointee
        return true
      }
      let reason = unsafe suspend(
        worker, flags: cancellableFlag(current), reason: .blocking, object: nil)
      // SWITCH: from here on the worker may be another.
      return unsafe reason != .cancelled || finishCancelled(call)
    }
    unsafe weft_errno_address().pointee = call.errno
    return ran
  }

  /// Its fiber was cancelled: takes the call out, or waits for the one that runs.
  private func finishCancelled(_ call: Call) -> Bool {
    // SAFETY: runs as the fiber whose call it is; the lock guards what threads touch.
    let state = lock.withLock { () -> BlockingCall.State in
      let state = unsafe call.pointee.state
      if state == .queued { unsafe unlink(call) }
      unsafe call.pointee.number = call.pointee.record.waitNumber
      return state
    }
    if state == .running {
      // Not cancellable: what has started reports its value.
      let worker = unsafe weft_worker_current().unsafelyUnwrapped
      _ = unsafe suspend(worker, flags: 0, reason: .blocking, object: nil)
    }
    return state != .queued
  }

  /// Queues a call, and sees to it that a thread takes it. False if there is none.
  private func submit(_ call: Call) -> Bool {
    // SAFETY: under the lock, where the calls in the list lie on stacks of fibers that wait for
    // them.
    lock.withLock {
      unsafe call.pointee.previous = tail
      if let tail = unsafe tail { unsafe tail.pointee.next = call } else { unsafe head = call }
      unsafe tail = call
      queued += 1
      if queued > idle, threads.count < limit, !startThread(), threads.isEmpty {
        unsafe unlink(call)
        return false
      }
      if idle > 0 { notify() }
      return true
    }
  }

  /// GUARDED BY: lock.
  private func unlink(_ call: Call) {
    // SAFETY: under the lock, where the calls in the list lie on stacks of fibers that wait for
    // them.
    let (next, previous) = unsafe (call.pointee.next, call.pointee.previous)
    if let next = unsafe next {
      unsafe next.pointee.previous = previous
    } else {
      unsafe tail = previous
    }
    if let previous = unsafe previous {
      unsafe previous.pointee.next = next
    } else {
      unsafe head = next
    }
    queued -= 1
  }

  private func notify() {
    // SAFETY: a word that lives as long as this object.
    // ORDERING: sequentially consistent; with the futex's own look at the word no change is slept
    // over.
    _ = unsafe weft_word_add(changes, 1)
    unsafe weft_futex_wake(changes, isStopping ? .max : 1)
  }

  // MARK: - The threads

  /// GUARDED BY: lock.
  private func startThread() -> Bool {
    joinEnded()
    // The thread keeps the pool alive.
    guard let thread = try? KernelThread.start({ self.loop() }) else { return false }
    threads.append(thread)
    return true
  }

  private func loop() {
    // The worker that started it may be pinned.
    weft_cpu_unpin()
    // SAFETY: what take() gives is this thread's until finish() has made it done.
    while let call = unsafe take() {
      let errno = unsafe execute(call)
      unsafe finish(call, errno)
    }
  }

  /// A frame of its own, so that nothing of the call is held when its fiber goes on.
  @inline(never)
  private func execute(_ call: Call) -> Int32 {
    // SAFETY: body and errno of a running call are its thread's; the address is this thread's.
    unsafe weft_errno_address().pointee = call.pointee.errno
    unsafe call.pointee.body()
    return unsafe weft_errno_address().pointee
  }

  private func finish(_ call: Call, _ errno: Int32) {
    // SAFETY: the fiber waits until the call is done, which it sees under the lock only. After that
    // no more than the record is used, and only if the wake was won.
    let record = unsafe call.pointee.record
    let duty = lock.withLock {
      running -= 1
      unsafe call.pointee.errno = errno
      unsafe call.pointee.state = .done
      return unsafe record.wake(number: call.pointee.number, reason: .woken)
    }
    unsafe perform(duty, record)
  }

  /// The oldest call, after a wait if there is none. Nil: this thread ends.
  private func take() -> Call? {
    // SAFETY: under the lock the first call of the list waits for a thread. The word lives as long
    // as this object.
    // ORDERING: acquire, under the lock that whoever changes the word holds.
    var deadline = saturatingSum(weft_clock_now(), idleNanoseconds)
    while true {
      var seen: UInt64 = 0
      let found = unsafe lock.withLock { () -> Call? in
        if let call = unsafe head {
          unsafe unlink(call)
          unsafe call.pointee.state = .running
          running += 1
          return unsafe call
        }
        unsafe seen = weft_word_load_acquire(changes)
        idle += 1
        return nil
      }
      // SAFETY: `found` is this thread's from here on.
      if let found = unsafe found { return unsafe found }
      let now = weft_clock_now()
      if now < deadline, !stopping {
        unsafe weft_futex_wait(changes, UInt32(truncatingIfNeeded: seen), deadline - now)
      }
      let leaves = lock.withLock {
        idle -= 1
        if queued > 0 {
          deadline = saturatingSum(weft_clock_now(), idleNanoseconds)
          return false
        }
        return retireIfIdle(deadline)
      }
      if leaves { return nil }
    }
  }

  private var stopping: Bool { lock.withLock { isStopping } }

  /// GUARDED BY: lock.
  private func retireIfIdle(_ deadline: UInt64) -> Bool {
    if isStopping { return true }
    if weft_clock_now() < deadline { return false }
    if let index = threads.firstIndex(where: \.isCurrent) {
      ended.append(threads.remove(at: index))
    }
    return true
  }

  /// GUARDED BY: lock. Those in the list hold it no more.
  private func joinEnded() {
    for thread in ended { thread.join() }
    ended.removeAll()
  }

  /// Calls that wait for a thread.
  var queuedCalls: Int { lock.withLock { queued } }
  /// Threads that have not ended.
  var threadCount: Int { lock.withLock { threads.count } }

  /// Ends the threads and waits for that. No call is under way.
  func stop() {
    let all = lock.withLock { () -> [KernelThread] in
      isStopping = true
      notify()
      joinEnded()
      return threads
    }
    for thread in all { thread.join() }
    lock.withLock { threads.removeAll() }
  }
}
