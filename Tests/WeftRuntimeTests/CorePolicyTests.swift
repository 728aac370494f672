// Supports the claim that the number of workers follows the load, and what the arithmetic decides.

import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

@Suite struct LoadEstimatorTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let samples: [LoadSample]
    let expected: [Int]
  }

  static func sample(
    _ active: Int, used: Double, load: Double, minimum: Int = 1, maximum: Int = 4
  ) -> LoadSample {
    LoadSample(
      active: active, minimum: minimum, maximum: maximum, utilization: used, loadFactor: load)
  }

  static let cases = [
    Case(
      testDescription: "a load factor above the threshold grows",
      samples: [sample(1, used: 1, load: 1.6)], expected: [2]),
    Case(
      testDescription: "one at the threshold does not",
      samples: [sample(1, used: 1, load: 1.5)], expected: [1]),
    Case(
      testDescription: "never above the maximum",
      samples: [sample(4, used: 4, load: 9)], expected: [4]),
    Case(
      testDescription: "a smaller maximum shrinks at once",
      samples: [sample(4, used: 4, load: 9, maximum: 2)], expected: [2]),
    Case(
      testDescription: "never below the minimum",
      samples: [sample(2, used: 0, load: 0, minimum: 2)], expected: [2]),
    Case(
      testDescription: "shrinks only below what was used at growth, less the hysteresis",
      samples: [
        sample(1, used: 0.9, load: 2), sample(2, used: 0.85, load: 0.5),
        sample(2, used: 0.80, load: 0.5),
      ], expected: [2, 2, 1]),
    Case(
      testDescription: "three workers: the hysteresis counts for each that remains",
      samples: [
        sample(2, used: 1.9, load: 2), sample(3, used: 1.75, load: 0.7),
        sample(3, used: 1.71, load: 0.7),
      ], expected: [3, 3, 2]),
    Case(
      testDescription: "growth while little was used still ends in shrinking",
      samples: [sample(1, used: 0, load: 5), sample(2, used: 0, load: 0)], expected: [2, 1]),
    Case(
      testDescription: "no active worker is no division by zero",
      samples: [sample(0, used: 0, load: 0)], expected: [1]),
  ]

  @Test(arguments: cases) func decides(_ entry: Case) {
    var policy = LoadFactorPolicy()
    #expect(entry.samples.map { policy.activeWorkers($0) } == entry.expected)
  }

  @Test func utilizationPolicy() {
    var policy = UtilizationPolicy(utilizationMax: 0.8, idleCoreHysteresis: 0.1)
    #expect(policy.activeWorkers(Self.sample(2, used: 1.7, load: 1)) == 3)
    #expect(policy.activeWorkers(Self.sample(2, used: 1.5, load: 1)) == 2)
    #expect(policy.activeWorkers(Self.sample(2, used: 0.75, load: 1)) == 2)
    #expect(policy.activeWorkers(Self.sample(2, used: 0.65, load: 1)) == 1)
  }

  @Test func aSteadyLoadNeverFlaps() {
    // With two workers a load of 0.95 fits into one only if that one is not overloaded again.
    var policy = LoadFactorPolicy()
    var active = 1
    var changes = 0
    for _ in 0..<100 {
      let load = active == 1 ? 1.8 : 0.8
      let next = policy.activeWorkers(Self.sample(active, used: 0.95, load: load))
      if next != active { changes += 1 }
      active = next
    }
    #expect(changes == 1 && active == 2)
  }

  @Test func setBits() {
    #expect((0..<4).map { UInt64(0b1011_0100).indexOfSetBit($0) } == [2, 4, 5, 7])
  }
}

@Suite(.serialized) struct CorePolicyTests {
  /// As many as the test says at this moment.
  final class Wish: Sendable {
    let count = Count()
    func set(_ value: Int) { count.add(value - count.current) }
  }

  struct WishPolicy: CorePolicy {
    let wish: Wish
    var period: Duration { .milliseconds(10) }
    mutating func activeWorkers(_ sample: LoadSample) -> Int { wish.count.current }
  }

  @Test(.timeLimit(.minutes(1)), .enabled(if: weft_cpus_available() >= 2))
  func growsUnderLoadAndShrinksAfterIt() {
    onThread(Self.growAndShrink)
  }

  private static func growAndShrink() {
    var configuration = Scheduler.Configuration(workers: 1...2)
    configuration.corePolicy = LoadFactorPolicy(period: .milliseconds(10))
    configuration.watchdog = false
    Scheduler.run(configuration) {
      let core = schedulerCore()
      #expect(core.generalCount == 1)
      let stop = Count()
      let fibers = (0..<4).map { _ in
        Fiber { while stop.current == 0 { Fiber.yield() } }
      }
      #expect(yielding { core.generalCount == 2 })
      #expect(yielding { core.statistics.workers[1].counters.fibersRun + core.steals(1) > 0 })
      stop.add()
      fibers.forEach { $0.join() }
      #expect(sleeping { core.generalCount == 1 })
    }
  }

  @Test(.timeLimit(.minutes(1)), .enabled(if: weft_cpus_available() >= 2))
  func fibersOfARetiredWorkerMove() {
    onThread(Self.retire)
  }

