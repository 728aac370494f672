// Supports the claims that long runs are named, that others proceed behind them, and that an idle
// process uses no processor time.

import CWeft
import CWeftProbe
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

@Suite struct OverrunTrackerTests {
  struct Look: Sendable {
    var tick: UInt64
    var running: UInt
    var now: UInt64
    /// As long as the time that passed, if not said otherwise.
    var used: UInt64? = .max
    var isBlocked = false
    var expected: UInt64?
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let looks: [Look]
  }

  static let cases = [
    Case(
      testDescription: "reported once",
      looks: [
        Look(tick: 1, running: 8, now: 0), Look(tick: 1, running: 8, now: 5),
        Look(tick: 1, running: 8, now: 10, expected: 10), Look(tick: 1, running: 8, now: 15),
      ]),
    Case(
      testDescription: "a switch starts anew",
      looks: [
        Look(tick: 1, running: 8, now: 0), Look(tick: 2, running: 8, now: 9),
        Look(tick: 2, running: 8, now: 18), Look(tick: 2, running: 8, now: 19, expected: 10),
      ]),
    Case(
      testDescription: "another fiber without a counted switch",
      looks: [Look(tick: 1, running: 8, now: 0), Look(tick: 1, running: 9, now: 20)]),
    Case(
      testDescription: "a worker that runs nothing",
      looks: [Look(tick: 1, running: 0, now: 0), Look(tick: 1, running: 0, now: 99)]),
    Case(
      testDescription: "each overrun of one fiber",
      looks: [
        Look(tick: 1, running: 8, now: 0), Look(tick: 1, running: 8, now: 10, expected: 10),
        Look(tick: 2, running: 8, now: 11), Look(tick: 2, running: 8, now: 30, expected: 19),
      ]),
    Case(
      testDescription: "one whose processor the kernel gave to others",
      looks: [
        Look(tick: 1, running: 8, now: 0, used: 700),
        Look(tick: 1, running: 8, now: 100, used: 704),
        Look(tick: 1, running: 8, now: 200, used: 705, expected: 200),
      ]),
    Case(
      testDescription: "one that blocks, at the look that sees it so",
      looks: [
        Look(tick: 1, running: 8, now: 0, used: 7, isBlocked: true),
        Look(tick: 1, running: 8, now: 9, used: 7, isBlocked: true),
        Look(tick: 1, running: 8, now: 10, used: 7),
        Look(tick: 1, running: 8, now: 15, used: 7, isBlocked: true, expected: 15),
        Look(tick: 1, running: 8, now: 20, used: 7),
      ]),
    Case(
      testDescription: "what an earlier run used does not count",
      looks: [
        Look(tick: 1, running: 8, now: 0, used: 0), Look(tick: 2, running: 8, now: 9, used: 9),
        Look(tick: 2, running: 8, now: 19, used: 10),
      ]),
    Case(
      testDescription: "a thread without a clock",
      looks: [
        Look(tick: 1, running: 8, now: 0, used: nil),
        Look(tick: 1, running: 8, now: 10, used: nil, expected: 10),
      ]),
    Case(
      testDescription: "a clock that is another thread's by now",
      looks: [
        Look(tick: 1, running: 8, now: 0, used: 500),
        Look(tick: 1, running: 8, now: 10, used: 3, expected: 10),
      ]),
  ]

  @Test(arguments: cases) func looks(_ entry: Case) {
    var tracker = OverrunTracker()
    var wasReported = false
    for look in entry.looks {
      let elapsed = tracker.look(
        tick: look.tick, running: look.running, now: look.now,
        used: look.used == .max ? look.now : look.used, limit: 10
      ) { look.isBlocked }
      #expect(elapsed == look.expected)
      wasReported = elapsed != nil || wasReported && tracker.isOverdue
      #expect(tracker.isOverdue == wasReported)
    }
  }

