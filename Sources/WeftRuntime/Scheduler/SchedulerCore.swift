import CWeft
import WeftContext

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What the workers of one scheduler share.
///
/// Words that several threads write are C words in memory of their own, a cache line each.
// SAFETY: constants after init, atomic words, or guarded as noted.
@safe
final class SchedulerCore: @unchecked Sendable {
  let configuration: Scheduler.Configuration
  /// How many workers there can be. Their records are allocated at once and freed in deinit.
  let capacity: Int
  let workers: UnsafeMutablePointer<Worker>
  let registry: Registry
  let migratesStarted: Bool
  let debug = Environment.debugModes
  /// Whether worker 0 is a thread that called `Scheduler.run`.
  let hasVisitor: Bool
  let forkGeneration: UInt64
  let words: SharedWords
  let poller: Poller
  let blockingPool: BlockingPool

  /// Threads started. GUARDED BY: lifeLock
  var threads: [KernelThread?]
  let lifeLock = CLock()
  /// Held by the one that shuts down.
  let drainLock = CLock()
  /// Why the fibers in the line for a stack are there. GUARDED BY: lifeLock
  var stackError: StackError?
  /// A line for each class of stacks (weft_stack_class). GUARDED BY: lifeLock
  var stackLines = Array(repeating: StackLine(), count: 40)
  /// GUARDED BY: lifeLock
  var hasReportedStarvation = false
  /// Fibers that wait for an exclusive worker. GUARDED BY: lifeLock
  var exclusiveLine: [FiberCell] = []
  /// GUARDED BY: lifeLock
  var policy: any CorePolicy
  /// The thread beside the workers. GUARDED BY: lifeLock
  var helper: Helper?
  /// What the last look for a deadlock saw. GUARDED BY: WEFT_LOCK_LIST
  var suspicion = Suspicion()

  init(configuration: Scheduler.Configuration, hasVisitor: Bool) {
    // SAFETY: memory of our own, freed in deinit.
    self.configuration = configuration
    self.hasVisitor = hasVisitor
    capacity = configuration.workers.upperBound
    unsafe workers = .allocate(capacity: capacity)
    registry = Registry(shards: capacity)
    words = SharedWords()
    poller = Seam.isSimulated ? FutexPoller() : Poller.make(configuration.poller)
    blockingPool = BlockingPool(limit: configuration.blockingThreadsMax)
    policy = configuration.corePolicy ?? LoadFactorPolicy()
    threads = Array(repeating: nil, count: capacity)
    forkGeneration = weft_fork_generation()
    let biased = weft_membarrier_register()
    FiberCell.prepareMemory()
    RuntimeInfo.findWordsOfThisThread()
    // SAFETY: the record of the words lives as long as this thread.
    unsafe migratesStarted =
      weft_words_get_mode() != WEFT_WORDS_FALLBACK && weft_thread_words().pointee.task != nil
    unsafe words.pool.pointee.migrates_started = migratesStarted ? 1 : 0
    unsafe words.pool.pointee.spreads = configuration.placement == .lesserOfTwo ? 1 : 0
    unsafe words.pool.pointee.stack_bytes = UInt64(configuration.stackSize.bytes)
    // SAFETY: nobody else knows these records before a thread is started. A worker refers to this
    // object unretained: its thread holds a reference while it runs.
    // ORDERING: relaxed stores; starting the threads publishes them.
    for index in 0..<capacity {
      let worker = Worker.allocate(capacity: 1)
      unsafe UnsafeMutableRawPointer(worker).initializeMemory(
        as: UInt8.self, repeating: 0, count: MemoryLayout<weft_worker>.size)
      unsafe worker.pointee.index = UInt32(index)
      unsafe worker.pointee.pool = words.pool
      unsafe worker.pointee.scheduler = Unmanaged.passUnretained(self).toOpaque()
      unsafe worker.pointee.queue.unbiased = biased ? 0 : 1
      unsafe worker.pointee.random = configuration.seed &+ UInt64(index) &* 0x9E37_79B9_7F4A_7C15
      unsafe worker.pointee.cpu = -1
      unsafe worker.pointee.current = weft_worker_root(worker)
      unsafe worker.makeTimers()
      unsafe worker.pointee.spin_rounds = UInt64(spinRoundsMost)
      unsafe (workers + index).initialize(to: worker)
    }
    setUpDebugModes()
    setUpActivity()
  }

  deinit {
    // SAFETY: each thread of ours held a reference while it ran, so none uses a worker any more.
    for index in 0..<capacity {
      unsafe workers[index].destroyTimers()
      unsafe workers[index].deallocate()
    }
    unsafe workers.deallocate()
    words.deallocate()
  }

  /// How many workers should take general work.
  var active: Int {
    // SAFETY: a word of memory that lives as long as this object.
    // ORDERING: relaxed; a stale count costs a detour, never a fiber.
    unsafe Int(weft_word_load_relaxed(words.active))
  }

