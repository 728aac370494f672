import CWeft

// Where a simulation decides instead of the kernel, chance, or a queue's order. cweft_seam.h has
// the C side. Nothing here does anything on a thread that does not simulate, and hot paths ask no
// more than whether anybody in the process does.

/// What simulates, as the runtime sees it. Called on the stack of whoever is simulated.
package protocol Simulator: AnyObject {
  /// A scheduler of the simulation has started.
  func started(_ scheduler: SimulatedScheduler)
  /// An error that nobody joined was released.
  func unjoined(_ text: String)
  /// One moment on the clock of the simulation and on that of the program.
  var reference: (instant: ContinuousClock.Instant, nanoseconds: UInt64) { get }
}

enum Seam {
  /// Whether the calling thread simulates.
  ///
  /// COST: where nobody does, a load and a branch.
  // SAFETY: only compared.
  @inline(__always)
  static var isSimulated: Bool { unsafe weft_seam_is_open() && weft_seam_current() != nil }

  private static var simulator: (any Simulator)? {
    // SAFETY: the simulator lives as long as its seam is entered.
    guard let seam = unsafe weft_seam_current(), let object = unsafe seam.pointee.simulator else {
      return nil
    }
    return unsafe Unmanaged<AnyObject>.fromOpaque(object).takeUnretainedValue() as? any Simulator
  }

  /// The scheduler of the simulation, which takes what is made outside of fibers.
  static var core: SchedulerCore? {
    // SAFETY: noted while it runs.
    guard isSimulated, let core = unsafe weft_seam_current()?.pointee.scheduler else { return nil }
    return unsafe Unmanaged<SchedulerCore>.fromOpaque(core).takeUnretainedValue()
  }

  static var reference: (instant: ContinuousClock.Instant, nanoseconds: UInt64)? {
    isSimulated ? simulator?.reference : nil
  }

  static func note(_ core: SchedulerCore) {
    // SAFETY: the address of an object that lives as long as the run. The first is the run's own;
    // another that the body makes may end before it.
    if let seam = unsafe weft_seam_current(), unsafe seam.pointee.scheduler == nil {
      unsafe seam.pointee.scheduler = Unmanaged.passUnretained(core).toOpaque()
    }
    simulator?.started(SimulatedScheduler(core))
  }

  /// Whether a fiber goes through the queue that might have gone past it.
  @inline(__always)
  static var refusesDirect: Bool {
    weft_seam_is_open() && weft_seam_choose(UInt32(WEFT_CHOICE_DIRECT), 2) == 1
  }

  /// Runs a function as outside of the simulation: for what outlives it.
  static func outside<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    // SAFETY: whoever entered the seam has it for as long as the run takes.
    guard isSimulated, let seam = unsafe weft_seam_current() else { return try body() }
    weft_seam_leave()
    defer { unsafe weft_seam_enter(seam) }
    return try body()
  }

  static func noteUnjoined(_ text: String) { simulator?.unjoined(text) }
}

/// A place where, in a simulation, others may run.
package func simulatedPoint() {
  if weft_seam_is_open() { weft_seam_point(UInt32(WEFT_POINT_LOCK), nil) }
}

/// A random number below `count` that a simulation chooses; nil where there is none.
@inlinable @inline(__always)
package func simulatedValue(below count: UInt32) -> UInt64? {
  weft_seam_is_open() ? chosenValue(below: count) : nil
}

@usableFromInline @inline(never)
func chosenValue(below count: UInt32) -> UInt64? {
  Seam.isSimulated ? UInt64(weft_seam_choose(UInt32(WEFT_CHOICE_VALUE), count)) : nil
}

/// What a simulator asks of the runtime: `Fiber.yield`.
package func simulatedYield() { Fiber.yield() }

/// The same: the cancellation of a fiber that is about to park.
package func simulatedCancel(_ record: UnsafeMutablePointer<weft_fiber>) {
  // SAFETY: the running fiber's own record, in the middle of its switch away.
  _ = unsafe record.cancelWait()
}
