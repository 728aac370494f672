import CWeft
import WeftRuntime

// MARK: - What the runtime asks

extension Machine {
  /// Another thread may run here.
  func point(_ kind: UInt32) {
    steps += 1
    if steps > configuration.stepsMost { return giveUp() }
    if kind == UInt32(WEFT_POINT_PAUSE) { return pause() }
    // What it does may be what others look for.
    for thread in threads where thread.isSpinning && thread.looks > 0 { thread.isSpinning = false }
    if takes(.slowWorkers) {
      delay(current)
      continueWith(next(after: current))
      return
    }
    var able = [current!]
    for thread in threads where thread.state == .runnable && thread !== current {
      able.append(thread)
    }
    if able.count < 2 { return }
    continueWith(chosen(among: able, costs: true))
  }

  /// The running thread waits for what another one does: others go first, most often.
  private func pause() {
    passIdleTime()
    if keepsLooking() { return }
    current.isSpinning = true
    continueWith(next(after: current))
  }

  /// Those that could run and do not wait for others.
  var othersAtWork: [VirtualThread] {
    threads.filter { $0.state == .runnable && !$0.isSpinning && $0 !== current }
  }

  private func keepsLooking() -> Bool {
    if current.looks == 0 { return false }
    current.looks -= 1
    if current.persists { return true }
    let others = othersAtWork
    if others.isEmpty { return false }
    current.persists = chosen(among: others.prefix(1) + [current], costs: true) === current
    return current.persists
  }

  private func giveUp() {
    fail(.endless(steps: configuration.stepsMost))
    isAbandoned = true
    continueWith(nil)
  }

  /// The running thread sleeps on a word, if that is still what it expects.
  func wait(_ word: UnsafeMutablePointer<weft_word>, _ expected: UInt32, _ nanoseconds: UInt64) {
    // SAFETY: the caller's word lives while it sleeps on it, and no other thread runs.
    point(UInt32(WEFT_POINT_WORD))
    if unsafe UInt32(truncatingIfNeeded: weft_word_peek(word)) != expected { return }
    if takes(.spuriousWakes) { return }
    current.state = .blocked
    unsafe current.word = UnsafeMutableRawPointer(word)
    current.deadline = saturatingSum(clock, nanoseconds)
    jumpPerhaps()
    if current.state == .runnable { return }
    current.looksAnew()
    continueWith(next(after: current))
  }

  func wake(_ word: UnsafeMutablePointer<weft_word>, _ count: Int32) {
    point(UInt32(WEFT_POINT_WORD))
    var left = count
    for thread in threads where left > 0 && thread.state == .blocked {
      // SAFETY: only compared.
      if unsafe thread.word != UnsafeMutableRawPointer(word) { continue }
      left -= 1
      somethingHappened()
      if takes(.delayedWakes) { delay(thread) } else { wake(thread) }
    }
  }

  func choose(_ kind: UInt32, _ names: UnsafePointer<UInt64>?, _ count: UInt32) -> UInt32 {
    // SAFETY: as many names as there are choices, or none.
    if unsafe names != nil { choices += 1 }
    let costs = kind == UInt32(WEFT_CHOICE_PREEMPT)
    let chosen = decider.decide(kind, Int(count), costs: costs) { index in
      unsafe names?[index] ?? UInt64(index)
    }
    return UInt32(chosen)
  }

  func note(_ what: UInt32, _ fiber: UnsafeMutablePointer<weft_fiber>) {
    // SAFETY: whoever tells of a fiber holds it.
    steps += 1
    if steps > configuration.stepsMost { return giveUp() }
    if what != UInt32(WEFT_NOTE_RUN) { jumpPerhaps() }
    if what == UInt32(WEFT_NOTE_YIELD) {
      passIdleTime()
      // Not where it was interrupted.
      if unsafe seam.pointee.is_chosen == 0 {
        unsafe decider.yielded(weft_fiber_id(fiber), on: UInt64(current.number))
      }
    } else if what == UInt32(WEFT_NOTE_RUN) {
      current.looksAnew()
    } else {
      somethingHappened()
    }
    unsafe timeline?.add(self, what, fiber)
  }

  /// Those that wait for others look again.
  private func somethingHappened() {
    idleSteps = 0
    for thread in threads where thread.isSpinning { thread.isSpinning = false }
  }

  func join(_ context: UnsafeMutablePointer<weft_virtual>) {
    // SAFETY: contexts are destroyed when the run is over.
    while unsafe context.pointee.has_ended == 0 {
      current.state = .blocked
      unsafe current.word = UnsafeMutableRawPointer(context)
      current.deadline = .max
      continueWith(next(after: current))
    }
  }

  /// The running thread has ended.
  ///
  /// - Returns: who goes on.
  func ended() -> UnsafeMutablePointer<weft_virtual> {
    current.state = .ended
    for thread in threads where thread.state == .blocked {
      // SAFETY: only compared.
      if unsafe thread.word == UnsafeMutableRawPointer(current.context) { wake(thread) }
    }
    guard let next = next(after: current) else { return unsafe home }
    current = next
    return unsafe next.context
  }
}
