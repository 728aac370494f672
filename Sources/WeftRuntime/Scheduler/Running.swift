import CWeft
import WeftContext

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

// Starting and stopping. A shutdown has numbered phases, none of which abandons a fiber:
//
//   1. closing     fibers from outside are refused
//   2. cancelling  (not where the shutdown only waits) all others count as cancelled, and those
//                  that wait are woken with that reason
//      drained     no fiber is left (SchedulerCore.live)
//   3. stopping    the workers leave their loops
//   4. stopped     their threads are joined, descriptors closed with the last reference

extension SchedulerCore {
  // MARK: - Threads

  func startThreads(from first: Int) throws(SchedulerError) {
    // SAFETY: a word that lives as long as this object.
    // ORDERING: release; no thread is started yet.
    if first == 1 { unsafe weft_word_store_release(words.launched, 1) }
    for index in first..<max(first, configuration.workers.lowerBound) {
      try startThread(index)
    }
  }

  func startThread(_ index: Int) throws(SchedulerError) {
    try lifeLock.withLock { () throws(SchedulerError) in try startThreadLocked(index) }
  }

  /// GUARDED BY: lifeLock
  func startThreadLocked(_ index: Int) throws(SchedulerError) {
    if threads[index] != nil || (hasVisitor && index == 0) { return }
    // SAFETY: a word of this scheduler, and a worker of ours that has no thread yet. The thread
    // keeps the core, and with it the worker.
    // Before it runs, so that nobody takes the others' sleep for that of all.
    _ = unsafe weft_word_add(words.launched, 1)
    do throws(SchedulerError) {
      threads[index] = try KernelThread.start { unsafe self.runOnThread(self.workers[index]) }
    } catch {
      _ = unsafe weft_word_subtract(words.launched, 1)
      throw error
    }
    pokeHelper()
  }

  private func runOnThread(_ worker: Worker) {
    // SAFETY: this thread is the only one that is given this worker.
    unsafe enter(worker)
    unsafe runLoop(worker) { self.isStopping }
    unsafe leaveThread(worker)
  }

  /// Makes the calling thread this worker's.
  private func enter(_ worker: Worker) {
    // SAFETY: the worker is this thread's from here on, which alone writes these fields.
    if configuration.pinsWorkers && !Seam.isSimulated {
      // It may have been started by a thread that is pinned itself.
      weft_cpu_unpin()
      let cpu = weft_cpu_at(unsafe Int32(worker.pointee.index) % weft_cpus_available())
      if weft_cpu_pin(cpu) { unsafe weft_worker_set_cpu(worker, cpu) }
    }
    RuntimeInfo.findWordsOfThisThread()
    unsafe weft_worker_prepare(worker)
    if !Seam.isSimulated {
      weft_threads_enter()
      if isWatched { weft_capture_allow() }
    }
    unsafe weft_worker_set_current(worker)
  }

  /// A worker's own stack: runs fibers until there are none, looks for more, sleeps.
  private func runLoop(_ worker: Worker, until done: () -> Bool) {
    // SAFETY: runs on this worker's own thread and stack, which is what the root stands for.
    // ORDERING: relaxed; a worker that misses its retirement sees it in the next round.
    // Asked first, whatever is runnable: when main has ended, others may go on for ever.
    let root = unsafe weft_worker_root(worker)
    while !done() {
      let next = unsafe pickNext(worker)
      if unsafe next != root {
        unsafe finishSwitch(weft_fiber_switch(root, next, worker))
      } else {
        unsafe idle(worker)
      }
    }
  }

  private func leaveThread(_ worker: Worker) {
    weft_worker_set_current(nil)
    if Seam.isSimulated { return }
    if configuration.pinsWorkers { weft_cpu_unpin() }
    if isWatched { weft_capture_restore() }
    _ = settleMemory(atOnce: true)
    weft_threads_leave()
  }

  // MARK: - Scheduler.run

  func runAsVisitor(_ site: weft_site, _ main: @escaping () -> Void) {
    // SAFETY: this thread becomes worker 0, which has no other where there is a visitor. The local
    // holds a reference to the fiber's object.
    let worker = unsafe workers[0]
    unsafe enter(worker)
    startHelpers()
    let cell = unsafe makeMain(site, main)
    unsafe weft_word_bump(weft_worker_spawned(worker), 1)
    unsafe pushLocal(cell.pointer, worker)
    unsafe runLoop(worker) { unsafe hasEnded(cell.pointer) }
    beginDraining(cancelling: true)
    unsafe runLoop(worker) { self.live == 0 }
    stop()
    unsafe leaveThread(worker)
  }