  @Test func aThreadsClockGoesWhileItComputes() {
    let thread = weft_thread_id()
    let before = weft_thread_processor_time(thread)
    #expect(before != .max)
    #expect(spin { weft_thread_processor_time(thread) > before + 1_000_000 })
    // One that is not there has none, and 0 is nobody: not the one that asks.
    #expect(weft_thread_processor_time(0) == .max)
    #expect(weft_thread_processor_time(0x7F_FFFF) == .max)
    #expect(weft_thread_processor_time(0x3FFF_FFFF) == .max)
  }

  /// Else a busy machine would put the blame on fibers that can't help it.
  @Test(
    .timeLimit(.minutes(1)),
    .disabled(if: sanitizer == "thread", "its atomics have locks of their own"))
  func aThreadThatWaitsForAProcessorIsNotBlocked() {
    let stop = Count()
    let computing = Count()
    let ids = Box<[UInt64]>([])
    let blocked = Box<UInt64>(0)
    let threads = (0..<2 * Int(weft_cpus_available())).map { _ in
      PlainThread {
        ids.change { $0.append(weft_thread_id()) }
        computing.add()
        while stop.current == 0 {}
      }
    }
    let sleeper = PlainThread {
      blocked.value = weft_thread_id()
      while stop.current == 0 { usleep(100_000) }
    }
    #expect(eventually { computing.current == threads.count && blocked.value != 0 })
    #expect(eventually { weft_thread_system_call(blocked.value) >= 0 })
    for _ in 0..<50 {
      for thread in ids.value { #expect(weft_thread_system_call(thread) == -1) }
    }
    stop.add()
    threads.forEach { $0.join() }
    sleeper.join()
  }
}

@Suite(.serialized) struct WatchdogTests {
  static func watched(_ workers: ClosedRange<Int>) -> Scheduler.Configuration {
    var configuration = Scheduler.Configuration(workers: workers)
    configuration.watchdog = true
    return configuration
  }

  // Situation 45: a loop that never yields freezes the others, and nobody says which it is.
  @Test(.timeLimit(.minutes(1)), arguments: [1, 2]) func aHogIsNamed(workers: Int) async {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) { [workers] in
      asProgram {
        Scheduler.run(Self.watched(workers...workers)) {
          let core = schedulerCore()
          Fiber(name: "hog") { _ = spin { core.overrunCount > 0 } }.join()
          return core.statistics.overruns > 0 ? 0 : 1
        }
      }
    }
    let child = Child(result)
    let text = child.errors
    #expect(child.exitStatus == 0, "\(text)")
    // With the thread sanitizer no signal is sent, without which the name can't be read.
    let name = sanitizer == "thread" ? "fiber" : #""hog""#
    #expect(text.contains("\(name) (made at WeftRuntimeTests/WatchdogTests.swift:"))
    // No sooner than the limit; on a busy machine it may be much later.
    let time = text.firstMatch(of: /has not yielded for (\d+) ms/).flatMap { Int($0.1) }
    #expect((time ?? 0) >= 10, "\(text)")
    #expect(sanitizer != nil || text.contains("spin(within"), "\(text)")
    #expect(text.components("has not yielded") == 1)
  }

