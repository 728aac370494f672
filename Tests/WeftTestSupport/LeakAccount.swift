import Glibc
import Weft
import WeftRuntime

/// What a process has that whoever used it must give back.
///
/// The counts are those of the whole process: use it where nobody else starts, opens or keeps
/// anything, which is in the process of an exit test. In the process of all tests, others run at
/// the same time.
public struct LeakAccount: Sendable, Equatable, CustomStringConvertible {
  /// Stacks that were handed out and not given back, but for those that idle workers keep.
  public let stacks: Int
  /// Fibers of all schedulers that have not ended.
  public let fibers: Int
  /// Open descriptors.
  public let descriptors: Int
  /// Kernel threads.
  public let threads: Int

  /// What the process has now.
  public static func now() -> LeakAccount {
    // What workers keep is known as of when each was last idle: too much, for a moment.
    let stacks = max(0, StackPool.statistics.live - Scheduler.cachedStacksEverywhere)
    return LeakAccount(
      stacks: stacks, fibers: Scheduler.liveEverywhere,
      descriptors: entryNames("/proc/self/fd").count, threads: entryNames("/proc/self/task").count)
  }

  /// The least of each in some milliseconds: what has just ended is counted for a moment longer,
  /// and would hide as much that is left later.
  public static func settled() -> LeakAccount {
    var least = now()
    for _ in 0..<10 {
      usleep(500)
      let next = now()
      least = LeakAccount(
        stacks: min(least.stacks, next.stacks), fibers: min(least.fibers, next.fibers),
        descriptors: min(least.descriptors, next.descriptors),
        threads: min(least.threads, next.threads))
    }
    return least
  }

  /// Whether there is more of anything than there was.
  public func exceeds(_ before: LeakAccount) -> Bool {
    stacks > before.stacks || fibers > before.fibers || descriptors > before.descriptors
      || threads > before.threads
  }

  /// All four in a line.
  public var description: String {
    "\(stacks) stacks, \(fibers) fibers, \(descriptors) descriptors, \(threads) threads"
  }
}

/// Something was left.
public struct Leak: Error, CustomStringConvertible {
  /// What there was before.
  public let before: LeakAccount
  /// What there is now.
  public let after: LeakAccount

  /// Both.
  public var description: String { "something was left: \(before) became \(after)" }
}

/// Runs a function after which the process must have no more than it had before; throws `Leak` if
/// it has.
///
/// What the process needs once, like the threads of `Scheduler.shared`, is no leak: where there is
/// more, the function is run again, and leaks if there is more each time. Threads may take a while
/// to end, since one that was joined is listed a moment longer.
public func leavingNothing(
  within patience: Duration = .seconds(3), _ body: () throws -> Void
) throws {
  var leak: Leak?
  for _ in 0..<3 {
    leak = try attempt(within: patience, body)
    if leak == nil { return }
  }
  if let leak { throw leak }
}

private func attempt(within patience: Duration, _ body: () throws -> Void) rethrows -> Leak? {
  let before = LeakAccount.settled()
  try body()
  let until = ContinuousClock.now + patience
  while true {
    let after = LeakAccount.now()
    if !after.exceeds(before) { return nil }
    if ContinuousClock.now > until { return Leak(before: before, after: after) }
    usleep(500)
  }
}

/// The names in a folder, without the two that every folder has. Its own descriptor is among those
/// of /proc/self/fd, each time.
public func entryNames(_ path: String) -> [String] {
  // SAFETY: closed below; each name is copied before the next is read.
  guard let directory = unsafe opendir(path) else { return [] }
  defer { unsafe closedir(directory) }
  var names: [String] = []
  while let entry = unsafe readdir(directory) {
    let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      // SAFETY: it ends in zero within the array that it is.
      unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
        unsafe String(cString: $0)
      }
    }
    if name != "." && name != ".." { names.append(name) }
  }
  return names
}
