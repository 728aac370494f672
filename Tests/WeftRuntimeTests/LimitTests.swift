import CWeft
import Testing
import WeftContext

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The numbers of /proc/self/statm: pages of address space, pages in memory.
private func memoryPages() -> (mapped: Int, resident: Int) {
  let line = firstLine("/proc/self/statm") ?? "0 0"
  let numbers = line.split(separator: " ").compactMap { Int($0) }
  return (numbers[0], numbers[1])
}

/// Without its newline.
func firstLine(_ path: String) -> String? {
  var text = [CChar](repeating: 0, count: 256)
  // SAFETY: the file is closed again; the line is cut off where the buffer ends.
  guard let file = unsafe fopen(path, "re") else { return nil }
  unsafe _ = fgets(&text, 255, file)
  unsafe fclose(file)
  let bytes = text.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
  return String(decoding: bytes, as: UTF8.self)
}

/// Leaves so much address space, beside what is used. The hard limit stays.
private func limitAddressSpace(to bytes: Int?) {
  let resource = __rlimit_resource_t(9)  // RLIMIT_AS
  var limit = rlimit()
  // SAFETY: the local is filled in, and read, by the calls.
  unsafe getrlimit(resource, &limit)
  while true {
    let mapped = memoryPages().mapped
    limit.rlim_cur = bytes.map { rlim_t(mapped * 4096 + $0) } ?? limit.rlim_max
    unsafe setrlimit(resource, &limit)
    // Another thread's first malloc, which maps 64 MiB, may have come between.
    if bytes == nil || memoryPages().mapped <= mapped { return }
  }
}

/// In an exit test: runs a function in a child that has no other threads. The test library's own
/// are libdispatch's, which ends the process where it can't have one more.
private func alone(_ body: () throws -> Void) throws {
  let child = inChild {
    do {
      try body()
      return 0
    } catch {
      writeToStandardError("threw \(error)\n")
      return 3
    }
  }
  writeToStandardError(child.errors)
  try #require(child.exitStatus == 0, "\(child)")
}

/// Sanitizers take address space without measure.
let hasPlainMemory = sanitizer == nil

extension RuntimeTests {
  /// What the scheduler is asked for and can't have.
  @Suite struct LimitTests {
    @Test func workersOutOfRange() throws {
      for range in [0...0, -3...4, 0...4, 1...257, 300...400, Int.min...Int.max] {
        let wrong = range.lowerBound < 1 ? range.lowerBound : range.upperBound
        expectError(SchedulerError.workersOutOfRange(wrong)) {
          _ = try Scheduler(.init(workers: range))
        }
      }
      for count in [0, -1, Int.min, 257, Int.max] {
        expectError(SchedulerError.workersOutOfRange(count)) {
          _ = try Scheduler(.init(workers: count))
        }
      }
      // And nothing is left of the attempts.
      try onWorkers(1) { #expect(Fiber { 1 }.join() == 1) }
    }

    @Test(arguments: [StackSize.bytes(0), .bytes(-1), .bytes(16_383), .mebibytes(.max)])
    func configuredStackSizes(_ size: StackSize) throws {
      var configuration = Scheduler.Configuration(workers: 2)
      configuration.stackSize = size
      let error = StackError(WEFT_STACK_SIZE_OUT_OF_RANGE, requested: size, errno: EINVAL)
      expectError(SchedulerError.noStack(error)) { _ = try Scheduler(configuration) }
      configuration.stackSize = .default
      configuration.mainStackSize = size
      expectError(SchedulerError.noStack(error)) { _ = try Scheduler(configuration) }
    }

    @Test func otherKnobsAreKeptInBounds() throws {
      var configuration = Scheduler.Configuration(workers: 1...2)
      configuration.blockingThreadsMax = -5
      configuration.watchdogLimit = .seconds(-1)
      configuration.corePolicy = FixedPolicy(.max)
      try withScheduler(configuration) {
        let value = try Fiber { try blocking { 4 } }.join()
        #expect(value == 4)
        try Fiber.sleep(for: .milliseconds(60))
      }
      configuration.corePolicy = FixedPolicy(.min)
      try withScheduler(configuration) { try Fiber.sleep(for: .milliseconds(60)) }
    }

    /// Such a fiber could never start: it is refused where it is made.
    @Test(arguments: 0..<4) func aFibersStackSize(_ which: Int) async {
      let sizes = ["0 bytes", "1 bytes", "-1 bytes", "9223372036854775807 bytes"]
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [which] in
        let size = [StackSize.bytes(0), .bytes(1), .bytes(-1), .mebibytes(.max)][which]
        if which == 3 { Fiber(stackSize: size) {}.join() }  // a plain thread
        try onWorkers(1) {
          try withFiberGroup(of: Void.self) { group in
            if which == 0 { group.spawn(stackSize: size) {} }
          }
          Fiber(stackSize: size) {}.join()
        }
      }
      #expect(text(result).contains("a stack of \(sizes[which]) was asked for; sizes from 16 KiB"))
      #expect(text(result).contains("WeftRuntimeTests/LimitTests.swift:"))
    }

