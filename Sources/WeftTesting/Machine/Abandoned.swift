import Synchronization

/// Machines whose runs could not be ended, as when fibers wait for locks that nobody will ever
/// free: their stacks stay, and so must whatever those refer to.
enum Abandoned {
  // SAFETY: kept and never used.
  private struct Kept: @unchecked Sendable { let machine: Machine }
  private static let machines = Mutex<[Kept]>([])

  static func keep(_ machine: Machine) {
    let kept = Kept(machine: machine)
    machines.withLock { $0.append(kept) }
  }
}
