import CWeft
import Glibc
import Testing
import Weft

extension StressTests {
  /// What happens to a whole process while fibers run.
  @Suite struct ProcessTests {
    /// Situation 97, under load: a child runs a scheduler of its own, or is told by name that its
    /// parent's fibers are not there; the parent notices nothing.
    @Test(.enabled(if: canFork)) func forksWhileFibersRun() async {
      let seed = stressSeed()
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        [seed = seed as UInt64] in
        asStress {
          for workers in workerCounts {
            // What is used for the first time takes locks of the Swift runtime, which a child could
            // find held by a thread that it has not.
            try World.run(.init(workers: workers), seed: seed, for: stressTime / 20)
            try check(ownScheduler() == 45, "the sum is wrong without a fork")
            try leavingNothing { try Forks.run(workers, seed: seed, for: stressTime / 3) }
          }
        }
      }
      expectQuiet(result)
    }

    /// Situation 38, under load: address space comes and goes, so that fibers wait for their stacks
    /// and coroutines are refused theirs by name.
    @Test(.enabled(if: sanitizer == nil, "sanitizers take address space without measure"))
    func addressSpaceComesAndGoes() async {
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        asStress {
          // Not beside libdispatch, which ends the process where it can't have a thread: in a child
          // that has this thread only.
          let child = inChild {
            alarm(UInt32(60 + 4 * (stressTime / .seconds(1))))
            do {
              for workers in workerCounts {
                try Pressure.run(workers, for: stressTime / 30)
                try leavingNothing { try Pressure.run(workers, for: stressTime / 3) }
              }
              return 0
            } catch {
              complain("\(error)")
              return 1
            }
          }
          try check(child.exitStatus == 0, "\(child)")
        }
      }
      expectQuiet(result)
    }

    /// Processors that the process may use are taken away and given back.
    @Test(.enabled(if: weft_cpus_available() >= 2)) func processorsComeAndGo() async {
      let seed = stressSeed()
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        [seed = seed as UInt64] in
        asStress {
          let processors = (weft_cpu_at(0), weft_cpu_at(1))
          try World.run(.init(workers: 2), seed: seed, for: stressTime / 20)
          for (workers, pins) in [(1, false), (2, false), (2, true), (4, false)] {
            try leavingNothing {
              try Processors.run(workers, pins, processors, seed: seed, for: stressTime / 4)
            }
          }
          try check(weft_cpus_available() >= 2, "the processors did not come back")
        }
      }
      expectQuiet(result)
    }
  }
}

/// 45, by ten fibers on a scheduler of this thread's own.
private func ownScheduler() -> Int32 {
  Scheduler.run(.init(workers: 2)) {
    (0..<10).map { i in Fiber { Int32(i) } }.reduce(0) { $0 + $1.join() }
  }
}

// MARK: - Children

private enum Forks {
  static func run(_ workers: Int, seed: UInt64, for time: Duration) throws {
    let failures = Box<[String]>([])
    let (isOver, children) = (Box(false), Counter())
    let known = Box<World?>(nil)
    let forker = PlainThread {
      while !isOver.value {
        guard let world = known.value, let handle = world.handles.value.last else {
          sched_yield()
          continue
        }
        let isOwn = children.value % 2 == 0
        let child = inChild {
          if isOwn { return ownScheduler() }
          handle.unpark()
          // The parent's fiber may have ended before the fork: then there is nothing to refuse.
          return 77
        }
        children.add()
        let isRefused = child.signal != nil && child.errors.contains("is a child of fork()")
        if isOwn ? child.exitStatus != 45 : !(isRefused || child.exitStatus == 77) {
          failures.change { $0.append("\(isOwn ? "a scheduler" : "an unpark"): \(child)") }
        }
      }
    }
    // A fork of a large process takes its time: some more, until each kind of child was there.
    repeat {
      try World.run(.init(workers: workers), seed: seed, for: time) { known.value = $0 }
    } while children.value < 2
    isOver.value = true
    forker.join()
    known.value = nil
    try check(failures.value.isEmpty, failures.value.prefix(3).joined(separator: "\n"))
  }
}

// MARK: - Memory

