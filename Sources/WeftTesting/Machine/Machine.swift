import CWeft
import WeftContext
import WeftRuntime

// One run of a simulated process. Its kernel threads are contexts on the calling thread's kernel
// thread, of which one runs at a time:
//
//     home             who called Simulation.run: waits until the run is over
//     thread 0         calls Scheduler.run, and so is worker 0
//     conductor        does what the simulation itself asks for from outside, as cancelling all
//     thread 2, ...    workers, threads of blocking { }, Simulation.thread
//
// The running one asks the machine at each point of the seam, on its own stack; the machine
// decides, and switches to another thread or returns. When no thread can run:
//
//     the body has returned ──────▶ main goes on: what is left now is a leak
//     somebody sleeps for a time ─▶ time jumps there
//     else ───────────────────────▶ deadlock, or a lost wake-up: the conductor cancels everybody
//                                   who waits, once; what still does not end is abandoned
//
// INVARIANT: nothing in here waits, or touches an atomic word of the runtime, but on the conductor.

// SAFETY: used by one kernel thread.
@safe
final class Machine {
  let seam: UnsafeMutablePointer<weft_seam>
  let configuration: Simulation.Configuration
  var decider: Decider
  var timeline: Timeline?
  let reference: (instant: ContinuousClock.Instant, nanoseconds: UInt64)

  let home: UnsafeMutablePointer<weft_virtual>
  var threads: [VirtualThread] = []
  var current: VirtualThread!
  private var conductor: VirtualThread!
  private var request = Request.none
  var schedulers: [SimulatedScheduler] = []

  var steps = 0
  /// Choices of who runs next, which some policies want to know the usual number of.
  var choices = 0
  /// Steps since anything happened but waiting for others.
  var idleSteps = 0
  private(set) var failure: SimulationFailure.Kind?
  private var unjoinedErrors: [String] = []
  var faultsAreOn = false
  var bodyHasEnded = false
  private(set) var isQuiet = false
  private var hasCancelled = false
  var isAbandoned = false

  /// What the conductor is asked to do.
  private enum Request { case none, quiet, cancel, end }

  /// 1 << 40 nanoseconds, some 18 minutes: the same in each run, and not zero.
  static let beginning: UInt64 = 1 << 40
  /// As far as time gets while somebody polls: a century and more.
  static let end: UInt64 = 1 << 62

  init(_ configuration: Simulation.Configuration, decider: Decider, traces: Bool) {
    self.configuration = configuration
    self.decider = decider
    timeline = traces ? Timeline() : nil
    reference = (ContinuousClock.now, Machine.beginning)
    // SAFETY: memory of our own, freed in deinit.
    unsafe seam = .allocate(capacity: 1)
    unsafe home = weft_virtual_adopt()!
    unsafe seam.initialize(
      to: Machine.makeSeam(Unmanaged.passUnretained(self).toOpaque(), clock: Machine.beginning))
  }

  deinit {
    // SAFETY: the run is over, and was not abandoned: then somebody keeps this object for good.
    unsafe weft_virtual_destroy(home)
    unsafe seam.deallocate()
  }

  var clock: UInt64 { unsafe seam.pointee.clock }  // SAFETY: our own memory

  // MARK: - A run

  /// Runs a function as thread 0 of a simulated process, until all of its threads have ended or
  /// the run is abandoned.
  func run(_ body: @escaping () -> Void) {
    // SAFETY: the seam is left before this returns. Contexts live until they have ended.
    // What is not found before the first switch would not be kept over it.
    RuntimeInfo.findWordsOfThisThread()
    unsafe seam.pointee.current = home
    unsafe weft_seam_enter(seam)
    start(body)
    conductor = start { [unowned self] in conduct() }
    conductor.state = .blocked
    current = threads[0]
    unsafe weft_virtual_switch(home, current.context)
    if !isAbandoned { for thread in threads { unsafe weft_virtual_destroy(thread.context) } }
    weft_seam_leave()
    finish()
  }

  private func finish() {
    // SAFETY: our own memory.
    if isAbandoned || failure != nil { return }
    if !unjoinedErrors.isEmpty {
      fail(.unjoinedErrors(unjoinedErrors))
    } else if unsafe seam.pointee.stacks != 0 {
      fail(.leakedStacks(unsafe Int(seam.pointee.stacks)))
    }
  }

  func fail(_ kind: SimulationFailure.Kind) {
    if failure != nil { return }
    failure = kind
    timeline?.end(self, "\(kind.name)")
    decider.isOver = true
    faultsAreOn = false
  }

  /// From main, before the body.
  func begin() { faultsAreOn = true }

  /// From main, after the body: waits until nothing but time could make any other fiber go on.
  func end(_ error: (any Error)?) {
    if let error { fail(.threw(error)) }
    faultsAreOn = false
    bodyHasEnded = true
    // Then the end of the run meets them wherever they are.
    if configuration.allowsLeftovers { isQuiet = true }
    while !isQuiet { withCancellationShield { try? Fiber.park() } }
  }

  // MARK: - The conductor

  private func conduct() {
    while true {
      let asked = request
      request = .none
      switch asked {
      case .none: sleepForGood(conductor)
      case .end: return
      case .quiet: for scheduler in schedulers { scheduler.unparkMain() }
      case .cancel:
        for scheduler in schedulers { scheduler.cancelAll(exceptMain: isQuiet) }
      }
    }
  }

  private func sleepForGood(_ thread: VirtualThread) {
    thread.state = .blocked
    thread.deadline = .max
    continueWith(next(after: thread))
  }

