import CWeft
import WeftContext

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A fiber's object, not yet queued, with the two references that FiberCell.swift names. That of
/// the handle is the caller's: a bare pointer, which nothing on the way retains and releases.
@inline(__always)
func makeCell(
  name: String?, site: weft_site, stackBytes: UInt64, flags: UInt32, home: Worker
) -> Record {
  // SAFETY: nobody else knows the object yet, and nothing of it is set but that it is pooled.
  let record = unsafe Record(object: weft_record_acquire() ?? makeUnpooled())
  if let name {
    unsafe record.cell.extras = FiberExtras(name: name)
    unsafe record.pointee.flags |= .named
  }
  unsafe record.pointee.flags |= flags
  unsafe weft_fiber_set_stack_bytes(record, stackBytes)
  unsafe record.pointee.site = site
  unsafe record.pointee.home = home
  unsafe record.pointee.frame.fpctl = weft_fp_default()
  return unsafe record
}

/// An object such as weft_record_acquire gives, in memory of its own: under sanitizers, or where
/// there is none in the pool.
@inline(never)
private func makeUnpooled() -> UnsafeMutableRawPointer {
  // SAFETY: nobody else knows the object yet, so the second reference (that of the run, dropped by
  // WEFT_AFTER_END) needs no atomic operation.
  let object = unsafe Unmanaged.passRetained(FiberCell()).toOpaque()
  unsafe weft_retain_unshared(object)
  return unsafe object
}

/// Makes a fiber whose closure the caller puts in.
///
/// COST: one allocation; no atomic operation on a worker.
@usableFromInline
func makeFiber(
  _ name: String?, _ placement: Placement, _ priority: FiberPriority, _ stackSize: StackSize?,
  _ site: weft_site
) -> Record {
  // SAFETY: runs on this worker's own thread; the current fiber's flags are its own. The new record
  // is nobody else's yet.
  guard let worker = unsafe weft_worker_current() else {
    return unsafe makeOutside(name, placement, priority, stackSize, site)
  }
  let current = unsafe worker.pointee.current
  var flags: UInt32 = priority == .high ? .high : 0
  if priority == .inherited { flags = unsafe current.pointee.flags & .high }
  var home = unsafe worker
  if case .worker(let index) = placement {
    unsafe home = schedulerCore(of: worker).worker(at: index)
    flags |= .pinned
  }
  let bytes =
    unsafe stackSize.map { unsafe checkedBytes($0, site) }
    ?? worker.pointee.pool.pointee.stack_bytes
  let record = unsafe makeCell(
    name: name, site: site, stackBytes: bytes, flags: flags, home: home)
  if unsafe current.pointee.flags & .locals != 0 {
    unsafe record.cell.inheritLocals(of: weft_fiber_scope(current))
  }
  return unsafe record
}

/// A size that no stack has is refused where it is asked for: a fiber that waits for one would wait
/// for ever.
private func checkedBytes(_ size: StackSize, _ site: weft_site) -> UInt64 {
  // SAFETY: the site names constants of the program.
  if size.bytes > 0, weft_stack_size_is_possible(size.bytes) { return UInt64(size.bytes) }
  let error = StackError(WEFT_STACK_SIZE_OUT_OF_RANGE, requested: size, errno: 0)
  fatalError("weft: \(unsafe siteText(site)): \(SchedulerError.noStack(error))")
}

private func makeOutside(
  _ name: String?, _ placement: Placement, _ priority: FiberPriority, _ stackSize: StackSize?,
  _ site: weft_site
) -> Record {
  // SAFETY: the shared scheduler's workers live as long as it does, and the site points to
  // constants of the program.
  refuseOnForkedWorker()
  let core = Seam.core ?? Scheduler.shared.core
  var flags: UInt32 = priority == .high ? .high : 0
  var home = unsafe core.workers[0]
  if case .worker(let index) = placement {
    unsafe home = core.worker(at: index)
    flags |= .pinned
  }
  let bytes = unsafe checkedBytes(stackSize ?? core.configuration.stackSize, site)
  let record = unsafe makeCell(
    name: name, site: site, stackBytes: bytes, flags: flags, home: home)
  unsafe record.cell.inheritLocals(of: weft_thread_scope())
  return unsafe record
}