    @Test(arguments: [-1, 2, Int.max]) func placesThatThereAreNot(_ place: Int) async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [place] in
        try onWorkers(2) {
          try withFiberGroup(of: Void.self) { group in
            group.spawn(placement: .worker(place)) {}
          }
        }
      }
      #expect(text(result).contains("there is no worker \(place)"))
    }

    // Situations 38 and 67: a limit on memory ends in a crash or a silent fallback; timers that
    // need what the waiters hold never fire.
    @Test(.enabled(if: hasPlainMemory), arguments: workerCounts)
    func fibersThatGetNoStackWaitTheirTurn(workers: Int) async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) { [workers] in
        try alone {
          // An attempt for each of those that wait, at each end, would take minutes.
          let count = 10_000
          try withScheduler(ProgressTests.quiet(workers)) {
            try Fiber { try Fiber.sleep(for: .milliseconds(1)) }.join()
            // Room for some 100 stacks of 256 KiB.
            limitAddressSpace(to: 40 << 20)
            let fibers = (0..<count).map { i in
              let place = i % 3 == 0 ? i % workers : nil
              return Fiber(
                placement: place.map { .worker($0) } ?? .automatic,
                stackSize: i % 7 == 0 ? .kibibytes(448) : nil
              ) { () throws -> Int in
                // Whoever gives it its stack, it runs where it was placed.
                if let place { expect(workerIndex() == place) }
                i % 2 == 0 ? Fiber.yield() : try Fiber.sleep(for: .microseconds(i % 100))
                return i
              }
            }
            var sum = 0
            for fiber in fibers { sum += try fiber.join() }
            try #require(sum == count * (count - 1) / 2)
            limitAddressSpace(to: nil)
          }
          // All that waited for each other's stacks is over, and the pool is whole.
          try onWorkers(workers) { try #require(Fiber { 3 }.join() == 3) }
        }
      }
      #expect(!text(result).contains("weft:"), "\(text(result))")
    }

    /// Those that have stacks park; a plain thread lets them go later. It is said who waits for
    /// what, and then everything goes on.
    @Test(.enabled(if: hasPlainMemory), arguments: workerCounts)
    func aWaitForStacksIsReported(workers: Int) async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) { [workers] in
        try alone {
          // Far more than fit, whatever the C library had mapped for a moment when it was measured.
          let count = 4_000
          try withScheduler(ProgressTests.quiet(workers)) {
            try Fiber { try Fiber.sleep(for: .milliseconds(1)) }.join()
            let parked = Counter()
            let made = Box<[Fiber<Void, any Error>]>([])
            let core = schedulerCore()
            // Weft does not know it, so it can't tell that nobody wakes them.
            let thread = PlainThread {
              if !eventually({ core.saysThatStacksAreMissing }) { fatalError("nothing was said") }
              for fiber in made.value { fiber.unpark() }
            }
            limitAddressSpace(to: 40 << 20)
            let fibers = (0..<count).map { _ in
              Fiber {
                parked.add()
                try Fiber.park()
              }
            }
            made.value = fibers
            for fiber in fibers { try fiber.join() }
            try #require(parked.value == count)
            limitAddressSpace(to: nil)
            thread.join()
          }
        }
      }
      let lines = text(result).split(separator: "\n").filter { $0.hasPrefix("weft:") }
      #expect(lines.count == 1, "\(text(result))")
      #expect(
        lines.first?.hasPrefix(
          "weft: fibers that have not started wait for a stack: a stack of 192 KiB was asked for")
          == true)
    }

    @Test(.enabled(if: hasPlainMemory), arguments: workerCounts)
    func aHugeOneHoldsNobodyUp(workers: Int) async {
      await #expect(processExitsWith: .success) { [workers] in
        try alone {
          try withScheduler(ProgressTests.quiet(workers)) {
            try Fiber { try Fiber.sleep(for: .milliseconds(1)) }.join()
            limitAddressSpace(to: 40 << 20)
            let huge = Fiber(stackSize: .mebibytes(8_192)) { 8 }
            let others = (0..<1_000).map { i in Fiber { try Fiber.sleep(for: .microseconds(i)) } }
            for fiber in others { try fiber.join() }
            try #require(!huge.isFinished)
            limitAddressSpace(to: nil)
            try #require(huge.join() == 8)
          }
        }
      }
    }

    /// As stacks do: the last addresses are malloc's.
    @Test(.enabled(if: hasPlainMemory)) func recordsLeaveAReserve() async {
      await #expect(processExitsWith: .success) {
        try alone {
          try onWorkers(1) {}
          limitAddressSpace(to: 17 << 20)
          // SAFETY: never given back, nor used.
          var taken = 0
          while unsafe weft_record_acquire() != nil { taken += 1 }
          // A mapping, since what malloc has of its own may last.
          let rest = unsafe mmap(nil, 6 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
          limitAddressSpace(to: nil)
          try #require(taken * Int(WEFT_OBJECT_BYTES) > 4 << 20, "\(taken)")
          try unsafe #require(rest != MAP_FAILED, "\(taken)")
        }
      }
    }

    @Test(.enabled(if: hasPlainMemory)) func threadsThatThereAreNot() async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) {
        try alone {
          try onWorkers(4) {}
          let before = threadCount()
          limitAddressSpace(to: 200 << 20)
          for _ in 0..<3 {
            let error = thrown { _ = try Scheduler(.init(workers: 200)) }
            guard case .noThread = error as? SchedulerError else {
              fatalError("threw \(String(describing: error))")
            }
          }
          // Those that were started have ended.
          try #require(eventually { threadCount() == before })
          limitAddressSpace(to: nil)
          try onWorkers(8) { try #require(Fiber { 3 }.join() == 3) }
        }
      }
      #expect(!text(result).contains("weft:"), "\(text(result))")
    }

    /// A call that should block a thread blocks the worker where no thread can be had.
    @Test(.enabled(if: hasPlainMemory)) func blockingCallsWithoutAThread() async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) {
        try alone {
          // No watchdog either: what it writes on a busy machine needs memory.
          var configuration = ProgressTests.quiet(2)
          configuration.blockingThreadsMax = 4
          try withScheduler(configuration) {
            let fibers = (0..<8).map { i in
              Fiber { () throws -> Int in
                Fiber.yield()
                return try blocking { i }
              }
            }
            limitAddressSpace(to: 6 << 20)
            var sum = 0
            for fiber in fibers { sum += try fiber.join() }
            try #require(sum == 28)
            limitAddressSpace(to: nil)
          }
        }
      }
      #expect(!text(result).contains("weft:"), "\(text(result))")
    }

    @Test func descriptorsThatThereAreNot() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        let resource = __rlimit_resource_t(7)  // RLIMIT_NOFILE
        var limit = rlimit(rlim_cur: 3, rlim_max: 3)
        // SAFETY: the local is read by the call.
        unsafe setrlimit(resource, &limit)
        try onWorkers(1) {}
      }
      #expect(text(result).contains("no descriptors are left for a scheduler (errno 24)"))
    }
  }

  /// What parked fibers take.
  @Suite struct FiberMemoryTests {
    /// Pages of memory for each of so many parked fibers, with a stack, in a process of its own.
    @Test(.enabled(if: hasPlainMemory), arguments: [1, 2])
    func parkedFibers(workers: Int) async {
      await #expect(processExitsWith: .success) { [workers] in
        let count = scaled(100_000)
        try onWorkers(workers) {
          try measureParked(1_000)  // what is needed once
          let pages = try measureParked(count)
          print(count, "parked fibers:", pages, "pages each")
          // Frames are larger in debug builds, and a canary takes a page of its own.
          let most = (isDebug ? 2.35 : 1.35) + (Environment.debugModes.contains(.canary) ? 1 : 0)
          try #require(pages <= most, "\(pages) pages each")
        }
      }
    }

    /// And while the scheduler goes on: a second after nobody needs the stacks any more.
    @Test(.enabled(if: hasPlainMemory), arguments: [1, 2])
    func thePeakGoesBackMeanwhile(workers: Int) async {
      await #expect(processExitsWith: .success) { [workers] in
        try onWorkers(workers) {
          try measureParked(1_000)
          let before = memoryPages().resident
          let count = 20_000
          try measureParked(count)
          for _ in 0..<200 where memoryPages().resident - before >= count / 2 {
            // Workers that are never idle look after nothing.
            try Fiber.sleep(for: .milliseconds(50))
          }
          let kept = memoryPages().resident - before
          try #require(kept < count / 2, "\(kept) pages were kept of those of \(count) fibers")
        }
      }
    }

    // Situation 40: memory stays at the peak for ever.
    @Test(.enabled(if: hasPlainMemory)) func thePeakGoesBack() async {
      await #expect(processExitsWith: .success) {
        try onWorkers(2) { try measureParked(1_000) }
        let before = memoryPages().resident
        let count = 20_000
        try onWorkers(2) { try measureParked(count) }
        // Some 1,024 stacks are kept warm, beside those in the caches of threads.
        let kept = memoryPages().resident - before
        try #require(kept < count / 2, "\(kept) pages were kept of those of \(count) fibers")
      }
    }

    /// As many as the machine has memory for, up to a million.
    @Test(.enabled(if: hasPlainMemory && !isDebug))
    func aMillionParked() async {
      await #expect(processExitsWith: .success) {
        // Some 8 s where two processors have nothing else to do.
        let pages = Int(sysconf(Int32(_SC_AVPHYS_PAGES)))
        guard RuntimeInfo.current.stackGuard == .madvise else { return }
        let count = min(1_000_000, pages / 3)
        try onWorkers(1) {
          try measureParked(1_000)
          let pages = try measureParked(count)
          print(count, "parked fibers:", pages, "pages each")
          // 1.352 to 1.356 measured.
          try #require(pages <= 1.4, "\(pages) pages each of \(count)")
        }
      }
    }
  }
}

extension SchedulerCore {
  /// Whether it has been said on standard error.
  var saysThatStacksAreMissing: Bool { lifeLock.withLock { hasReportedStarvation } }
}

private let isDebug: Bool = {
  var isDebug = false
  assert(
    {
      isDebug = true
      return true
    }())
  return isDebug
}()

/// Kernel threads of this process.
private func threadCount() -> Int { Int(weft_thread_count()) }

/// Resident pages that each of so many parked fibers takes; they are woken and joined after.
@discardableResult
private func measureParked(_ count: Int) throws -> Double {
  var fibers: [Fiber<Int, any Error>] = []
  fibers.reserveCapacity(count)
  let before = memoryPages().resident
  for number in 0..<count {
    fibers.append(
      Fiber { () throws -> Int in
        try Fiber.park()
        return number
      })
  }
  for fiber in fibers { waitUntil { fiber.isParked } }
  let after = memoryPages().resident
  for fiber in fibers { fiber.unpark() }
  var sum = 0
  for fiber in fibers { sum += try fiber.join() }
  try #require(sum == count * (count - 1) / 2)
  return Double(after - before) / Double(count)
}
