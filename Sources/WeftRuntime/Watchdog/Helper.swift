import CWeft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The thread beside the workers: names fibers that run too long, and asks the core policy how many
/// workers should be active. There is none where neither is wanted.
///
/// It looks at the workers at regular intervals while any of them is busy. When all sleep it sleeps
/// too, on a word that whoever wakes a worker looks at (pokeHelper): a process in which nothing
/// happens uses no processor time, and the paths that switch fibers do nothing for it.
// SAFETY: the variables are the helper thread's own, but `thread`, which the one that starts and
// stops it owns.
final class Helper: @unchecked Sendable {
  let core: SchedulerCore
  private let limit: UInt64?
  private let period: UInt64?
  private let interval: UInt64
  private var thread: KernelThread?
  private var trackers: [OverrunTracker]
  private var sampler = LoadSampler()
  private var reporter = OverrunReporter()
  /// How many workers the policy wants, and how many there are beyond that because others are
  /// stuck.
  private var wanted: Int
  private var spares = 0

  /// States of `words.helper`.
  enum State {
    static let awake: UInt64 = 0
    static let asleep: UInt64 = 1
    static let stopping: UInt64 = 2
  }

  /// Nil if there is nothing to do for it.
  init?(core: SchedulerCore, period: Duration) {
    let configuration = core.configuration
    let watches = core.isWatched
    let range = configuration.workers
    let varies = range.lowerBound != range.upperBound
    if !watches && !varies { return nil }
    self.core = core
    limit = watches ? max(configuration.watchdogLimit.saturatedNanoseconds, 1_000_000) : nil
    self.period = varies ? max(period.saturatedNanoseconds, 1_000_000) : nil
    let intervals = [limit.map { $0 / 2 }, self.period.map { $0 / 10 }].compactMap { $0 }
    interval = max(intervals.min() ?? never, 500_000)
    trackers = Array(repeating: OverrunTracker(), count: core.capacity)
    wanted = range.lowerBound
  }

  // MARK: - Starting and stopping

  /// False if no thread can be had: the scheduler does without.
  func start() -> Bool {
    if limit != nil { weft_capture_install() }
    guard let thread = try? KernelThread.start({ self.run() }) else {
      if limit != nil { weft_capture_remove() }
      return false
    }
    self.thread = thread
    return true
  }

  func stop() {
    // SAFETY: the words live as long as the core.
    unsafe _ = weft_word_exchange(core.words.helper, State.stopping)
    unsafe weft_futex_wake(core.words.helper, 1)
    thread?.join()
    thread = nil
    if limit != nil { weft_capture_remove() }
  }

  // MARK: - The thread

  private func run() {
    weft_threads_enter()
    // SAFETY: a literal.
    unsafe weft_thread_set_name("weft-watchdog")
    weft_cpu_unpin()
    sampler.restart(core, now: weft_clock_now())
    while true {
      if isStopping { break }
      if core.allAsleep && isSettled { sleepUntilPoked() }
      // SAFETY: the words live as long as the core.
      unsafe weft_futex_wait(core.words.helper, UInt32(State.awake), interval)
      if isStopping { break }
      look()
    }
    weft_threads_leave()
  }

  private var isStopping: Bool {
    // SAFETY: as above. ORDERING: acquire, paired with the exchange in stop().
    unsafe weft_word_load_acquire(core.words.helper) == State.stopping
  }

  /// Nothing is left to decide: idle workers are as few as they may be, as far as the policy goes.
  private var isSettled = true

  private func sleepUntilPoked() {
    var state = State.awake
    // ORDERING: seq; whoever wakes a worker first takes its idle bit and then looks here, and this
    // first says that it sleeps and then looks at the workers again: one of the two sees the other.
    // SAFETY: the words live as long as the core.
    guard unsafe weft_word_compare_exchange(core.words.helper, &state, State.asleep) else { return }
    while core.allAsleep, unsafe weft_word_load_seq(core.words.helper) == State.asleep {
      unsafe weft_futex_wait(core.words.helper, UInt32(State.asleep), never)
    }
    state = State.asleep
    _ = unsafe weft_word_compare_exchange(core.words.helper, &state, State.awake)
    sampler.restart(core, now: weft_clock_now())
  }

