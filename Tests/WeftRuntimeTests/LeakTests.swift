import CWeft
import Testing
import WeftContext

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What a process has that runs must give back.
private struct Footprint: Equatable, CustomStringConvertible {
  let descriptors: Int
  let threads: Int
  let stacks: Int
  let mappings: Int

  static func now() -> Footprint {
    // A thread that was joined is listed a moment longer.
    StackPool.trim()
    return Footprint(
      descriptors: entries("/proc/self/fd"), threads: entries("/proc/self/task"),
      stacks: StackPool.statistics.live, mappings: lines("/proc/self/maps"))
  }

  var description: String {
    "\(descriptors) descriptors, \(threads) threads, \(stacks) stacks, \(mappings) mappings"
  }

  private static func entries(_ path: String) -> Int {
    // SAFETY: closed below; the entries are only counted.
    guard let directory = unsafe opendir(path) else { return -1 }
    defer { unsafe closedir(directory) }
    var count = 0
    while unsafe readdir(directory) != nil { count += 1 }
    return count
  }

  private static func lines(_ path: String) -> Int {
    // SAFETY: closed below; the line is cut off where the buffer ends.
    guard let file = unsafe fopen(path, "re") else { return -1 }
    defer { unsafe fclose(file) }
    var buffer = [CChar](repeating: 0, count: 1024)
    var count = 0
    while unsafe fgets(&buffer, 1024, file) != nil { count += 1 }
    return count
  }
}

/// Everything that a run may leave behind if it does not take care.
private func messyRun(_ workers: Int, _ seed: UInt64, _ alive: Counter) throws {
  var random = SplitMix64(seed: seed)
  try onWorkers(workers) {
    for i in 0..<40 {
      let kept = Tracked(alive, i)
      let time = Int(random.next() % 300)
      // Handles that are dropped at once: of those that end, fail, wait, and are cancelled.
      let fiber = Fiber(
        name: i % 5 == 0 ? "fiber number \(i)" : nil,
        stackSize: i % 11 == 0 ? .mebibytes(1) : nil
      ) { () throws -> Tracked in
        switch i % 8 {
        case 0: Fiber.yield()
        case 1: try Fiber.sleep(for: .microseconds(time))
        case 2: try Fiber.park()
        case 3: try blocking { _ = kept.number }
        case 4:
          let g = Generator<Tracked> { y in while true { try y.yield(kept) } }
          _ = g.next()
        case 5:
          do {
            try withFiberGroup(of: Tracked.self) { group in
              for _ in 0..<3 { group.spawn { Tracked(alive) } }
              group.spawn {
                try Fiber.park()
                return kept
              }
              _ = try group.next()
              if time % 2 == 0 { throw Oops() }
              group.cancelAll()
            }
          } catch is Oops {}
        case 6: try withLargeStack(.mebibytes(2)) { try Fiber.sleep(for: .microseconds(time)) }
        default:
          Fiber.current?.cancel()
          try Fiber.checkCancellation()
        }
        return kept
      }
      if i % 3 == 0 { fiber.cancel() }
      if i % 4 == 0 { _ = try? fiber.join() }
    }
    if workers > 1 { Fiber(placement: .exclusive) { try Fiber.park() } }
    for _ in 0..<random.next() % 20 { Fiber.yield() }
  }
}

extension RuntimeTests {
  /// In processes of their own, where nobody else opens or starts anything.
  @Suite struct LeakTests {
    // Situations 37 to 43: stacks that are never freed, mappings that pile up.
    @Test(arguments: workerCounts)
    func fiftyRunsLeaveNothing(workers: Int) async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) { [workers] in
        let alive = Counter()
        for round in 0..<10 { try messyRun(workers, UInt64(round), alive) }
        let before = Footprint.now()
        for round in 0..<50 {
          try messyRun(workers, UInt64(round), alive)
          try #require(alive.value == 0, "round \(round)")
        }
        var after = Footprint.now()
        _ = eventually {
          after = Footprint.now()
          return after.threads == before.threads
        }
        try #require(after.descriptors == before.descriptors, "\(before) became \(after)")
        try #require(after.threads == before.threads, "\(before) became \(after)")
        try #require(after.stacks == before.stacks, "\(before) became \(after)")
        // The C library keeps stacks of threads, and heaps.
        // A sanitizer maps memory for itself as it goes.
        let slack = isSanitized ? 200 : 16
        try #require(after.mappings <= before.mappings + slack, "\(before) became \(after)")
      }
      // An error of a handle that was dropped is news, but here all are cancellations.
      #expect(!text(result).contains("nobody joined it"), "\(text(result))")
    }

    /// Schedulers that start and stop on many threads at once.
    @Test(arguments: workerCounts)
    func manyThreadsLeaveNothing(workers: Int) async {
      await #expect(processExitsWith: .success) { [workers] in
        let alive = Counter()
        func round(_ number: Int) {
          let threads = (0..<4).map { i in
            PlainThread {
              do {
                for j in 0..<4 { try messyRun(workers, UInt64(number * 100 + i * 10 + j), alive) }
              } catch {
                Issue.record(error)
              }
            }
          }
          for thread in threads { thread.join() }
        }
        round(0)
        round(1)
        let before = Footprint.now()
        for number in 2..<6 { round(number) }
        try #require(alive.value == 0)
        var after = Footprint.now()
        try #require(
          eventually {
            after = Footprint.now()
            return after.threads == before.threads && after.stacks == before.stacks
          }, "\(before) became \(after)")
        try #require(after.descriptors == before.descriptors, "\(before) became \(after)")
      }
    }

    /// What fibers captured and returned, by every way out.
    @Test(arguments: workerCounts)
    func objectsAreReleasedOnce(workers: Int) throws {
      let rounds = scaled(300, least: 20)
      let seed = stressSeed()
      let alive = Counter()
      for round in 0..<UInt64(rounds) { try messyRun(workers, seed &+ round, alive) }
      #expect(alive.value == 0)
    }
  }
}
