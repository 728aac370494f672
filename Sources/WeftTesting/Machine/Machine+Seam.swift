import CWeft
import WeftRuntime

/// The machine of a seam, without a reference of its own: a thread that is abandoned would keep it
/// for good.
private func of<R>(_ seam: UnsafeMutablePointer<weft_seam>, _ body: (Machine) -> R) -> R {
  // SAFETY: whoever runs the machine keeps it until the seam is left.
  unsafe Unmanaged<Machine>.fromOpaque(seam.pointee.simulator.unsafelyUnwrapped)
    ._withUnsafeGuaranteedRef(body)
}

extension Machine {
  /// What the runtime calls, and a new process's clock.
  ///
  /// - Parameter machine: unretained.
  static func makeSeam(_ machine: UnsafeMutableRawPointer, clock: UInt64) -> weft_seam {
    // SAFETY: each function gets the seam of the thread that simulates, and what the C header says.
    unsafe weft_seam(
      point: { seam, kind, _ in unsafe of(seam) { $0.point(kind) } },
      wait: { seam, word, expected, nanoseconds in
        unsafe of(seam) { unsafe $0.wait(word, expected, nanoseconds) }
      },
      wake: { seam, word, count in unsafe of(seam) { unsafe $0.wake(word, count) } },
      choose: { seam, kind, names, count in
        unsafe of(seam) { unsafe $0.choose(kind, names, count) }
      },
      fails: { seam, fault in unsafe of(seam) { $0.fails(fault) } },
      note: { seam, what, fiber in unsafe of(seam) { unsafe $0.note(what, fiber) } },
      start: { seam, run, argument in
        unsafe of(seam) { unsafe $0.startThread(run, argument)?.context }
      },
      join: { seam, thread in unsafe of(seam) { unsafe $0.join(thread) } },
      ended: { seam in unsafe of(seam) { unsafe $0.ended() } },
      yield: { simulatedYield() }, cancel: { unsafe simulatedCancel($0) },
      simulator: machine, scheduler: nil, current: nil, clock: clock, fibers: 0, stacks: 0,
      holds: 0, is_chosen: 0)
  }
}