  private func ask(_ request: Request) -> VirtualThread {
    self.request = request
    conductor.state = .runnable
    return conductor
  }

  // MARK: - Who runs

  @discardableResult
  private func start(_ body: @escaping () -> Void) -> VirtualThread {
    final class Start {
      let body: () -> Void
      init(_ body: @escaping () -> Void) { self.body = body }
    }
    // SAFETY: the reference goes to the thread, which takes it once.
    let argument = unsafe Unmanaged.passRetained(Start(body)).toOpaque()
    let run: @convention(c) (UnsafeMutableRawPointer) -> Void = {
      unsafe Unmanaged<Start>.fromOpaque($0).takeRetainedValue().body()
    }
    guard let thread = unsafe startThread(run, argument) else {
      fatalError("weft: no memory for the threads of a simulation; run fewer at a time")
    }
    return thread
  }

  func startThread(
    _ run: @convention(c) (UnsafeMutableRawPointer) -> Void, _ argument: UnsafeMutableRawPointer
  ) -> VirtualThread? {
    // SAFETY: the caller's function and argument fit; the context is destroyed after its end.
    unsafe seam.pointee.holds += 1
    defer { unsafe seam.pointee.holds -= 1 }
    guard let context = unsafe weft_virtual_create(256 << 10, run, argument) else { return nil }
    let thread = unsafe VirtualThread(context, number: threads.count)
    threads.append(thread)
    return thread
  }

  /// Lets a thread run; returns when the running one is continued.
  func continueWith(_ next: VirtualThread?) {
    // SAFETY: both contexts live, as neither has been destroyed.
    guard let next else {
      unsafe weft_virtual_switch(current.context, home)
      return
    }
    if next === current { return }
    let own = unsafe current.context
    current = next
    unsafe weft_virtual_switch(own, next.context)
  }

  /// Who runs when this one can't go on, or has let others go first. Nil: home, the run is over.
  func next(after thread: VirtualThread) -> VirtualThread? {
    while true {
      var able = threads.filter { $0.state == .runnable && !$0.isSpinning }
      if able.isEmpty {
        // Those that wait for others look again, now that there are no others.
        for thread in threads where thread.isSpinning { thread.isSpinning = false }
        able = threads.filter { $0.state == .runnable }
        if able.count > 1 { able.removeAll { $0 === thread } }
      }
      if able.isEmpty {
        if let found = onStuck() { return found }
        if isAbandoned || conductor.state == .ended { return nil }
        continue
      }
      // The one whose turn it is comes first.
      let turn = able.firstIndex { $0.number > thread.number } ?? 0
      able = Array(able[turn...] + able[..<turn])
      return chosen(among: able, costs: false)
    }
  }

  /// One of those that can run.
  ///
  /// - Parameter costs: whether the first would go on as if nothing was.
  func chosen(among able: [VirtualThread], costs: Bool) -> VirtualThread {
    choices += 1
    return able[
      decider.decide(UInt32(WEFT_CHOICE_THREAD), able.count, costs: costs) {
        UInt64(able[$0].number)
      }]
  }

  /// Every thread but the conductor has ended.
  private var isOver: Bool { threads.allSatisfy { $0.state == .ended || $0 === conductor } }

  /// No thread can run. Nil: time has passed, the run is over, or it is abandoned.
  private func onStuck() -> VirtualThread? {
    if isOver { return conductor.state == .ended ? nil : ask(.end) }
    if wakeSleepers() { return nil }
    if bodyHasEnded && !isQuiet {
      isQuiet = true
      noteLeftovers()
      return ask(.quiet)
    }
    if passTime() { return nil }
    if failure == nil || !hasCancelled { noteStuck() }
    if hasCancelled {
      isAbandoned = true
      return nil
    }
    hasCancelled = true
    return ask(.cancel)
  }

  private func noteLeftovers() {
    if failure != nil { return }
    // SAFETY: our own memory. Looking around is no point.
    unsafe seam.pointee.holds += 1
    defer { unsafe seam.pointee.holds -= 1 }
    let left = schedulers.flatMap(\.fibers).filter { !$0.isMain }
    if !left.isEmpty { fail(.leakedFibers(left.map { "\($0.label) \($0.state)" })) }
  }

  private func noteStuck() {
    // SAFETY: our own memory. Looking around is no point.
    unsafe seam.pointee.holds += 1
    defer { unsafe seam.pointee.holds -= 1 }
    var lost: [String] = []
    var waiting: [String] = []
    for scheduler in schedulers {
      for fiber in scheduler.fibers where !(fiber.isMain && isQuiet) {
        waiting.append("\(fiber.label) \(fiber.state)")
        if let reason = fiber.lost { lost.append("\(fiber.label): \(reason)") }
      }
      for (worker, count) in scheduler.runnable {
        lost.append("worker \(worker) sleeps, and has \(count) runnable fibers")
      }
      for worker in scheduler.forgottenTimers {
        lost.append("nobody minds the timers of worker \(worker)")
      }
      if scheduler.starved > 0 { waiting.append("\(scheduler.starved) fibers wait for a stack") }
    }
    for thread in threads where thread.state == .blocked && thread !== conductor {
      if thread.number >= configuration.workers + 1 {
        waiting.append("thread \(thread.number) sleeps")
      }
    }
    fail(lost.isEmpty ? .deadlock(waiting) : .lostWakeUp(lost))
  }
}

extension Machine: Simulator {
  func started(_ scheduler: SimulatedScheduler) { schedulers.append(scheduler) }
  func unjoined(_ text: String) { unjoinedErrors.append(text) }
}
