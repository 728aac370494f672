import Glibc
import Synchronization
import Testing
import Weft

/// Signals that have arrived, and frames that a profiler has seen.
private let arrived = Atomic<Int>(0)
private let frames = Atomic<Int>(0)

private typealias Backtrace =
  @convention(c) (UnsafeMutablePointer<UnsafeMutableRawPointer?>, Int32) -> Int32
private typealias SendToThread = @convention(c) (pid_t, pid_t, Int32) -> Int32

/// Looked up ahead: a handler may not.
// SAFETY: both have these types. The importer knows neither.
nonisolated(unsafe) private let backtraceFunction =
  unsafe unsafeBitCast(dlsym(nil, "backtrace"), to: Backtrace.self)
nonisolated(unsafe) private let sendToThread =
  unsafe unsafeBitCast(dlsym(nil, "tgkill"), to: SendToThread.self)

/// Overwrites what is below it, on the stack of whatever runs.
private func onSignal(_ number: Int32) {
  // SAFETY: within the memory that is ours for the call.
  unsafe withUnsafeTemporaryAllocation(byteCount: 1_024, alignment: 16) { bytes in
    for index in bytes.indices { unsafe bytes[index] = UInt8(truncatingIfNeeded: number) }
  }
  // ORDERING: relaxed; only counted.
  arrived.add(1, ordering: .relaxed)
}

/// What a profiler does: it follows the frames, from wherever the thread is.
private func onProfile(_ number: Int32) {
  // SAFETY: it fills no more than the room that is stated.
  unsafe withUnsafeTemporaryAllocation(of: UnsafeMutableRawPointer?.self, capacity: 64) { room in
    let count = unsafe backtraceFunction(room.baseAddress!, 64)
    // ORDERING: relaxed; only counted.
    frames.add(Int(count), ordering: .relaxed)
  }
  arrived.add(1, ordering: .relaxed)
}

extension StressTests {
  /// Signals at a high rate, to all threads, while fibers switch.
  @Suite struct SignalTests {
    /// Situation 9, on whole schedulers. Without SA_RESTART, so that what the kernel was asked for
    /// ends early with EINTR.
    @Test func aStormOfSignals() async {
      let seed = stressSeed()
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        [seed = seed as UInt64] in
        asStress {
          try storm(SIGUSR1, onSignal) { workers in
            try World.run(.init(workers: workers), seed: seed, for: stressTime / 3)
          }
        }
      }
      expectQuiet(result)
    }

    /// The poller that other platforms have.
    @Test func aStormOnThePortablePoller() async {
      let seed = stressSeed()
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        [seed = seed as UInt64] in
        asStress {
          try storm(SIGUSR1, onSignal) { workers in
            var configuration = Scheduler.Configuration(workers: workers)
            configuration.poller = .portable
            try World.run(configuration, seed: seed, for: stressTime / 3)
          }
        }
      }
      expectQuiet(result)
    }

    /// Situation 13: a profiler that unwinds from any instruction, those of a switch among them.
    @Test(.disabled(if: isSanitized, "handlers are held back there, or wait for a lock"))
    func aProfilerLooksAtAnyMoment() async {
      let seed = stressSeed()
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        [seed = seed as UInt64] in
        asStress {
          try storm(SIGPROF, onProfile) { workers in
            try World.run(.init(workers: workers), seed: seed, for: stressTime / 3)
          }
          // ORDERING: relaxed; the threads that counted have ended.
          let mean = frames.load(ordering: .relaxed) / max(1, arrived.load(ordering: .relaxed))
          try check(mean >= 3, "\(mean) frames in a backtrace, on average")
        }
      }
      expectQuiet(result)
    }
  }
}

/// Runs a function with each number of workers, while a signal is sent to the process and to each
/// of its threads, over and over.
private func storm(
  _ signal: Int32, _ handler: @escaping @convention(c) (Int32) -> Void,
  _ body: (Int) throws -> Void
) throws {
  // Loads the unwinder's library, and the globals, before any handler runs.
  handler(signal)
  var action = sigaction()
  // SAFETY: locals that the calls read and fill in; the union has this member on Linux.
  unsafe action.__sigaction_handler.sa_handler = handler
  unsafe sigemptyset(&action.sa_mask)
  unsafe sigaction(signal, &action, nil)
  try body(1)  // what is needed once
  let before = arrived.load(ordering: .acquiring)
  try leavingNothing {
    let isOver = Box(false)
    let sender = PlainThread {
      blockAllSignals()
      while !isOver.value {
        kill(getpid(), signal)
        for name in entryNames("/proc/self/task") {
          // SAFETY: of a thread that has ended meanwhile it says so.
          _ = unsafe sendToThread(getpid(), pid_t(name) ?? 0, signal)
        }
        usleep(50)
      }
    }
    defer {
      isOver.value = true
      sender.join()
    }
    for workers in workerCounts { try body(workers) }
  }
  let count = arrived.load(ordering: .acquiring) - before
  try check(count > 100, "only \(count) signals arrived")
}

private func blockAllSignals() {
  var all = sigset_t()
  // SAFETY: ours.
  unsafe sigfillset(&all)
  unsafe pthread_sigmask(SIG_SETMASK, &all, nil)
}