private enum Pressure {
  static func run(_ workers: Int, for time: Duration) throws {
    let (isOver, refused, done) = (Box(false), Counter(), Counter())
    let alive = Counter()
    let until = ContinuousClock.now + time
    defer { limitAddressSpace(to: nil) }
    let limiter = PlainThread {
      while !isOver.value {
        limitAddressSpace(to: 96 << 20)
        usleep(3_000)
        limitAddressSpace(to: nil)
        usleep(1_000)
      }
    }
    var configuration = Scheduler.Configuration(workers: workers)
    configuration.watchdog = false
    try Scheduler.run(configuration) {
      repeat {
        // 16 MiB each, so that few have one at a time.
        let fibers = (0..<60).map { i in
          Fiber(stackSize: i % 2 == 0 ? .mebibytes(12) : nil) { () throws -> Int in
            let kept = Tracked(alive)
            i % 3 == 0 ? Fiber.yield() : try Fiber.sleep(for: .microseconds(i * 3))
            // 128 MiB, which there is only without the limit.
            let numbers = ThrowingGenerator<Int>(stackSize: .mebibytes(100)) { y in try y.yield(i) }
            do {
              try check(numbers.next() == i, "the element is wrong")
            } catch let error as StackError {
              try check(error.code == .outOfMemory, "\(error)")
              refused.add()
            }
            return withExtendedLifetime(kept) { i }
          }
        }
        var sum = 0
        for fiber in fibers { sum += try fiber.join() }
        try check(sum == 60 * 59 / 2, "the sum is \(sum)")
        done.add()
      } while ContinuousClock.now < until || refused.value == 0
    }
    isOver.value = true
    limiter.join()
    StackPool.trim()
    try check(alive.value == 0, "\(alive.value) objects are left")
    try check(done.value > 0, "nothing was done")
  }

  /// Leaves so much address space beside what is used, or as much as the hard limit allows.
  private static func limitAddressSpace(to bytes: Int?) {
    let resource = __rlimit_resource_t(9)  // RLIMIT_AS
    var limit = rlimit()
    // SAFETY: the local is filled in, and read, by the calls.
    unsafe getrlimit(resource, &limit)
    limit.rlim_cur = bytes.map { rlim_t(addressSpaceBytes() + $0) } ?? limit.rlim_max
    unsafe setrlimit(resource, &limit)
  }
}

// MARK: - Processors

private enum Processors {
  private typealias SetAffinity = @convention(c) (pid_t, Int, UnsafeRawPointer) -> Int32

  static func run(
    _ workers: Int, _ pins: Bool, _ processors: (Int32, Int32), seed: UInt64, for time: Duration
  ) throws {
    let (isOver, changes) = (Box(false), Counter())
    let known = Box<World?>(nil)
    let failures = Box<[String]>([])
    let hand = PlainThread {
      // Never over in the middle: the last change gives both back.
      while !isOver.value || changes.value % 3 != 0 || changes.value == 0 {
        let steps = known.value?.steps.value ?? 0
        switch changes.value % 3 {
        case 0: allow([processors.0])
        case 1: allow([processors.1])
        default: allow([processors.0, processors.1])
        }
        changes.add()
        // Whatever is left, something gets done on it.
        let limit = ContinuousClock.now + .seconds(30)
        while let world = known.value, !isOver.value, world.steps.value < steps + 50 {
          if ContinuousClock.now > limit {
            failures.change { $0.append("nothing is done after change \(changes.value)") }
            break
          }
          usleep(100)
        }
      }
    }
    var configuration = Scheduler.Configuration(workers: workers)
    configuration.pinsWorkers = pins
    let outcome = Result {
      try World.run(configuration, seed: seed, for: time) { known.value = $0 }
    }
    isOver.value = true
    hand.join()
    known.value = nil
    try outcome.get()
    try check(failures.value.isEmpty, failures.value.joined(separator: "\n"))
  }

  /// Lets every thread of this process use these processors and no others.
  private static func allow(_ processors: [Int32]) {
    // SAFETY: its type is known; the importer leaves it out.
    let address = unsafe dlsym(nil, "sched_setaffinity")
    let setAffinity = unsafe unsafeBitCast(address, to: SetAffinity.self)
    var set = [UInt8](repeating: 0, count: 128)
    for processor in processors { set[Int(processor) / 8] |= 1 << (UInt8(processor) % 8) }
    for name in entryNames("/proc/self/task") {
      // SAFETY: the set is read by the call; of a thread that has ended it says so.
      _ = unsafe setAffinity(pid_t(name) ?? 0, set.count, set)
    }
  }
}
