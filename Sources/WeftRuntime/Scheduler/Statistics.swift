import CWeft

extension Scheduler {
  /// What the workers have done so far.
  ///
  /// The counters are always kept, each written by its own worker and read here one after the
  /// other: sums of a busy scheduler may be off by what happens meanwhile.
  ///
  /// - Suspension: never. **Thread safety:** any thread.
  public var statistics: Statistics { core.statistics }

  /// What the workers of a scheduler have done so far.
  public struct Statistics: Sendable, Hashable, CustomStringConvertible {
    /// One for each worker that there can be.
    public let workers: [Worker]
    /// The sums; load and high-water marks are the largest.
    public let total: Counters
    /// Fibers made and not ended.
    public let live: Int
    /// Workers that take general work.
    public let activeWorkers: Int
    /// How often the watchdog found a fiber that ran too long.
    public let overruns: Int

    /// What one worker has done.
    public struct Worker: Sendable, Hashable {
      /// Its number.
      public let index: Int
      /// Whether it takes general work, is kept for one fiber, or does neither.
      public let role: Role
      /// The processor that it is pinned to.
      public let cpu: Int?
      /// What it has counted.
      public let counters: Counters
    }

    /// What a worker is for.
    public enum Role: String, Sendable, Hashable {
      /// It takes general work.
      case active
      /// It is kept for one fiber.
      case exclusive
      /// It is not needed now.
      case retired
    }

    /// What is counted.
    public struct Counters: Sendable, Hashable {
      /// Fibers that began to run.
      public var fibersRun = 0
      /// Fibers made by fibers, or by this thread.
      public var fibersMade = 0
      /// Switches, and yields that found nothing else to run.
      public var switches = 0
      /// Fibers taken from other workers.
      public var steals = 0
      /// Times that a fiber parked.
      public var parks = 0
      /// Fibers that were made runnable.
      public var wakes = 0
      /// Time without a fiber to run.
      public var idleTime = Duration.zero
      /// The longest that the run queue was, as seen at every sixteenth switch.
      public var queueHighWater = 0
      /// Stacks in the thread's cache, when it was last idle.
      public var stacksCached = 0
      /// Fibers that run or wait in the run queue.
      public var load = 0

      mutating func add(_ other: Counters) {
        fibersRun += other.fibersRun
        fibersMade += other.fibersMade
        switches += other.switches
        steals += other.steals
        parks += other.parks
        wakes += other.wakes
        idleTime += other.idleTime
        queueHighWater = max(queueHighWater, other.queueHighWater)
        stacksCached += other.stacksCached
        load += other.load
      }
    }

    /// A table, a line for each worker that has run.
    public var description: String {
      var text = "\(counted(live, "fiber")) live, \(activeWorkers) of \(workers.count) workers "
      text += "active, \(counted(overruns, "overrun"))\n"
      for worker in workers where worker.role != .retired || worker.counters.switches > 0 {
        text += "worker \(worker.index) (\(worker.role.rawValue)): \(worker.counters.text)\n"
      }
      return text + "total: \(total.text)"
    }

    /// The same as JSON, whose keys stay: `schema` is `weft.statistics/1`.
    public var json: String {
      let list = workers.map { worker in
        "{\"index\":\(worker.index),\"role\":\"\(worker.role.rawValue)\","
          + "\"cpu\":\(worker.cpu.map(String.init) ?? "null"),\(worker.counters.json)}"
      }
      return "{\"schema\":\"weft.statistics/1\",\"live\":\(live),\"activeWorkers\":\(activeWorkers)"
        + ",\"overruns\":\(overruns),\"workers\":[\(list.joined(separator: ","))]"
        + ",\"total\":{\(total.json)}}"
    }
  }
}

extension Scheduler.Statistics.Counters {
  private var idleNanoseconds: Int { Int(clamping: idleTime.saturatedNanoseconds) }

  private var fields: [(key: String, value: Int)] {
    [
      ("fibersRun", fibersRun), ("fibersMade", fibersMade), ("switches", switches),
      ("steals", steals), ("parks", parks), ("wakes", wakes),
      ("idleNanoseconds", idleNanoseconds), ("queueHighWater", queueHighWater),
      ("stacksCached", stacksCached), ("load", load),
    ]
  }

  fileprivate var json: String {
    fields.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
  }

  fileprivate var text: String {
    "\(fibersRun) run, \(switches) switches, \(steals) stolen, \(parks) parks, \(wakes) wakes, "
      + "\(idleNanoseconds / 1_000_000) ms idle, queue \(queueHighWater) at most, "
      + "\(stacksCached) stacks cached, load \(load)"
  }
}

extension SchedulerCore {
  var statistics: Scheduler.Statistics {
    let now = weft_clock_now()
    let list = (0..<capacity).map { index in
      // SAFETY: the workers' memory lives as long as the scheduler.
      let cpu = unsafe Int(weft_worker_cpu(workers[index]))
      let role: Scheduler.Statistics.Role =
        isGeneral(index) ? .active : isExclusive(index) ? .exclusive : .retired
      return Scheduler.Statistics.Worker(
        index: index, role: role, cpu: cpu < 0 ? nil : cpu, counters: counters(index, now: now))
    }
    var total = Scheduler.Statistics.Counters()
    for worker in list { total.add(worker.counters) }
    // SAFETY: the words live as long as the scheduler. ORDERING: relaxed; for people.
    total.fibersMade += unsafe Int(weft_word_load_relaxed(words.outsideSpawned))
    return Scheduler.Statistics(
      workers: list, total: total, live: live, activeWorkers: generalCount,
      overruns: overrunCount)
  }

  var overrunCount: Int {
    // SAFETY: the words live as long as the scheduler. ORDERING: relaxed; a count for people.
    unsafe Int(weft_word_load_relaxed(words.overruns))
  }

  private func counters(_ index: Int, now: UInt64) -> Scheduler.Statistics.Counters {
    // SAFETY: as above. ORDERING: relaxed; each counter stands for itself.
    let worker = unsafe workers[index]
    func read(_ word: UnsafeMutablePointer<weft_word>) -> Int {
      unsafe Int(truncatingIfNeeded: weft_word_load_relaxed(word))
    }
    var counters = Scheduler.Statistics.Counters()
    counters.fibersRun = unsafe read(weft_worker_ran(worker))
    counters.fibersMade = unsafe read(weft_worker_spawned(worker))
    counters.switches = unsafe read(weft_worker_tick(worker))
    counters.steals = unsafe read(weft_worker_stolen(worker))
    counters.parks = unsafe read(weft_worker_parked(worker))
    counters.wakes = unsafe read(weft_worker_woken(worker))
    counters.idleTime = .nanoseconds(Int64(clamping: idleNanoseconds(index, now: now)))
    counters.queueHighWater = unsafe read(weft_worker_queue_high_water(worker))
    counters.stacksCached = unsafe read(weft_worker_stacks_cached(worker))
    counters.load = unsafe read(weft_worker_queue_count(worker)) + (runs(index) ? 1 : 0)
    return counters
  }
}
