import CWeft
import Glibc

/// What a child process did.
public struct Child: Sendable {
  /// Its exit code, if it ended by itself.
  public let exitStatus: Int32?
  /// The signal that ended it.
  public let signal: Int32?
  /// What it wrote to standard error.
  public let errors: String

  /// Makes one.
  public init(exitStatus: Int32?, signal: Int32?, errors: String) {
    self.exitStatus = exitStatus
    self.signal = signal
    self.errors = errors
  }
}

/// In an exit test: runs a function as a program's `main`, on a thread that is no Swift task's and
/// blocks no signals, and ends the process with what it returns. One that takes too long is killed.
public func asProgram(_ main: @escaping @Sendable () -> Int32) {
  alarm(50)
  onThread {
    unblockSignals()
    exit(main())
  }
}

/// Lets the calling thread have all signals: threads of tests have them blocked.
public func unblockSignals() {
  var none = sigset_t()
  // SAFETY: ours.
  unsafe sigemptyset(&none)
  unsafe pthread_sigmask(SIG_SETMASK, &none, nil)
}

/// Runs a function in a child of `fork()`, which has this one thread only, and collects what it
/// writes to standard error. A child that takes too long is killed.
///
/// For what is about `fork()`; what needs a process whose every thread is known is better off with
/// an exit test and `asOnlyThread`, and all else with `asProgram`. Not with the thread sanitizer,
/// which lets no such child start threads.
public func inChild(_ body: () -> Int32) -> Child {
  var ends: [Int32] = [0, 0]
  // SAFETY: two descriptors for the call to fill in.
  guard unsafe pipe(&ends) == 0 else { return Child(exitStatus: nil, signal: nil, errors: "pipe") }
  waitUntilOthersSleep()
  let child = forkProcess()
  if child == 0 {
    dup2(ends[1], STDERR_FILENO)
    unblockSignals()
    // No backtrace of one that is meant to crash: Swift's is drawn by a process of its own, which
    // takes its time with a sanitizer, and waits for ever for one that was killed meanwhile.
    for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE] { signal(number, SIG_DFL) }
    alarm(20)
    _exit(body())
  }
  close(ends[1])
  var text: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 4096)
  while true {
    // SAFETY: into the buffer.
    let count = unsafe read(ends[0], &buffer, buffer.count)
    if count <= 0 { break }
    text += buffer[..<count]
  }
  close(ends[0])
  var status: Int32 = 0
  // SAFETY: the status is ours.
  while unsafe waitpid(child, &status, 0) < 0 && errno == EINTR {}
  let signal = status & 0x7F
  return Child(
    exitStatus: signal == 0 ? (status >> 8) & 0xFF : nil, signal: signal == 0 ? nil : signal,
    errors: String(decoding: text, as: UTF8.self))
}

/// Waits until every other thread of the process sleeps, and has for some looks: so none of them is
/// in the middle of making a type's metadata, say, under a lock of the Swift runtime, which nobody
/// would ever release in a child. Where they never sleep that long, it is done with after a second.
private func waitUntilOthersSleep() {
  var seen: [String] = []
  var looks = 0
  let end = ContinuousClock.now + .seconds(1)
  while looks < 4, ContinuousClock.now < end {
    let states = statesOfOtherThreads()
    looks = states == seen && states.allSatisfy { $0.hasPrefix("S") } ? looks + 1 : 0
    seen = states
    usleep(2_000)
  }
}

/// Of each other thread its state and how often it has left a processor.
private func statesOfOtherThreads() -> [String] {
  // SAFETY: the entries are valid until the next is read; the directory is closed once.
  let own = "\(weft_thread_id())"
  var states: [String] = []
  guard let directory = unsafe opendir("/proc/self/task") else { return [] }
  defer { unsafe closedir(directory) }
  while let entry = unsafe readdir(directory) {
    let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    if name.hasPrefix(".") || name == own { continue }
    let lines = fileText("/proc/self/task/\(name)/status").split(separator: "\n")
    let wanted = lines.filter { $0.hasPrefix("State:") || $0.contains("ctxt_switches:") }
    states.append(wanted.map { $0.split(separator: "\t").last ?? "" }.joined(separator: " "))
  }
  return states
}

/// Swift hides `fork`, since little of Swift is safe in a child of a process with many threads. The
/// tests are about just that.
public func forkProcess() -> pid_t {
  typealias Function = @convention(c) () -> pid_t
  // SAFETY: its type is known.
  let address = unsafe dlsym(nil, "fork")
  let function = unsafe unsafeBitCast(address, to: Function.self)
  return function()
}

/// The thread sanitizer lets no child of a process with threads start some of its own.
public let canFork = sanitizer != "thread"