  private static func retire() {
    let wish = Wish()
    wish.set(2)
    var configuration = Scheduler.Configuration(workers: 1...2)
    configuration.corePolicy = WishPolicy(wish: wish)
    configuration.watchdog = false
    Scheduler.run(configuration) {
      let core = schedulerCore()
      #expect(yielding { core.generalCount == 2 })
      let stop = Count()
      let rounds = Count()
      let fibers = (0..<8).map { _ in
        Fiber {
          while stop.current == 0 {
            Fiber.yield()
            rounds.add()
          }
        }
      }
      let pinned = Fiber(placement: .worker(1)) {
        var others = 0
        while stop.current == 0 {
          if workerIndex() != 1 { others += 1 }
          Fiber.yield()
        }
        return others
      }
      #expect(yielding { core.statistics.workers[1].counters.switches > 100 })
      wish.set(1)
      #expect(yielding { core.generalCount == 1 })
      // Whoever runs there now is the pinned one, and the others get on.
      #expect(yielding { core.queued(1) <= 1 })
      let before = rounds.current
      #expect(yielding { rounds.current > before + 100 })
      wish.set(2)
      #expect(yielding { core.generalCount == 2 })
      stop.add()
      fibers.forEach { $0.join() }
      #expect(pinned.join() == 0)
    }
  }

  @Test(.timeLimit(.minutes(1))) func aFiberCanBePlacedOnAWorkerThatNeverRan() {
    var configuration = Scheduler.Configuration(workers: 1...4)
    configuration.corePolicy = FixedPolicy(1)
    Scheduler.run(configuration) {
      let fiber = Fiber(placement: .worker(3)) { () -> Int? in
        Fiber.yield()
        return workerIndex()
      }
      #expect(fiber.join() == 3)
      #expect(schedulerCore().generalCount == 1)
    }
  }

  @Test func noHelperThreadWhereNothingNeedsOne() {
    var configuration = Scheduler.Configuration(workers: 2)
    configuration.watchdog = false
    Scheduler.run(configuration) { #expect(schedulerCore().helper == nil) }
    Scheduler.run(.init(workers: 1)) { #expect(schedulerCore().helper == nil) }
    Scheduler.run(.init(workers: 2)) { #expect(schedulerCore().helper != nil) }
  }

  // Situation 61: the pool has as many threads as the machine has processors, whatever part of them
  // the process may use.
  @Test(.enabled(if: weft_cpus_available() >= 2)) func theAffinityMaskCounts() async {
    await #expect(processExitsWith: .success) {
      let before = Int(weft_cpus_available())
      try #require(Scheduler.Configuration().workers == before...before)
      // Not imported.
      typealias Function = @convention(c) (pid_t, Int, UnsafeRawPointer) -> Int32
      // SAFETY: its type is known; the set is read by the call.
      let address = unsafe dlsym(nil, "sched_setaffinity")
      let setAffinity = unsafe unsafeBitCast(address, to: Function.self)
      var set = [UInt8](repeating: 0, count: 128)
      let cpu = Int(weft_cpu_at(0))
      set[cpu / 8] = 1 << (cpu % 8)
      let status = unsafe setAffinity(0, set.count, set)
      try #require(status == 0 && weft_cpus_available() == 1)
      try #require(Scheduler.Configuration().workers == 1...1)
    }
  }

  @Test func pinningEndsWithTheRun() {
    let before = weft_cpus_available()
    var configuration = Scheduler.Configuration(workers: 2)
    configuration.pinsWorkers = true
    Scheduler.run(configuration) {
      #expect(schedulerCore().statistics.workers[0].cpu != nil)
      #expect(weft_cpus_available() == before)
    }
    #expect(weft_cpus_available() == before)
  }

  /// Threads for calls that block are started by pinned workers, but may use every processor.
  @Test func blockingCallsAreNotPinned() {
    let before = weft_cpus_available()
    var configuration = Scheduler.Configuration(workers: 2)
    configuration.pinsWorkers = true
    let seen = Scheduler.run(configuration) {
      (0..<2).map { index in
        Fiber(placement: .worker(index)) { try? blocking { weft_cpus_available() } }
      }.map { $0.join() }
    }
    #expect(seen == [before, before])
  }
}

// MARK: - Looking into the scheduler of the running fiber

func schedulerCore() -> SchedulerCore {
  // SAFETY: in a fiber, whose scheduler outlives it.
  unsafe schedulerCore(of: weft_worker_current()!)
}

func workerIndex() -> Int? {
  // SAFETY: the worker of this moment.
  unsafe weft_worker_current().map { unsafe Int($0.pointee.index) }
}

extension SchedulerCore {
  func queued(_ index: Int) -> Int {
    // SAFETY: workers live as long as the scheduler.
    unsafe Int(weft_word_load_acquire(weft_worker_queue_count(workers[index])))
  }

  func steals(_ index: Int) -> Int { statistics.workers[index].counters.steals }
}

/// In a fiber: lets others run until something holds.
func yielding(within: Duration = .seconds(10), _ condition: () -> Bool) -> Bool {
  let until = ContinuousClock.now + within
  while ContinuousClock.now < until {
    if condition() { return true }
    Fiber.yield()
  }
  return condition()
}

/// In a fiber: sleeps until something holds.
func sleeping(within: Duration = .seconds(10), _ condition: () -> Bool) -> Bool {
  let until = ContinuousClock.now + within
  while ContinuousClock.now < until {
    if condition() { return true }
    try? Fiber.sleep(for: .milliseconds(1))
  }
  return condition()
}
