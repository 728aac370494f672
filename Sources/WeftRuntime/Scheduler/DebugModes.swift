import CWeft

/// What the environment variable `WEFT_DEBUG` asks for: cweft_debug.h says what each mode is.
///
/// Those about stacks and thread words are in asm/common/debug.c. The others are here: numbers in
/// place of constants, and the way that fibers are sent to other workers.
struct DebugModes: OptionSet {
  let rawValue: UInt32
  static let migrate = DebugModes(rawValue: UInt32(WEFT_DEBUG_MIGRATE))
  static let steal = DebugModes(rawValue: UInt32(WEFT_DEBUG_STEAL))
  static let tiny = DebugModes(rawValue: UInt32(WEFT_DEBUG_TINY))
  static let queue = DebugModes(rawValue: UInt32(WEFT_DEBUG_QUEUE))
  static let canary = DebugModes(rawValue: UInt32(WEFT_DEBUG_CANARY))
  static let poison = DebugModes(rawValue: UInt32(WEFT_DEBUG_POISON))
  static let words = DebugModes(rawValue: UInt32(WEFT_DEBUG_WORDS))

  /// How many fibers in a row may go past the queue: a parent and its children that hand the worker
  /// to each other must not starve a third. A park that finds a permit counts as one.
  var directMost: UInt32 { contains(.queue) ? 0 : contains(.tiny) ? 1 : 32 }

  /// Fibers that one steal takes at most.
  var stealMost: UInt64 { contains(.tiny) ? 1 : contains(.steal) ? .max : WeftRuntime.stealMost }

  /// How many a queue must have for a worker that wants to sleep to look there again.
  var worthALook: UInt64 { contains(.steal) ? 1 : 2 }

  /// How many timers are fired under one hold of their lock.
  var timersMost: UInt64 { contains(.tiny) ? 1 : 64 }
}

extension SchedulerCore {
  /// In init.
  func setUpDebugModes() {
    // SAFETY: nobody else knows these records yet. The function is called after a switch, with the
    // fiber that was left, on the worker's own thread.
    for index in 0..<capacity { unsafe workers[index].pointee.direct_most = debug.directMost }
    unsafe words.pool.pointee.timers_most = debug.timersMost
    if !debug.contains(.migrate) || capacity < 2 || !migratesStarted { return }
    unsafe words.pool.pointee.moves = { worker, fiber, _ in
      unsafe schedulerCore(of: worker).sendAway(fiber, from: worker)
    }
  }

  /// Makes a fiber runnable that has waited, on another worker than the one where it did.
  func wakeElsewhere(_ record: Record, from home: Worker) {
    // SAFETY: as in sendAway. The count is this thread's own.
    if let worker = unsafe weft_worker_current(), unsafe worker.pointee.pool == words.pool {
      unsafe weft_word_bump(weft_worker_woken(worker), 1)
    }
    unsafe sendAway(record, from: home)
  }

  /// Makes a fiber runnable on another worker than this one, if there is one that takes general
  /// work: in a debug mode, and where this one does not.
  func sendAway(_ record: Record, from home: Worker) {
    // SAFETY: the caller holds the fiber: it is in no queue, and not touched after the push. Words
    // and workers live as long as this object.
    // ORDERING: the loads choose a target, no more. The push, then the fence, then the idle bits:
    // step (a) to (b) of Idle.swift.
    if unsafe words.pool.pointee.moves == nil {
      unsafe inject(record, near: nil)
      return
    }
    for offset in 1..<capacity {
      let index = unsafe (Int(home.pointee.index) + offset) % capacity
      if !isGeneral(index) { continue }
      let target = unsafe workers[index]
      // One that is idle comes to it at once. From an inbox `home`, which may look for work next,
      // would have the fiber back before the other is awake; one that is busy must not keep it.
      let isIdle = unsafe weft_word_load_relaxed(weft_worker_idle_since(target)) != 0
      // SAFETY: as above.
      let box = unsafe isIdle ? weft_worker_mailbox(target) : weft_worker_inbox(target)
      _ = unsafe weft_inbox_push(box, record)
      weft_fence_seq()
      if unsafe !wake(target) && !isIdle { wakeOne() }
      return
    }
    unsafe inject(record, near: nil)
  }
}
