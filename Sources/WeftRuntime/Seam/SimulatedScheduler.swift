import CWeft

/// What a simulator sees of a scheduler while none of its threads runs.
package struct SimulatedScheduler {
  let core: SchedulerCore

  init(_ core: SchedulerCore) { self.core = core }

  /// A fiber that has parked at least once and not ended.
  package struct ParkedFiber {
    let cell: FiberCell
    /// `fiber #3 "reader" (made at main.swift:12)`.
    package let label: String
    /// `waits for an element of a channel`, and so on.
    package let state: String
    package let isMain: Bool
    /// Why it should not wait any more; nil if it may.
    package let lost: String?
  }

  /// Those that wait, and those that got lost.
  package var fibers: [ParkedFiber] {
    let cells = core.registry.cells()
    let parked = ParkedFibers(cells + core.lifeLock.withLock { core.exclusiveLine })
    return cells.map { cell in
      // SAFETY: the cell is held.
      let isMain = unsafe cell.pointer.pointee.flags & .main != 0
      return ParkedFiber(
        cell: cell, label: label(of: cell), state: "waits for \(parked.reason(of: cell))",
        isMain: isMain, lost: lost(cell))
    }
  }

  /// Why a fiber should be running that is in no queue, while every thread sleeps.
  private func lost(_ cell: FiberCell) -> String? {
    // SAFETY: the cell is held, and no thread runs.
    // ORDERING: relaxed; no other thread runs.
    let record = unsafe cell.pointer
    if unsafe weft_fiber_queued(record) != nil { return nil }
    guard let state = coldState(of: cell) else { return nil }
    let word = unsafe weft_word_load_relaxed(weft_fiber_wait(record))
    if state.reason == .join, let target = unsafe Record(bitPattern: state.object) {
      if word & WaitBits.parked == 0, unsafe hasEnded(target) {
        return "the fiber that it joins has ended"
      }
      return nil
    }
    if state.reason == .exclusive { return nil }
    if word & WaitBits.parked == 0 { return "its wait is over, and it is in no queue" }
    if word & WaitBits.parkWait != 0, word & WaitBits.permit != 0 { return "it has a permit" }
    if WaitBits.ends(word, flags: word) { return "it is cancelled" }
    return outstanding(state)
  }

  /// What a fiber waits for, and is there.
  private func outstanding(_ state: ColdState) -> String? {
    // SAFETY: a fiber that waits for a primitive keeps it, and no thread runs, so that nobody is
    // under its lock. cweft_sync.h has the layouts.
    // ORDERING: relaxed; no other thread runs.
    switch state.reason {
    case .semaphore:
      guard let gate = unsafe UnsafeMutablePointer<weft_gate>(bitPattern: state.object),
        let first = unsafe gate.pointee.line.first
      else { return nil }
      let permits = unsafe weft_word_load_relaxed(weft_gate_state(gate)) >> 1
      return unsafe permits >= first.pointee.amount ? "the semaphore has the permits" : nil
    case .receive, .send:
      guard let channel = unsafe UnsafeMutablePointer<weft_channel>(bitPattern: state.object)
      else { return nil }
      let count = unsafe weft_word_load_relaxed(weft_channel_count(channel))
      let isMet =
        unsafe channel.pointee.receivers.first != nil && channel.pointee.senders.first != nil
      if state.reason == .receive { return count > 0 || isMet ? "the channel has an element" : nil }
      return unsafe count < channel.pointee.capacity || isMet ? "the channel has room" : nil
    default: return nil
    }
  }

  /// Fibers that could run, and none of the workers does: each worker with how many it has.
  package var runnable: [(worker: Int, count: Int)] {
    // SAFETY: workers live as long as the scheduler, and no thread runs.
    // ORDERING: relaxed; no other thread runs.
    (0..<core.capacity).compactMap { index in
      let worker = unsafe core.workers[index]
      var count = unsafe Int(weft_word_load_relaxed(weft_worker_queue_count(worker)))
      if unsafe weft_link_load_relaxed(weft_worker_inbox(worker)) != 0 { count += 1 }
      if unsafe weft_link_load_relaxed(weft_worker_mailbox(worker)) != 0 { count += 1 }
      if unsafe weft_link_load_relaxed(weft_worker_offer(worker)) != 0 { count += 1 }
      return count == 0 ? nil : (index, count)
    }
  }

  /// Workers whose timers nobody watches, though every thread sleeps for ever.
  package var forgottenTimers: [Int] {
    // SAFETY: as above. ORDERING: relaxed; no other thread runs.
    (0..<core.capacity).filter {
      unsafe weft_word_load_relaxed(weft_worker_next_deadline(core.workers[$0])) != never
    }
  }

  /// The next time limit of any fiber; `UInt64.max`: none.
  package var nextDeadline: UInt64 {
    // SAFETY: as above. ORDERING: relaxed; no other thread runs.
    (0..<core.capacity).reduce(never) {
      unsafe min($0, weft_word_load_relaxed(weft_worker_next_deadline(core.workers[$1])))
    }
  }

  /// Fibers that wait for a stack.
  package var starved: Int {
    // SAFETY: a word of the scheduler. ORDERING: relaxed; no other thread runs.
    unsafe Int(weft_word_load_relaxed(core.words.starved))
  }

  /// Fibers made and not ended.
  package var live: Int { core.live }

  /// Ends the park of the main fiber. From a thread that is no worker.
  package func unparkMain() {
    // SAFETY: the cells are held.
    for cell in core.registry.cells() where unsafe cell.pointer.pointee.flags & .main != 0 {
      cell.unpark()
    }
  }

  /// Cancels every fiber that waits, but for the main one after its body's end. From a thread that
  /// is no worker.
  package func cancelAll(exceptMain: Bool) {
    for fiber in fibers where !(exceptMain && fiber.isMain) { fiber.cell.cancel() }
  }
}

/// The name of a fiber, for a timeline.
package func simulatedName(_ record: UnsafeMutablePointer<weft_fiber>) -> String {
  // SAFETY: the caller holds the fiber, or runs as it.
  unsafe shortLabel(of: record.cell)
}

/// What a fiber is about to wait for.
package func simulatedReason(_ record: UnsafeMutablePointer<weft_fiber>) -> ParkReason {
  // SAFETY: the fiber has a stack, and no other thread runs.
  unsafe ParkReason(rawValue: record.pointee.cold.pointee.wait_reason) ?? .none
}
