import Glibc
import Weft
import WeftRuntime

/// What a process has that whoever used it must give back.
///
/// The counts are those of the whole process: use it where nobody else starts, opens or keeps
/// anything, which is in the process of an exit test. In the process of all tests, others run at
/// the same time.
public struct LeakAccount: Sendable, Equatable, CustomStringConvertible {
  /// Stacks that were handed out and not given back.
  public let stacks: Int
  /// Fibers of all schedulers that have not ended.
  public let fibers: Int
  /// Open descriptors.
  public let descriptors: Int
  /// Kernel threads.
  public let threads: Int

  /// What the process has now.
  public static func now() -> LeakAccount {
    LeakAccount(
      stacks: StackPool.statistics.live, fibers: Scheduler.liveEverywhere,
      descriptors: entryNames("/proc/self/fd").count, threads: entryNames("/proc/self/task").count)
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
/// What is needed once, like the threads of `Scheduler.shared`, counts: use it before. Threads may
/// take a while to end, since a thread that was joined is listed a moment longer.
public func leavingNothing<R>(
  within patience: Duration = .seconds(10), _ body: () throws -> R
) throws -> R {
  let before = LeakAccount.now()
  let result = try body()
  let until = ContinuousClock.now + patience
  var after = LeakAccount.now()
  while after.exceeds(before) && ContinuousClock.now < until {
    usleep(500)
    after = LeakAccount.now()
  }
  if after.exceeds(before) { throw Leak(before: before, after: after) }
  return result
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
