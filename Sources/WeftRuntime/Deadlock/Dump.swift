import CWeft
import WeftContext

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

extension Scheduler {
  /// What the workers and the parked fibers of this scheduler do at this moment, as text for
  /// people.
  ///
  /// Fibers run on meanwhile, so it is no consistent snapshot, and it says so. Fibers that have not
  /// parked yet are counted, not listed.
  ///
  /// - Suspension: never. **Thread safety:** any thread, fibers too.
  /// - Complexity: O(fibers that have parked), with a system call for each.
  public func dump() -> String { Scheduler.dumpHead(1) + core.dumpText(title: "scheduler") }

  /// The same for all schedulers of the process that run.
  ///
  /// With the environment variable `WEFT_DUMP_SIGNAL=USR1` (or the name or number of another
  /// signal) the process writes this to standard error whenever it gets that signal.
  public static func dumpAll() -> String {
    // The texts are made outside the lock.
    let cores = SchedulerList.withLock { $0 }
    return dumpHead(cores.count)
      + cores.enumerated().map { $1.dumpText(title: "scheduler \($0)") }.joined()
  }

  private static func dumpHead(_ count: Int) -> String {
    let threads =
      weft_threads_are_known()
      ? "every thread of the process is Weft's"
      : "threads that Weft did not start exist, so a deadlock can't be excluded or told"
    return "weft: dump of process \(getpid()), \(counted(count, "scheduler")); "
      + "fibers ran on meanwhile, so it is no consistent snapshot\nweft: \(threads)\n"
  }
}

extension SchedulerCore {
  func dumpText(title: String) -> String {
    let cells = registry.cells()
    let line = lifeLock.withLock { exclusiveLine }
    let parked = ParkedFibers(cells + line)
    // SAFETY: words and workers live as long as the scheduler. ORDERING: relaxed; for people.
    let phases = ["open", "closing", "cancelling", "stopping", "stopped"]
    let phase = unsafe phases[Int(min(weft_word_load_acquire(words.phase), 4))]
    var text =
      "\(title): \(phase), \(counted(live, "fiber")), \(generalCount) of \(capacity) workers take "
      + "general work\n"
    for index in 0..<capacity { text += workerText(index, parked) }
    for cell in cells { text += fiberText(cell, parked) }
    for cell in line { text += "  \(label(of: cell)): waits for \(ParkReason.exclusive)\n" }
    let starved = unsafe weft_word_load_acquire(words.starved) != 0
    if starved, let error = lifeLock.withLock({ stackError }) {
      text += "  fibers that have not started wait for a stack: \(error)\n"
    }
    let others = live - cells.count - line.count
    if others > 0 { text += "  and \(counted(others, "fiber")) that never parked\n" }
    return text
  }

  private func workerText(_ index: Int, _ parked: ParkedFibers) -> String {
    // SAFETY: as above; the running fiber's address is looked up, not followed.
    let worker = unsafe workers[index]
    var text = "  worker \(index)"
    if isExclusive(index) { text += " (exclusive)" }
    if !isExclusive(index) && !isGeneral(index) { text += " (retired)" }
    if let running = running(index) {
      let cell = parked.cell(at: running)
      text += ": runs " + (cell.map(shortLabel(of:)) ?? "a fiber that never parked")
    } else {
      text += isAsleep(index) ? ": sleeps" : ": idle"
    }
    let queued = unsafe weft_word_load_relaxed(weft_worker_queue_count(worker))
    let timers = unsafe weft_word_load_acquire(weft_worker_next_deadline(worker)) != never
    return text + ", \(queued) queued\(timers ? ", timers set" : "")\n"
  }

  private func fiberText(_ cell: FiberCell, _ parked: ParkedFibers) -> String {
    "  \(label(of: cell)): \(state(of: cell, parked))\(stackText(cell))\n"
  }