  /// A signal may find the thread in a linker's stub, which the unwinder knows nothing about: those
  /// who called it are named all the same. (The thread sanitizer keeps the signal back for as long
  /// as the thread makes no call.)
  @Test(.timeLimit(.minutes(1)), .enabled(if: sanitizer != "thread"))
  func framesBehindUnknownCodeAreNamed() async {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      asProgram {
        Scheduler.run(Self.watched(1...1)) {
          let core = schedulerCore()
          // SAFETY: the scheduler lives as long as its fibers.
          let count = Fiber { unsafe spinUnknown(core.words.overruns) }.join()
          return count > 0 ? 0 : 1
        }
      }
    }
    let child = Child(result)
    let text = child.errors
    #expect(child.exitStatus == 0, "\(text)")
    #expect(text.contains("weft_probe_spin_unknown + "), "\(text)")
    #expect(text.contains("spinUnknown in "), "\(text)")
    #expect(text.contains("runBody"), "\(text)")
  }

  @Test(.timeLimit(.minutes(1)), .enabled(if: weft_cpus_available() >= 2))
  func aSpareRunsThoseBehind() {
    onThread {
      var configuration = Self.watched(1...2)
      configuration.corePolicy = FixedPolicy(1)
      Scheduler.run(configuration) {
        let core = schedulerCore()
        let done = Count()
        let behind = Fiber { done.add() }
        // It can only run if another worker comes: this fiber never yields.
        #expect(spin { done.current > 0 })
        behind.join()
        #expect(core.statistics.workers[1].counters.steals == 1)
        // And the spare goes when nobody is stuck.
        #expect(sleeping { core.generalCount == 1 })
      }
    }
  }

  @Test(.timeLimit(.minutes(1))) func blockingCallsAreNotCutShort() async {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      asProgram {
        Scheduler.run(Self.watched(1...1)) {
          let core = schedulerCore()
          // 10 tries of 30 ms: each is longer than the limit.
          var short = 0
          for _ in 0..<10 {
            if usleep(30_000) != 0 { short += 1 }
            Fiber.yield()
          }
          return short == 0 && core.statistics.overruns > 0 ? 0 : 1
        }
      }
    }
    let child = Child(result)
    #expect(child.errors.contains("it is blocked in system call"))
  }

  @Test(.timeLimit(.minutes(1))) func theProgramsHandlerIsCalledAndPutBack() async {
    await #expect(processExitsWith: .success) {
      asProgram {
        signal(SIGURG) { _ in urgentSignals.add() }
        Scheduler.run(Self.watched(1...1)) {
          raise(SIGURG)
          let core = schedulerCore()
          _ = spin { core.statistics.overruns > 0 }
        }
        raise(SIGURG)
        return urgentSignals.current == 2 ? 0 : 1
      }
    }
  }

  // Situation 56: idle workers use a whole processor.
  @Test(.timeLimit(.minutes(1)), arguments: [1...1, 2...2, 1...4], [false, true])
  func anIdleProcessUsesNoProcessorTime(workers: ClosedRange<Int>, hasTimer: Bool) async {
    await #expect(processExitsWith: .success) { [workers, hasTimer] in
      asProgram {
        Scheduler.run(Self.watched(workers)) {
          let core = schedulerCore()
          let main = Fiber.current
          let parked = (0..<20).map { _ in Fiber { try? Fiber.park() } }
          let sleeper = Fiber { if hasTimer { try? Fiber.sleep(for: .seconds(600)) } }
          // From outside, since whoever looks from a fiber keeps its worker awake.
          let used = Box<Duration?>(nil)
          let observer = PlainThread {
            // All have parked, and the policy has nothing left to decide.
            if eventually({ core.statistics.total.parks >= 21 && core.isAtRest }) {
              // One that napped looks around once more.
              usleep(100_000)
              let before = processorTime()
              usleep(300_000)
              used.value = processorTime() - before
            }
            main?.unpark()
          }
          try? Fiber.park()
          observer.join()
          parked.forEach { $0.unpark() }
          sleeper.cancel()
          guard let used = used.value else { return 100 }
          return used < .microseconds(isSanitized ? 15_000 : 1_500)
            ? 0 : Int32(min(99, used / .milliseconds(1)))
        }
      }
    }
  }
}

extension SchedulerCore {
  /// Every worker and the thread beside them sleep until somebody wakes them.
  fileprivate var isAtRest: Bool {
    // SAFETY: the words live as long as the scheduler.
    unsafe allAsleep && weft_word_load_seq(words.helper) == Helper.State.asleep
  }
}

let urgentSignals = Count()

/// Keeps a worker busy until the word is not 0, in code without unwind information.
@inline(never)
private func spinUnknown(_ word: UnsafeMutablePointer<weft_word>) -> UInt64 {
  // SAFETY: the scheduler's word lives as long as its fibers.
  unsafe weft_probe_spin_unknown(
    UnsafeMutableRawPointer(word).assumingMemoryBound(to: UInt64.self))
  // With something left to do, or this function would be gone from the stack.
  return unsafe weft_word_load_acquire(word)
}

extension String {
  func components(_ part: String) -> Int {
    var count = 0
    var rest = self[...]
    while let range = rest.firstRange(of: part) {
      count += 1
      rest = rest[range.upperBound...]
    }
    return count
  }
}
