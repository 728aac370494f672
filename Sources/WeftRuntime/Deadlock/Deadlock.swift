import CWeft
import WeftContext

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

// When nothing can happen any more.
//
// A deadlock is a state of the whole process, and once there it stays: no fiber runs or can run,
// and nobody is left who could make one runnable. It is concluded by a worker that is about to
// sleep with no limit, from looks that are not simultaneous, so the looks must prove that at one
// moment all of this held:
//
//   1. every worker of every scheduler sleeps, nobody searches, and no sleeper is between a timer
//      that it took and the queue that it puts the fiber into (words.firing)
//   2. no timer, no descriptor that a poller watches, no call in `blocking { }`
//   3. no fiber in any queue, inbox or mailbox, nor in a line for a stack that there may be
//   4. some fiber has not ended
//   5. every thread of the process is Weft's, or blocked until a fiber ends (cweft_watch.h)
//
// Whatever a worker does that could falsify 2 or 3 is followed by a switch, which its tick counts,
// before it sleeps again. So: read all ticks, check 1, then 2 to 5, check 1 again, and read the
// ticks again. If they are the same, every worker slept from the first check of 1 to the second,
// and 2 to 5 held in between. A wake that is under way has either taken the idle bit of a worker,
// which 1 sees, or is the doing of a thread that 5 does not know.
//
// Where 5 fails nobody can tell, and nothing is said but in dumps. A thread of our own counts
// itself when it first runs, and is there for a while after its last word: on a busy machine that
// takes as long as it waits for a processor. So a failure of 5 is looked into again, five times in
// seven seconds; then the process sleeps in peace.

/// What the last look saw that failed for an unknown thread only.
struct Suspicion {
  var ticks: UInt64 = 0
  var looks = 0
}

extension SchedulerCore {
  /// Whether this scheduler, as it seems, can go on by itself.
  private var mayMove: Bool {
    // SAFETY: words and workers live as long as the scheduler. ORDERING: seq and acquire; the
    // argument is above.
    if !allAsleep { return true }
    if unsafe weft_word_load_seq(words.searching) != 0 { return true }
    if unsafe weft_word_load_seq(words.firing) != 0 { return true }
    if unsafe weft_word_load_seq(words.offloaded) != 0 { return true }
    if unsafe weft_word_load_seq(words.registrations) != 0 { return true }
    // Sleepers look after the lines now and then: stacks come free elsewhere in the process too.
    if unsafe weft_word_load_seq(words.starved) != 0, !hopelesslyStarved { return true }
    for index in 0..<capacity {
      let worker = unsafe workers[index]
      if unsafe weft_word_load_acquire(weft_worker_next_deadline(worker)) != never
        || weft_word_load_acquire(weft_worker_queue_count(worker)) != 0
        || weft_link_load_acquire(weft_worker_inbox(worker)) != 0
        || weft_link_load_acquire(weft_worker_offer(worker)) != 0
        || weft_link_load_acquire(weft_worker_mailbox(worker)) != 0
      {
        return true
      }
    }
    if unsafe weft_word_load_seq(words.firing) != 0 { return true }
    return !allAsleep
  }

  fileprivate var ticks: UInt64 {
    // SAFETY: as above. ORDERING: acquire; read after idle bits that were set later than they.
    var sum: UInt64 = 0
    for index in 0..<capacity {
      unsafe sum &+= weft_word_load_acquire(weft_worker_tick(workers[index]))
    }
    return sum
  }

  /// The worker that calls is about to sleep for ever.
  ///
  /// - Returns: how long it may sleep before it looks again; 0 if there is something to do.
  func considerDeadlock() -> UInt64 {
    // A simulator sees for itself.
    if Seam.isSimulated { return never }
    // Cheap and mostly decisive.
    if isStopping || mayMove { return never }
    return SchedulerList.withLock { cores in
      let before = cores.reduce(0) { $0 &+ $1.ticks }
      if cores.contains(where: \.mayMove) { return never }
      let stuck = cores.filter { !$0.isStopping && $0.live > 0 }
      if stuck.isEmpty { return never }
      let known = weft_threads_are_known()
      if cores.contains(where: \.mayMove) || cores.reduce(0, { $0 &+ $1.ticks }) != before {
        return never
      }
      if known { return respond(stuck) }
      for core in stuck { core.reportStarvation() }
      if suspicion.ticks != before { suspicion = Suspicion(ticks: before) }
      suspicion.looks += 1
      return suspicion.looks <= 5 ? 5_000_000 << UInt64(2 * suspicion.looks) : never
    }
  }

