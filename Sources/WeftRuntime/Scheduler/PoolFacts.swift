import CWeft

/// What the scheduler found on this machine, for `weft info`.
package struct PoolFacts: Sendable {
  /// Processors that this process may use: affinity mask and cgroup quota.
  package let processors: Int
  /// How few and how many workers a scheduler gets by default, environment included.
  package let workers: ClosedRange<Int>
  /// Whether fibers that have started may go on on another worker.
  package let migratesStarted: Bool
  /// Whether run queues are locked without an atomic operation, thanks to membarrier.
  package let usesMembarrier: Bool

  /// As a scheduler would find them on the calling thread.
  package static var current: PoolFacts {
    let core = SchedulerCore(configuration: Scheduler.Configuration().resolved(), hasVisitor: false)
    // SAFETY: a scheduler has one worker at least.
    let isUnbiased = unsafe core.workers[0].pointee.queue.unbiased != 0
    return PoolFacts(
      processors: Int(weft_cpus_available()), workers: core.configuration.workers,
      migratesStarted: core.migratesStarted, usesMembarrier: !isUnbiased)
  }
}

extension Scheduler {
  /// The statistics of the scheduler of the fiber that runs; nil on a plain thread.
  package static var currentStatistics: Statistics? {
    // SAFETY: the running fiber's worker, whose scheduler outlives it.
    guard let worker = unsafe weft_worker_current() else { return nil }
    return unsafe schedulerCore(of: worker).statistics
  }

  /// Fibers of all schedulers of this process that were made and have not ended.
  package static var liveEverywhere: Int {
    SchedulerList.withLock { cores in cores.reduce(0) { $0 + $1.live } }
  }

  /// Stacks that the workers of all schedulers keep for the next fibers, as of when each was last
  /// idle.
  package static var cachedStacksEverywhere: Int {
    SchedulerList.withLock { cores in
      cores.reduce(0) { sum, core in
        core.statistics.workers.reduce(sum) { $0 + $1.counters.stacksCached }
      }
    }
  }
}
