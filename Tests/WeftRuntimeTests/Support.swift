import CWeft
import Synchronization
import Testing
import WeftContext
import WeftTestSupport

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A number that fibers and threads count up.
final class Count: Sendable {
  private let value = Atomic(0)
  var current: Int { value.load(ordering: .acquiring) }
  func add(_ by: Int = 1) { value.add(by, ordering: .acquiringAndReleasing) }
}

/// Waits, on a plain thread, until something holds. False if it never did.
func eventually(within: Duration = .seconds(10), _ condition: () -> Bool) -> Bool {
  let until = ContinuousClock.now + within
  while ContinuousClock.now < until {
    if condition() { return true }
    usleep(200)
  }
  return condition()
}

/// Keeps a worker busy without a switch until something holds. False if it never did.
///
/// Not inlined: backtraces are looked through for its name.
@inline(never)
func spin(within: Duration = .seconds(10), until condition: () -> Bool) -> Bool {
  let until = ContinuousClock.now + within
  while ContinuousClock.now < until {
    if condition() { return true }
  }
  return condition()
}

/// Keeps a worker busy for a while without a switch.
func burn(_ duration: Duration) { _ = spin(within: duration) { false } }

/// Processor time of this process.
func processorTime() -> Duration {
  var time = timespec()
  // SAFETY: filled in by the call.
  unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

/// What the process of an exit test wrote to standard error.
func text(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}

/// What a child process did.
struct Child {
  let exitStatus: Int32?
  let signal: Int32?
  let errors: String
}

extension Child {
  init(_ result: ExitTest.Result?) {
    switch result?.exitStatus {
    case .exitCode(let code): (exitStatus, signal) = (code, nil)
    case .signal(let number): (exitStatus, signal) = (nil, number)
    default: (exitStatus, signal) = (nil, nil)
    }
    errors = text(result)
  }
}

/// In an exit test: runs a function as a program's `main`, on a thread that is no Swift task's and
/// blocks no signals, and ends the process with what it returns. One that takes too long is killed.
func asProgram(_ main: @escaping @Sendable () -> Int32) {
  alarm(50)
  onThread {
    unblockSignals()
    exit(main())
  }
}

/// Threads of tests have them blocked.
private func unblockSignals() {
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
func inChild(_ body: () -> Int32) -> Child {
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

/// In an exit test: runs a function in a child that has no other threads, and ends as that did.
///
/// Not straight from the test: at any moment some thread of another test may hold a lock of the
/// Swift runtime, which in a child of `fork()` nobody would ever release. An exit test's other
/// threads are idle, once they are done with their own beginnings.
func asOnlyThread(_ body: () -> Int32) -> Never {
  let child = inChild(body)
  writeToStandardError(child.errors)
  if let signal = child.signal { writeToStandardError("the child ended by signal \(signal)\n") }
  exit(child.exitStatus ?? 99)
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
func forkProcess() -> pid_t {
  typealias Function = @convention(c) () -> pid_t
  // SAFETY: its type is known.
  let address = unsafe dlsym(nil, "fork")
  let function = unsafe unsafeBitCast(address, to: Function.self)
  return function()
}

/// The thread sanitizer lets no child of a process with threads start some of its own.
let canFork = sanitizer != "thread"