  /// Fibers made and not ended.
  var live: Int {
    // SAFETY: words of memory that lives as long as this object.
    // ORDERING: acquire, so that the beginnings are looked at after the ends. Counters are bumped
    // relaxed: a beginning before its fiber is queued, which releases it to whoever counts the end.
    // Ends before beginnings: each end follows its beginning, so an equal count means that at the
    // time of the first look none was left.
    var ended: UInt64 = 0
    var made: UInt64 = 0
    for index in 0..<capacity {
      unsafe ended &+= weft_word_load_acquire(weft_worker_ended(workers[index]))
    }
    unsafe made &+= weft_word_load_seq(words.outsideSpawned)
    for index in 0..<capacity {
      unsafe made &+= weft_word_load_acquire(weft_worker_spawned(workers[index]))
    }
    return Int(made &- ended)
  }

  // SAFETY: a word of memory that lives as long as this object.
  // ORDERING: relaxed: what must not miss it has a barrier of its own (beginDraining, finishOther,
  // register).
  var isDraining: Bool { words.isDraining }
  // SAFETY: as above.
  // ORDERING: as above.
  var isCancelling: Bool { words.isCancelling }
  // SAFETY: a word of memory that lives as long as this object.
  // ORDERING: acquire, paired with the exchange in stop.
  var isStopping: Bool { unsafe weft_word_load_acquire(words.phase) >= Phase.stopping }

  /// How far a shutdown has come: `words.phase`.
  enum Phase {
    static let open: UInt64 = 0
    /// New fibers from outside are refused.
    static let closing: UInt64 = 1
    /// All others count as cancelled, too; those that fibers make start so.
    static let cancelling: UInt64 = 2
    /// No fiber is left: workers leave their loops.
    static let stopping: UInt64 = 3
    static let stopped: UInt64 = 4
  }

  /// The rare things that the end of a fiber leads to.
  func endedSpecially(_ record: Record, _ worker: Worker) {
    // SAFETY: runs as the fiber that ends, on this worker's own thread. The exchange makes the
    // fibers of the line ours.
    // ORDERING: relaxed; a hint. The exchange acquires what each push released.
    if unsafe record.pointee.cold.pointee.registry_shard != 0 { unsafe registry.remove(record) }
    if unsafe record.pointee.flags & .exclusive != 0 { unsafe releaseExclusive(worker) }
  }
}

extension SchedulerCore {
  /// A fiber has ended during a shutdown, perhaps the last.
  func endedDraining() {
    // SAFETY: memory that lives as long as this object.
    // ORDERING: sequentially consistent: the count of the end, then `drained`; paired with
    // shutDown, which clears `drained` and then counts.
    if hasVisitor { unsafe wake(workers[0]) }
    _ = unsafe weft_word_exchange(words.drained, 1)
    unsafe weft_futex_wake(words.drained, 1)
  }
}

/// A fiber is about to end: its stack will be free.
///
/// COST: for a fiber that never parked, three loads.
@inline(__always)
func willEnd(_ record: Record, _ worker: Worker) {
  // SAFETY: runs as the fiber that ends, on this worker's own thread; it has its stack still, and
  // so a cold part.
  // ORDERING: relaxed; a hint for endedSpecially.
  if unsafe record.pointee.cold.pointee.registry_shard != 0
    || record.pointee.flags & .exclusive != 0
  {
    unsafe schedulerCore(of: worker).endedSpecially(record, worker)
  }
}

/// Words that every worker writes, a cache line each. Reached from a worker without touching the
/// scheduler object, whose reference count every worker would fight for.
@safe
struct SharedWords {
  let pool: UnsafeMutablePointer<weft_pool>

  /// Of a new scheduler.
  init() {
    // SAFETY: memory of the structure's size, for which zeros are a value.
    let raw = UnsafeMutableRawPointer.allocate(
      byteCount: MemoryLayout<weft_pool>.size, alignment: 64)
    unsafe raw.initializeMemory(
      as: UInt8.self, repeating: 0, count: MemoryLayout<weft_pool>.size)
    unsafe pool = raw.assumingMemoryBound(to: weft_pool.self)
  }

  /// Of the scheduler that a worker belongs to.
  @inline(__always)
  init(of worker: Worker) { unsafe pool = worker.pointee.pool }  // SAFETY: constant after init

  // SAFETY: called by the deinit of the scheduler, whose workers are gone.
  func deallocate() { unsafe UnsafeMutableRawPointer(pool).deallocate() }

  @inline(__always)
  private func line(_ index: Int) -> UnsafeMutablePointer<weft_word> {
    // SAFETY: the callers below name lines below WEFT_POOL_LINES.
    unsafe weft_pool_line(pool, Int64(index))
  }

