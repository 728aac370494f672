import CWeft

/// Adds up what the workers do between two questions to the core policy.
struct LoadSampler {
  private var began: UInt64 = 0
  private var idleAtStart: [UInt64] = []
  private var runnable: UInt64 = 0
  private var looks: UInt64 = 0

  /// Forgets everything: the time before was no ordinary one.
  mutating func restart(_ core: SchedulerCore, now: UInt64) {
    began = now
    idleAtStart = (0..<core.capacity).map { core.idleNanoseconds($0, now: now) }
    runnable = 0
    looks = 0
  }

  /// One of several looks in a period.
  mutating func look(_ core: SchedulerCore) {
    looks += 1
    for index in 0..<core.capacity where core.isGeneral(index) {
      // SAFETY: the workers' memory lives as long as the scheduler. ORDERING: relaxed; an estimate.
      let worker = unsafe core.workers[index]
      unsafe runnable += weft_word_load_relaxed(weft_worker_queue_count(worker))
      if core.runs(index) { runnable += 1 }
    }
  }

  /// What the period was like, if it is over.
  mutating func sample(_ core: SchedulerCore, now: UInt64, period: UInt64) -> LoadSample? {
    let elapsed = now &- began
    if elapsed < period || looks == 0 || idleAtStart.isEmpty { return nil }
    var active = 0
    var used = 0.0
    for index in 0..<core.capacity where core.isGeneral(index) {
      active += 1
      let idle = core.idleNanoseconds(index, now: now) &- idleAtStart[index]
      used += 1 - min(1, Double(idle) / Double(elapsed))
    }
    let exclusive = core.exclusiveCount
    let minimum = core.configuration.workers.lowerBound
    let sample = LoadSample(
      active: active, minimum: minimum, maximum: max(minimum, core.workersLimit - exclusive),
      exclusive: exclusive, utilization: used,
      loadFactor: Double(runnable) / Double(looks) / Double(max(active, 1)))
    restart(core, now: now)
    return sample
  }
}

extension SchedulerCore {
  /// How long a worker has been idle altogether.
  func idleNanoseconds(_ index: Int, now: UInt64) -> UInt64 {
    // SAFETY: the workers' memory lives as long as the scheduler.
    let worker = unsafe workers[index]
    // ORDERING: relaxed; between the two loads an idle time may end and be counted twice or not at
    // all, which the next sample makes up for.
    let since = unsafe weft_word_load_relaxed(weft_worker_idle_since(worker))
    let total = unsafe weft_word_load_relaxed(weft_worker_idle_nanoseconds(worker))
    return total + (since != 0 && now > since ? now - since : 0)
  }

  /// What a worker runs: the address of a fiber's record that may be gone; nil for nothing.
  func running(_ index: Int) -> UInt? {
    // SAFETY: the address is compared, not followed.
    let worker = unsafe workers[index]
    let record = unsafe weft_worker_running(worker)
    return unsafe record == weft_worker_root(worker) ? nil : UInt(bitPattern: record)
  }

  func runs(_ index: Int) -> Bool { running(index) != nil }
}