  /// Fibers wait for a stack, and no other fiber can end by itself. Somebody from outside may still
  /// see to it: so it is said, once, and the pool goes on.
  private func reportStarvation() {
    guard hopelesslyStarved else { return }
    let error = lifeLock.withLock { () -> StackError? in
      defer { hasReportedStarvation = true }
      return hasReportedStarvation ? nil : stackError
    }
    guard let error else { return }
    writeToStandardError("weft: fibers that have not started wait for a stack: \(error)\n")
  }

  private func respond(_ stuck: [SchedulerCore]) -> UInt64 {
    let parked = stuck.map { $0.registry.cells() }
    var text = "weft: deadlock: every fiber waits, and nothing is left that could wake one.\n"
    for (core, cells) in zip(stuck, parked) { text += core.deadlockText(cells) }
    if stuck.allSatisfy({ $0.configuration.onDeadlock == .cancel }) {
      var cancelled = 0
      for cell in parked.joined() {
        // SAFETY: the cells are held.
        let duty = unsafe cell.pointer.cancelWait()
        if case .resume = duty { cancelled += 1 }
        unsafe perform(duty, cell.pointer)
      }
      if cancelled > 0 {
        writeToStandardError(text + "weft: \(counted(cancelled, "fiber")) cancelled\n")
        return 0
      }
      text += "weft: none of them can be cancelled\n"
    }
    writeToStandardError(text)
    Self.stopProcess()
  }

  /// As Go: status 2. What the program printed is not lost, unless one that waits holds the lock.
  private static func stopProcess() -> Never {
    weft_flush_output()
    _exit(2)
  }

  private func deadlockText(_ cells: [FiberCell]) -> String {
    var text = ""
    let parked = ParkedFibers(cells + lifeLock.withLock { exclusiveLine })
    for cell in cells {
      text += "weft:   \(label(of: cell)) waits for \(parked.reason(of: cell))\n"
    }
    lifeLock.withLock {
      for cell in exclusiveLine {
        text += "weft:   \(label(of: cell)) waits for \(ParkReason.exclusive)\n"
      }
      // SAFETY: every worker sleeps, so nobody takes from the line.
      let starved = unsafe weft_word_load_acquire(words.starved) != 0
      if starved, let stackError {
        text += "weft:   fibers that have not started wait for a stack: \(stackError)\n"
      }
    }
    for cycle in parked.cycles() {
      let names = (cycle + [cycle[0]]).map(shortLabel(of:)).joined(separator: " -> ")
      text += "weft:   cycle: \(names)\n"
    }
    return text
  }
}

/// Fibers that have parked, held, with what leads from one to another.
struct ParkedFibers {
  let byAddress: [UInt: FiberCell]

  init(_ cells: [FiberCell]) {
    // SAFETY: addresses as keys.
    byAddress = Dictionary(
      cells.map { (unsafe UInt(bitPattern: $0.pointer), $0) }, uniquingKeysWith: { $1 })
  }

  /// The one that a fiber joins, or joined last, if it is one of these.
  func joined(by cell: FiberCell) -> FiberCell? {
    // What the fiber last waited for may be gone: the address is looked up, not followed.
    guard let state = coldState(of: cell), state.reason == .join else { return nil }
    return byAddress[state.object]
  }

  /// `the end of fiber #4 "b"`.
  func reason(of cell: FiberCell) -> String {
    if let target = joined(by: cell) { return "the end of \(shortLabel(of: target))" }
    return "\(coldState(of: cell)?.reason ?? .none)"
  }

  /// Fibers that join each other in a circle.
  func cycles() -> [[FiberCell]] {
    var seen: Set<ObjectIdentifier> = []
    var cycles: [[FiberCell]] = []
    for start in byAddress.values {
      var path: [FiberCell] = []
      var next: FiberCell? = start
      while let cell = next, seen.insert(ObjectIdentifier(cell)).inserted {
        path.append(cell)
        next = joined(by: cell)
      }
      // It ran into itself, and not into an older path.
      if let cell = next, let first = path.firstIndex(where: { $0 === cell }) {
        cycles.append(Array(path[first...]))
      }
    }
    return cycles
  }
}