extension SchedulerCore {
  func worker(at index: Int) -> Worker {
    if index < 0 || index >= capacity { fatalError("weft: \(SchedulerError.noSuchWorker(index))") }
    // SAFETY: checked above.
    ensureThread(index)
    return unsafe workers[index]
  }
}

/// Queues a fiber that is complete.
@usableFromInline
func launch(_ record: Record, _ placement: Placement) {
  // SAFETY: the fiber is complete and in no queue: ours until it is pushed, and not touched after.
  // Its home belongs to a scheduler that the caller, or Scheduler.shared, keeps.
  let home = unsafe record.pointee.home.unsafelyUnwrapped
  guard let worker = unsafe weft_worker_current(),
    unsafe worker.pointee.pool == home.pointee.pool
  else {
    unsafe launchOutside(record, schedulerCore(of: home), placement)
    return
  }
  // Counted before it is queued, so that it cannot end first.
  unsafe weft_word_bump(weft_worker_spawned(worker), 1)
  if unsafe SharedWords(of: worker).isCancelling { _ = unsafe record.cancelWait() }
  if unsafe placement == .automatic && worker.pointee.pool.pointee.spreads == 0
    || placement == .here
  {
    unsafe pushLocal(record, worker)
    unsafe workAdded(on: worker)
  } else {
    unsafe launchElsewhere(record, worker, placement)
  }
}

private func launchElsewhere(_ record: Record, _ worker: Worker, _ placement: Placement) {
  // SAFETY: as in launch, on this worker's own thread.
  let core = unsafe schedulerCore(of: worker)
  switch placement {
  case .exclusive:
    unsafe core.placeExclusively(record)
  case .worker:
    unsafe makeRunnable(record)
  default:
    let target = unsafe core.lessLoaded()
    if unsafe target == worker {
      unsafe pushLocal(record, worker)
    } else {
      unsafe core.inject(record, near: target)
    }
  }
}

private func launchOutside(_ record: Record, _ core: SchedulerCore, _ placement: Placement) {
  // SAFETY: as in launch; words of a scheduler to which `core` is a reference.
  // ORDERING: sequentially consistent, paired with the swap in beginDraining and the count that
  // follows it: either the shutdown counts this fiber, or the phase is seen here.
  _ = unsafe weft_word_add(core.words.outsideSpawned, 1)
  if unsafe weft_word_load_seq(core.words.phase) != SchedulerCore.Phase.open {
    _ = unsafe weft_word_subtract(core.words.outsideSpawned, 1)
    fatalError("weft: \(SchedulerError.shutDown)")
  }
  if placement == .exclusive {
    unsafe core.placeExclusively(record)
  } else if unsafe record.pointee.flags & .pinned != 0 {
    unsafe makeRunnable(record)
  } else {
    unsafe core.inject(record, near: nil)
  }
}

/// Notes that somebody took the error, so that it is not reported as unjoined.
@usableFromInline
func markJoined(_ record: Record) {
  // SAFETY: the caller's handle keeps the record alive.
  // ORDERING: atomic, since several may join at once; the last release of the fiber, which reads
  // it, comes after all of them.
  unsafe weft_fiber_set_flag(record, .joined)
}

extension FiberCell {
  func cancel() {
    // SAFETY: this object is the record's, and the caller refers to it.
    let record = unsafe pointer
    // A finished fiber's worker may be gone.
    if unsafe hasEnded(record) { return }
    unsafe perform(unsafe record.cancelWait(), unsafe record)
    GroupCore.cancel(groups(openedAtShields: 0))
  }

  var isCancelled: Bool {
    // SAFETY: this object is the record's, and the caller refers to it; the worker is this
    // thread's, used at once.
    if let worker = unsafe weft_worker_current(), unsafe worker.pointee.current == pointer {
      // A shutdown, or the end of a group, is noted in a fiber that asks about itself.
      _ = unsafe isCancelledHere(worker)
    }
    return unsafe pointer.isCancelled
  }

  func unpark() {
    // SAFETY: this object is the record's, and the caller refers to it.
    let record = unsafe pointer
    if unsafe hasEnded(record) { return }
    unsafe perform(unsafe record.grantPermit(), unsafe record)
  }

  /// Numbers are given out when first asked for: most fibers never need one.
  var id: FiberID { unsafe FiberID(rawValue: weft_fiber_id(pointer)) }  // SAFETY: `self` lives
}