  private func look() {
    let now = weft_clock_now()
    if let limit { watch(now: now, limit: limit) }
    guard let period else { return }
    sampler.look(core)
    guard let sample = sampler.sample(core, now: now, period: period) else {
      isSettled = false
      return
    }
    let wish = core.lifeLock.withLock { core.policy.activeWorkers(sample) }
    let count = min(max(wish, sample.minimum), sample.maximum)
    isSettled = count == wanted
    if count != wanted {
      wanted = count
      core.setActive(wanted + spares)
    }
  }

  // MARK: - The watchdog

  private func watch(now: UInt64, limit: UInt64) {
    var stuck = 0
    var isWorkBehind = false
    for index in 0..<core.capacity {
      // SAFETY: the workers' memory lives as long as the core; the address is only compared.
      // ORDERING: relaxed; a torn pair is a switch, as seen a moment later.
      let worker = unsafe core.workers[index]
      let tick = unsafe weft_worker_switches(worker)
      let running = core.running(index) ?? 0
      let thread = unsafe weft_worker_thread(worker)
      let used = running == 0 ? .max : weft_thread_processor_time(thread)
      let elapsed = trackers[index].look(
        tick: tick, running: running, now: now, used: used == .max ? nil : used, limit: limit
      ) { weft_thread_system_call(thread) != -1 }
      if let elapsed {
        reporter.report(core, index, tick: tick, running: running, elapsed: elapsed, now: now)
        unsafe weft_word_add(core.words.overruns, 1)
      }
      if trackers[index].isOverdue {
        stuck += 1
        unsafe isWorkBehind =
          isWorkBehind || weft_word_load_relaxed(weft_worker_queue_count(worker)) > 0
          || weft_link_load_relaxed(weft_worker_inbox(worker)) != 0
          || weft_link_load_relaxed(weft_worker_offer(worker)) != 0
      }
    }
    helpBehind(stuck: stuck, isWorkBehind)
  }

  /// Fibers wait behind one that does not yield: somebody else should run them.
  private func helpBehind(stuck: Int, _ isWorkBehind: Bool) {
    if stuck == 0 {
      if spares > 0 {
        spares = 0
        core.setActive(wanted)
      }
    } else if isWorkBehind {
      if (0..<core.capacity).contains(where: { core.isGeneral($0) && core.isAsleep($0) }) {
        core.wakeOne()
      } else if core.generalCount + core.exclusiveCount < core.capacity {
        spares += 1
        core.setActive(wanted + spares)
      }
    }
  }
}

extension SchedulerCore {
  /// Whether there is a watchdog.
  var isWatched: Bool { configuration.watchdog ?? (capacity > 1) }

  /// A worker was woken, or started: somebody has to look at what it does.
  ///
  /// COST: a load, where a sleeping worker is woken.
  func pokeHelper() {
    // SAFETY: the words live as long as the core.
    if unsafe weft_word_load_seq(words.helper) != Helper.State.asleep { return }
    var state = Helper.State.asleep
    if unsafe weft_word_compare_exchange(words.helper, &state, Helper.State.awake) {
      unsafe weft_futex_wake(words.helper, 1)
    }
  }

  func startHelpers() {
    if Seam.isSimulated { return Seam.note(self) }
    SchedulerList.add(self)
    DumpSignal.start()
    let period = lifeLock.withLock { policy.period }
    guard let helper = Helper(core: self, period: period) else { return }
    if helper.start() { lifeLock.withLock { self.helper = helper } }
  }

  func stopHelpers() {
    if Seam.isSimulated { return }
    let helper = lifeLock.withLock { () -> Helper? in
      defer { self.helper = nil }
      return self.helper
    }
    helper?.stop()
    SchedulerList.remove(self)
  }
}