  // SAFETY: a word of the pool.
  // ORDERING: relaxed: those who must not miss it have a barrier (finishOther) or a lock
  // (register).
  /// A shutdown has begun.
  @inline(__always)
  var isDraining: Bool { unsafe weft_word_load_relaxed(phase) != SchedulerCore.Phase.open }
  // SAFETY: as above.
  // ORDERING: as above.
  /// A shutdown has begun that cancels every fiber.
  @inline(__always)
  var isCancelling: Bool {
    unsafe weft_word_load_relaxed(phase) >= SchedulerCore.Phase.cancelling
  }

  /// How many workers take new work.
  var active: UnsafeMutablePointer<weft_word> { unsafe line(0) }  // SAFETY: in bounds
  /// Workers asleep, and those awake that look for work.
  var sleepers: UnsafeMutablePointer<weft_word> { unsafe line(1) }  // SAFETY: in bounds
  var searching: UnsafeMutablePointer<weft_word> { unsafe line(2) }  // SAFETY: in bounds
  /// 1 + index of the sleeper that watches timers and poller; until when it sleeps.
  var keeper: UnsafeMutablePointer<weft_word> { unsafe line(3) }  // SAFETY: in bounds
  var keeperDeadline: UnsafeMutablePointer<weft_word> { unsafe line(4) }  // SAFETY: in bounds
  /// Fibers made by threads that are no workers.
  var outsideSpawned: UnsafeMutablePointer<weft_word> { unsafe line(5) }  // SAFETY: in bounds
  var phase: UnsafeMutablePointer<weft_word> {
    unsafe line(Int(WEFT_POOL_PHASE))  // SAFETY: in bounds
  }
  /// Calls in `blocking { }` that are under way: their ends will wake somebody.
  var offloaded: UnsafeMutablePointer<weft_word> { unsafe line(7) }  // SAFETY: in bounds
  /// How many fibers wait for a stack.
  var starved: UnsafeMutablePointer<weft_word> { unsafe line(8) }  // SAFETY: in bounds
  // SAFETY: in bounds: callers name words 0 to 3.
  /// Workers that take general work: a bit a worker, four words. Never empty.
  func general(_ word: Int) -> UnsafeMutablePointer<weft_word> { unsafe line(9 + word) }
  // SAFETY: in bounds: callers name words 0 to 3.
  /// Sleeping workers: a bit a worker, four words.
  func idle(_ word: Int) -> UnsafeMutablePointer<weft_word> { unsafe line(13 + word) }
  /// Fibers that ran too long.
  var overruns: UnsafeMutablePointer<weft_word> { unsafe line(17) }  // SAFETY: in bounds
  var nextID: UnsafeMutablePointer<weft_word> { unsafe line(18) }  // SAFETY: in bounds
  /// Set, and its sleeper woken, when a draining scheduler may have no fiber left.
  var drained: UnsafeMutablePointer<weft_word> { unsafe line(19) }  // SAFETY: in bounds
  /// Whether the helper thread sleeps: Helper.swift.
  var helper: UnsafeMutablePointer<weft_word> { unsafe line(20) }  // SAFETY: in bounds
  /// Workers that have a thread.
  var launched: UnsafeMutablePointer<weft_word> { unsafe line(21) }  // SAFETY: in bounds
  /// Sleeping workers that are about to make fibers runnable.
  var firing: UnsafeMutablePointer<weft_word> { unsafe line(22) }  // SAFETY: in bounds
  /// Fibers that wait for something outside the process, as descriptors that a poller watches: such
  /// a wait is no deadlock.
  var registrations: UnsafeMutablePointer<weft_word> { unsafe line(23) }  // SAFETY: in bounds
  /// How often a stack could not be had since the last fiber ended.
  var stackRefusals: UnsafeMutablePointer<weft_word> { unsafe line(25) }  // SAFETY: in bounds
  /// Sleepers that look again by themselves.
  var napping: UnsafeMutablePointer<weft_word> { unsafe line(24) }  // SAFETY: in bounds
}

/// A lock for rare things, on memory that does not move.
// SAFETY: a constant pointer to a mutex, which any thread may lock.
@safe
final class CLock: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>

  init() {
    // SAFETY: memory of our own, freed in deinit.
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe pthread_mutex_init(mutex, nil)
  }

  deinit {
    // SAFETY: nobody has a reference, so nobody holds it.
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  /// No fiber may park inside: the mutex belongs to the thread.
  func withLock<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    // SAFETY: `self` lives during the call; the same thread unlocks, as no fiber parks inside.
    // Simulated threads share one of the kernel's, which must not block.
    if Seam.isSimulated {
      while unsafe pthread_mutex_trylock(mutex) != 0 { weft_thread_yield() }
    } else {
      unsafe pthread_mutex_lock(mutex)
    }
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body()
  }
}
