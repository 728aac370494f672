import CWeft

// fork() copies one thread of the process. In the child the parent's schedulers have no workers any
// more, so their fibers do not run there: whoever uses one is told so by name. A child of a plain
// thread may start schedulers of its own, and `Scheduler.shared` starts anew. A child whose fork()
// was called by a fiber goes on on that fiber's stack, with nothing around it that could run
// another: it may call exec or _exit, and is refused everything else.

extension SchedulerCore {
  /// For paths on which a thread uses a scheduler that is not its own.
  func refuseAfterFork() {
    if forkGeneration != weft_fork_generation() { fatalError("weft: \(SchedulerError.forked)") }
  }
}

/// Waiting for a fiber of the parent would last for ever.
///
/// The fiber may run, and end, at the same time, and its scheduler go with it: the address of its
/// worker is looked for among those of the schedulers that run, and not followed.
func refuseAfterFork(of record: Record) {
  if weft_fork_generation() == 0 { return }
  // SAFETY: the caller's handle keeps the record alive.
  // ORDERING: relaxed; any of the workers that ran it will do, since all are one scheduler's.
  let home = unsafe weft_fiber_home(record)
  let isKnown = SchedulerList.withLock { cores in
    cores.contains { core in (0..<core.capacity).contains { unsafe core.workers[$0] == home } }
  }
  if !isKnown, unsafe !hasEnded(record) { fatalError("weft: \(SchedulerError.forked)") }
}

/// For paths of plain threads, among which the thread of such a fiber looks like one.
package func refuseOnForkedWorker() {
  if weft_forked_on_worker() { fatalError("weft: \(SchedulerError.forked)") }
}