  private func makeMain(_ site: weft_site, _ main: @escaping () -> Void) -> FiberCell {
    // SAFETY: the record is ours until it is queued. What goes into its two words is taken out as
    // the same type.
    let record = unsafe makeCell(
      name: "main", site: site, stackBytes: UInt64(configuration.mainStackSize.bytes),
      flags: .pinned | .main, home: workers[0])
    // Main is called by this thread, and so is inside its scope.
    let scope = unsafe weft_thread_scope()
    unsafe record.cell.inheritLocals(of: scope)
    let deadline = unsafe scope.pointee.deadline
    let body = {
      unsafe weft_current_scope().pointee.deadline = deadline
      main()
    }
    unsafe record.body(as: MainBody.self).initialize(
      to: MainBody(call: deadline == never ? main : body))
    unsafe record.runner.initialize(
      to: FiberRunner { record in
        let body = unsafe record.body(as: MainBody.self).move()
        body.call()
        unsafe record.pointee.flags |= .succeeded | .joined
      })
    return unsafe record.takeCell()
  }

  private struct MainBody {
    let call: () -> Void
  }

  // MARK: - Shutdown

  func beginDraining(cancelling: Bool) {
    // SAFETY: a word that lives as long as this object; the references of `cells` keep the records
    // alive.
    // ORDERING: sequentially consistent, and before the shards' locks: paired with register.
    // One that cancels may come after one that waits.
    let wanted = cancelling ? Phase.cancelling : Phase.closing
    var phase = Phase.open
    while unsafe !weft_word_compare_exchange(words.phase, &phase, wanted) {
      if phase >= wanted { return }
    }
    // A worker counts an end with a plain store and then looks at the phase. After this barrier
    // either its count is seen here, or the phase there.
    if unsafe workers[0].pointee.queue.unbiased == 0 { weft_membarrier() } else { weft_fence_seq() }
    if !cancelling { return }
    // Those that park from now on find the phase; those that parked before are here.
    for cell in registry.cells() {
      unsafe perform(unsafe cell.pointer.cancelWait(), unsafe cell.pointer)
    }
  }

  func stop() {
    // SAFETY: words and workers live as long as this object; a thread is joined once, by whoever
    // takes it out of the array.
    // ORDERING: the exchange before the idle bits; paired with workExists, which looks at the phase
    // after the bit is set.
    _ = unsafe weft_word_exchange(words.phase, Phase.stopping)
    for index in 0..<capacity { unsafe wake(workers[index]) }
    stopHelpers()
    blockingPool.stop()
    for index in 0..<capacity {
      let thread = lifeLock.withLock { () -> KernelThread? in
        defer { threads[index] = nil }
        return threads[index]
      }
      thread?.join()
    }
    _ = unsafe weft_word_exchange(words.phase, Phase.stopped)
  }

  /// Whether the calling thread is one of this scheduler's workers.
  var isOwnThread: Bool {
    lifeLock.withLock { threads.contains { $0?.isCurrent ?? false } }
  }

  /// Shuts down from a thread made for it.
  func shutDownElsewhere() {
    do throws(SchedulerError) {
      try KernelThread.start { self.shutDown(cancelling: true) }.detach()
    } catch {
      fatalError("weft: \(error)")
    }
  }

  /// From a thread that is no worker of this scheduler.
  func shutDown(cancelling: Bool) {
    // In a child of fork() there is nobody to wait for.
    if forkGeneration != weft_fork_generation() { return }
    beginDraining(cancelling: cancelling)
    // SAFETY: words that live as long as this object.
    // ORDERING: acquire, paired with the exchange in stop. `drained` is cleared before the count,
    // paired with endedDraining, which counts before it sets it.
    drainLock.withLock {
      if unsafe weft_word_load_acquire(words.phase) >= Phase.stopping { return }
      while live > 0 {
        _ = unsafe weft_word_exchange(words.drained, 0)
        if live == 0 { break }
        unsafe weft_futex_wait(words.drained, 0, 1_000_000_000)
      }
      stop()
    }
  }
}
