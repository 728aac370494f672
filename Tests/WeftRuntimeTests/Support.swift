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

extension Child {
  init(_ result: ExitTest.Result?) {
    switch result?.exitStatus {
    case .exitCode(let code): self.init(exitStatus: code, signal: nil, errors: text(result))
    case .signal(let number): self.init(exitStatus: nil, signal: number, errors: text(result))
    default: self.init(exitStatus: nil, signal: nil, errors: text(result))
    }
  }
}

/// In an exit test: runs a function in a child that has no other threads, and ends as that did.
///
/// Not straight from the test: at any moment some thread of another test may hold a lock of the
/// Swift runtime, which in a child of `fork()` nobody would ever release. An exit test's other
/// threads are idle.
func asOnlyThread(_ body: () -> Int32) -> Never {
  let child = inChild(body)
  writeToStandardError(child.errors)
  if let signal = child.signal { writeToStandardError("the child ended by signal \(signal)\n") }
  exit(child.exitStatus ?? 99)
}

/// Tests that look at what lies on a stack, or leave records that nobody runs: the address
/// sanitizer keeps variables elsewhere, and takes the records for leaks.
let looksAtMemory = sanitizer != "address"
