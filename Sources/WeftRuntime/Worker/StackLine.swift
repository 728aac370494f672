import CWeft
import WeftContext

// Stacks for fibers that start, and the lines of those that none could be had for.
//
// A fiber takes its stack from the cache of the worker that runs it first. Where the kernel refuses
// one, the fiber joins the line for its class of sizes. The lines are served when a fiber has ended
// and, since stacks come free elsewhere too, now and then by workers that have nothing else to do.
// An attempt that fails costs system calls: so once a class was refused, fibers that want one of it
// join the line without an attempt, until a worker at leisure has found some again, or nobody is
// left in any line. Each class has its own, so that a small stack need not wait for a huge one.

/// Fibers that wait for a stack of one class, first come, first served. Linked through the records,
/// which are in no queue: a line grows where there is no memory.
@safe
struct StackLine {
  private(set) var first: Record?
  private var last: Record?

  init() {
    // SAFETY: no addresses.
    unsafe first = nil
    unsafe last = nil
  }

  mutating func append(_ record: Record) {
    // SAFETY: those in the line are in no queue, and ended by nobody; the lock is held.
    unsafe record.pointee.next = nil
    if let last = unsafe last { unsafe last.pointee.next = record } else { unsafe first = record }
    unsafe last = record
  }

  mutating func removeFirst() {
    // SAFETY: as above.
    unsafe first = unsafe first?.pointee.next
    if unsafe first == nil { unsafe last = nil }
  }
}

extension SchedulerCore {
  /// A fiber that got no stack waits for one.
  ///
  /// - Parameter error: why; nil if no attempt was made.
  func joinStackLine(_ record: Record, _ error: StackError?) {
    // SAFETY: the caller holds the fiber: it is in no queue. A word of this scheduler.
    // ORDERING: the count is raised under the lock that whoever finds it raised takes.
    let stackClass = unsafe weft_stack_class(Int(weft_fiber_stack_bytes(record)))
    lifeLock.withLock {
      if let error { noteRefusal(stackClass, error) }
      unsafe stackLines[Int(stackClass)].append(record)
      _ = unsafe weft_word_add(words.starved, 1)
    }
  }

  /// GUARDED BY: lifeLock
  private func noteRefusal(_ stackClass: UInt32, _ error: StackError) {
    // SAFETY: words of this scheduler.
    // ORDERING: relaxed; a hint that saves attempts, written under the lock.
    stackError = error
    let refused = unsafe weft_pool_refused(words.pool)
    unsafe weft_word_store_relaxed(refused, weft_word_load_relaxed(refused) | 1 << stackClass)
    _ = unsafe weft_word_add(words.stackRefusals, 1)
  }

  /// Gives stacks to fibers in the lines, as far as there are any, and makes them runnable.
  ///
  /// - Parameter most: how many; 1 after the end of a fiber, which gave one back.
  func serveStackLines(most: Int) {
    // SAFETY: runs on a worker's thread. What came out of a line is in no queue, and ours.
    var chain = unsafe takeFromStackLines(most: most)
    while let record = unsafe chain {
      unsafe chain = record.pointee.next
      unsafe makeRunnable(record)
    }
  }

  /// A chain of those that have a stack now.
  private func takeFromStackLines(most: Int) -> Record? {
    // SAFETY: those in a line are in no queue: whoever has the lock has them. Words of this
    // scheduler.
    // ORDERING: relaxed; a hint, written under the lock.
    unsafe lifeLock.withLock { () -> Record? in
      var taken = StackLine()
      var count = 0
      for stackClass in stackLines.indices {
        while count < most, let record = unsafe stackLines[stackClass].first {
          // SAFETY: as above.
          var stack = unsafe weft_stack()
          let failure = unsafe takeStack(for: record, &stack)
          if failure != WEFT_STACK_OK {
            noteRefusal(UInt32(stackClass), unsafe stackFailure(failure, record, stack))
            break
          }
          stackLines[stackClass].removeFirst()
          unsafe taken.append(record)
          count += 1
        }
      }
      let isLast =
        unsafe count > 0 && weft_word_subtract(words.starved, UInt64(count)) == UInt64(count)
      if isLast || (count > 0 && most > 1) {
        unsafe weft_word_store_relaxed(weft_pool_refused(words.pool), 0)
      }
      return unsafe taken.first
    }
  }
}

/// Gives a fiber its stack, on the worker that runs it first. False if there is none: the fiber has
/// joined the line.
///
/// COST: with a stack in the cache, a load and a predicted branch more than the pop.
func bindStack(_ record: Record, _ worker: Worker) -> Bool {
  // SAFETY: the fiber never ran, and is ours. A structure of zeros, until it is acquired.
  // ORDERING: relaxed; a hint that saves attempts.
  let refused = unsafe weft_word_load_relaxed(weft_pool_refused(worker.pointee.pool))
  var stack = unsafe weft_stack()
  let bytes = unsafe Int(weft_fiber_stack_bytes(record))
  if refused == 0 || refused >> weft_stack_class(bytes) & 1 == 0 {
    let failure = unsafe takeStack(for: record, &stack)
    if failure == WEFT_STACK_OK { return true }
    let error = unsafe stackFailure(failure, record, stack)
    unsafe schedulerCore(of: worker).joinStackLine(record, error)
  } else {
    unsafe schedulerCore(of: worker).joinStackLine(record, nil)
  }
  return false
}

/// Takes a stack of this thread's for a fiber, if there is one.
@inline(__always)
private func takeStack(for record: Record, _ stack: inout weft_stack) -> weft_stack_failure {
  // SAFETY: the fiber never ran, and is the caller's; so is the stack, until it goes over to it.
  let failure = unsafe weft_stack_acquire(Int(weft_fiber_stack_bytes(record)), &stack)
  if failure != WEFT_STACK_OK { return failure }
  unsafe weft_fiber_bind(record, &stack, fiberMain)
  if unsafe record.pointee.flags & .named != 0 { unsafe record.reserveName() }
  if unsafe record.pointee.home.unsafelyUnwrapped.pointee.pool.pointee.migrates_started == 0 {
    unsafe record.pointee.flags |= .pinned
  }
  return failure
}

@inline(never)
private func stackFailure(_ failure: weft_stack_failure, _ record: Record, _ stack: weft_stack)
  -> StackError
{
  // SAFETY: the caller has the fiber; numbers.
  unsafe StackError(
    failure, requested: .bytes(Int(weft_fiber_stack_bytes(record))), errno: stack.error)
}