  private func state(of cell: FiberCell, _ parked: ParkedFibers) -> String {
    // SAFETY: the cell is held; its words are atomic, the rest is what was written last.
    let record = unsafe cell.pointer
    if unsafe hasEnded(record) { return "ended" }
    if let index = (0..<capacity).first(where: { running($0) == UInt(bitPattern: record) }) {
      return "runs on worker \(index)"
    }
    // ORDERING: acquire, paired with publishParked.
    let isParked = unsafe weft_word_load_acquire(weft_fiber_wait(record)) & WaitBits.parked != 0
    // A fiber that joins is in the list of its target, and its own word is not used.
    let joins = parked.joined(by: cell).map { unsafe !hasEnded($0.pointer) } ?? false
    let cancelled = unsafe record.isCancelled ? ", cancelled" : ""
    return (isParked || joins ? "waits for \(parked.reason(of: cell))" : "runnable") + cancelled
  }

  private func stackText(_ cell: FiberCell) -> String {
    guard let state = coldState(of: cell) else { return "" }
    // SAFETY: the kernel is asked about addresses, which it may say are nobody's.
    var stack = unsafe state.stack
    let used = unsafe weft_stack_high_water(&stack) / 1024
    let size = unsafe (UInt(bitPattern: stack.top) - UInt(bitPattern: stack.low)) / 1024
    return "; stack \(used) of \(size) KiB"
  }
}

extension ParkedFibers {
  func cell(at address: UInt) -> FiberCell? { byAddress[address] }
}

/// Dumps on a signal: a thread that sleeps until the handler counts a word up.
enum DumpSignal {
  // SAFETY: guarded by WEFT_LOCK_LIST; the word is never freed.
  // SAFETY: guarded by WEFT_LOCK_LIST.
  nonisolated(unsafe) private static var generation: UInt64?
  // SAFETY: constants; the words are never freed.
  nonisolated(unsafe) private static let word: UnsafeMutablePointer<weft_word> = {
    let word = UnsafeMutablePointer<weft_word>.allocate(capacity: 1)
    unsafe word.initialize(to: weft_word())
    return unsafe word
  }()

  // SAFETY: as `word`.
  nonisolated(unsafe) private static let done: UnsafeMutablePointer<weft_word> = {
    let word = UnsafeMutablePointer<weft_word>.allocate(capacity: 1)
    unsafe word.initialize(to: weft_word())
    return unsafe word
  }()

  // SAFETY: never freed. ORDERING: acquire, paired with the add in serve.
  /// How many dumps are written.
  static var servedCount: UInt64 { unsafe weft_word_load_acquire(done) }

  /// With the first scheduler of the process, if the environment asks for it.
  static func start() {
    guard let text = Environment.value("WEFT_DUMP_SIGNAL"), let number = number(of: text) else {
      return
    }
    weft_process_lock(Int32(WEFT_LOCK_LIST))
    defer { weft_process_unlock(Int32(WEFT_LOCK_LIST)) }
    // SAFETY: under the lock. A child of fork() has no such thread yet.
    if unsafe generation == weft_fork_generation() { return }
    unsafe generation = weft_fork_generation()
    guard unsafe weft_dump_on_signal(number, word) else { return }
    (try? KernelThread.start { DumpSignal.serve() })?.detach()
  }

  private static func serve() {
    weft_threads_enter()
    // SAFETY: a literal.
    unsafe weft_thread_set_name("weft-dump")
    var served: UInt64 = 0
    while true {
      // SAFETY: the word is never freed. ORDERING: seq; the handler counts before it wakes.
      let asked = unsafe weft_word_load_seq(word)
      if asked != served {
        served = asked
        writeToStandardError(Scheduler.dumpAll())
        unsafe weft_word_add(done, 1)
      } else {
        unsafe weft_futex_wait(word, UInt32(truncatingIfNeeded: served), never)
      }
    }
  }

  /// Of `USR1`, `SIGUSR1` or `10`.
  static func number(of text: String) -> Int32? {
    let names = [
      "USR1": SIGUSR1, "USR2": SIGUSR2, "QUIT": SIGQUIT, "HUP": SIGHUP, "INFO": SIGUSR1,
    ]
    return Int32(text) ?? names[text.hasPrefix("SIG") ? String(text.dropFirst(3)) : text]
  }
}
