import CWeft

/// The schedulers of this process that run, for what concerns them all: dumps and deadlocks.
enum SchedulerList {
  // SAFETY: guarded by WEFT_LOCK_LIST, which a fork() leaves free in the child.
  nonisolated(unsafe) private static var cores: [SchedulerCore] = []
  nonisolated(unsafe) private static var generation: UInt64 = 0

  static func withLock<R>(_ body: ([SchedulerCore]) -> R) -> R {
    weft_process_lock(Int32(WEFT_LOCK_LIST))
    defer { weft_process_unlock(Int32(WEFT_LOCK_LIST)) }
    // SAFETY: under the lock.
    if unsafe generation != weft_fork_generation() {
      // The parent's: kept as they are, since their threads are gone and nobody may end them.
      for core in unsafe cores { _ = unsafe Unmanaged.passRetained(core) }
      unsafe cores = []
      unsafe generation = weft_fork_generation()
    }
    return unsafe body(cores)
  }

  static func add(_ core: SchedulerCore) {
    // SAFETY: under the lock.
    withLock { _ in unsafe cores.append(core) }
  }

  static func remove(_ core: SchedulerCore) {
    // SAFETY: under the lock.
    withLock { _ in unsafe cores.removeAll { $0 === core } }
  }
}
