import CWeft
import WeftRuntime

// Time, which is virtual, and what may go wrong.

extension Machine {
  // MARK: - Time

  /// Jumps to the next moment for which a thread waits. False if none does.
  @discardableResult
  func passTime() -> Bool {
    // SAFETY: our own memory.
    let next = threads.lazy.filter { $0.state == .blocked }.map(\.deadline).min() ?? .max
    if next == .max { return false }
    if unsafe next > seam.pointee.clock {
      unsafe seam.pointee.clock = next
      timeline?.add(self, "time passes")
    }
    wakeSleepers()
    return true
  }

  /// Those whose time has come, and those that were delayed. False if there are none.
  @discardableResult
  func wakeSleepers() -> Bool {
    var any = false
    for thread in threads where thread.state == .blocked && thread.deadline <= clock {
      wake(thread)
      any = true
    }
    return any
  }

  func wake(_ thread: VirtualThread) {
    thread.state = .runnable
    unsafe thread.word = nil
    thread.deadline = .max
  }

  /// Nobody does anything but wait for time to pass, busily: it does, ever faster.
  func passIdleTime() {
    // SAFETY: our own memory.
    idleSteps += 1
    if idleSteps < 64 || !othersAtWork.isEmpty { return }
    let step = UInt64(1_000) << UInt64(min((idleSteps - 64) / 16, 32))
    if clock >= Machine.end { return }
    unsafe seam.pointee.clock = min(clock + step, Machine.end)
    wakeSleepers()
  }

  // MARK: - Faults

  func takes(_ fault: Simulation.Faults) -> Bool {
    guard faultsAreOn, configuration.faults.contains(fault) else { return false }
    let percent = configuration.faultPercent
    return decider.decide(UInt32(WEFT_CHOICE_FAULT), 2, costs: true, percent: percent) == 1
  }

  func fails(_ fault: UInt32) -> Bool {
    switch fault {
    case UInt32(WEFT_FAULT_STACK): takes(.noStack)
    case UInt32(WEFT_FAULT_THREAD): takes(.noThread)
    default: takes(.cancellations)
    }
  }

  /// Time passes, as while somebody computes, up to the next time limit of any thread or fiber.
  func jumpPerhaps() {
    if !takes(.clockJumps) { return }
    // SAFETY: our own memory.
    let sleepers = threads.lazy.filter { $0.state == .blocked }.map(\.deadline)
    let next = (Array(sleepers) + schedulers.map(\.nextDeadline)).filter { $0 > clock }.min()
    guard let next, next < .max else { return }
    unsafe seam.pointee.clock = next
    timeline?.add(self, "time passes")
    wakeSleepers()
  }

  /// It runs again when nobody else can.
  func delay(_ thread: VirtualThread) {
    thread.state = .blocked
    unsafe thread.word = nil
    thread.deadline = clock
  }
}
