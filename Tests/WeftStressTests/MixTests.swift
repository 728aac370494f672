import Testing
import Weft

extension StressTests {
  /// Everything at once.
  @Suite struct MixTests {
    @Test(arguments: workerCounts) func everythingAtOnce(workers: Int) async {
      let seed = stressSeed()
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        [workers, seed = seed as UInt64] in
        asStress {
          let (first, rest) = (stressTime / 10, stressTime * 9 / 10)
          try World.run(.init(workers: workers), seed: seed, for: first)
          try leavingNothing {
            try World.run(.init(workers: workers), seed: seed &+ 1, for: rest)
          }
        }
      }
      expectQuiet(result)
    }

    /// Schedulers that start and end on three threads, each with work under way when it ends,
    /// beside one with threads of its own and the shared one.
    @Test func schedulersComeAndGo() async {
      let seed = stressSeed()
      let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        [seed = seed as UInt64] in
        asStress {
          Fiber {}.join()  // the shared one stays
          try Coming.run(seed: seed, for: stressTime / 10)
          try leavingNothing { try Coming.run(seed: seed &+ 1, for: stressTime * 9 / 10) }
        }
      }
      expectQuiet(result)
    }
  }
}

/// Schedulers that come and go.
private enum Coming {
  static func run(seed: UInt64, for time: Duration) throws {
    let (begun, ended, alive, runs) = (Counter(), Counter(), Counter(), Counter())
    let failures = Box<[String]>([])
    let until = ContinuousClock.now + time
    let threads = (0..<3).map { index in
      PlainThread {
        var random = SplitMix64(seed: seed &+ UInt64(index))
        repeat {
          do {
            try once(&random, begun, ended, alive)
          } catch is CancellationError {
            // Its main's own.
          } catch {
            failures.change { $0.append("\(error)") }
          }
          runs.add()
        } while ContinuousClock.now < until
      }
    }
    repeat {
      // One that nobody uses, ended twice, or by its last reference.
      let scheduler = try Scheduler(.init(workers: 2))
      if runs.value % 2 == 0 {
        scheduler.shutdown()
        scheduler.shutdown(cancelling: false)
      }
      let shared = Fiber { () -> Int in
        Fiber.yield()
        return 3
      }
      try check(shared.join() == 3, "the shared scheduler's fiber gave something else")
    } while ContinuousClock.now < until
    for thread in threads { thread.join() }
    try check(failures.value.isEmpty, failures.value.prefix(5).joined(separator: "\n"))
    try check(begun.value == ended.value, "\(begun.value) begun, \(ended.value) ended")
    try check(begun.value > 0 && runs.value >= 3, "nothing was done")
    try check(alive.value == 0, "\(alive.value) objects are left")
  }

  /// A run whose main leaves at a moment of its own.
  private static func once(
    _ random: inout SplitMix64, _ begun: Counter, _ ended: Counter, _ alive: Counter
  ) throws {
    let workers = workerCounts[Int(random.next() % 3)]
    let count = Int(random.next() % 20)
    let (seed, yields) = (random.next(), random.next() % 30)
    try Scheduler.run(.init(workers: workers)) {
      let channel = Channel<Tracked>(capacity: 2)
      for i in 0..<count {
        Fiber(placement: .worker(i % workers)) {
          begun.add()
          defer { ended.add() }
          let kept = Tracked(alive)
          switch (seed >> UInt64(i)) % 6 {
          case 0: try? Fiber.park()
          case 1: try? Fiber.sleep(for: .seconds(3))
          case 2: try? channel.send(kept)
          case 3: _ = try? channel.receive()
          case 4: while !Fiber.isCancelled { Fiber.yield() }
          default: try? withTimeout(.microseconds(50)) { try Fiber.park() }
          }
        }
      }
      for _ in 0..<yields { Fiber.yield() }
      // A worker may not have come to those yet: they begin cancelled, all the same.
      if yields % 5 == 0 { throw CancellationError() }
    }
  }
}
