import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What stderr of an exit test holds.
private func occurrences(of part: String, in text: String) -> Int {
  var rest = Substring(text)
  var count = 0
  while let range = rest.firstRange(of: part) {
    count += 1
    rest = rest[range.upperBound...]
  }
  return count
}

extension RuntimeTests {
  /// Misuse that stops the process, and messages on stderr.
  @Suite struct DeathTests {
    @Test func joiningItself() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 1)) {
          let own = Box<Fiber<Void, Never>?>(nil)
          own.value = Fiber { own.value?.join() }
          own.value?.join()
        }
      }
      #expect(text(result).contains("joined itself"))
    }

    @Test func aRunInsideAFiber() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 2)) {
          Fiber { Scheduler.run(.init(workers: 1)) {} }.join()
        }
      }
      #expect(text(result).contains("inside another run"))
    }

    @Test func workersOutOfRange() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 0)) {}
      }
      #expect(text(result).contains("0 workers were asked for"))
      #expect(throws: SchedulerError.workersOutOfRange(257)) {
        _ = try Scheduler(.init(workers: 257))
      }
    }

    @Test func aPlaceThatThereIsNot() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 2)) { Fiber(placement: .worker(2)) {}.join() }
      }
      #expect(text(result).contains("there is no worker 2"))
    }

    @Test func parkOnAPlainThread() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        try Fiber.park()
      }
      #expect(text(result).contains("Fiber.park was called on a plain thread"))
    }

    @Test func anErrorThatNobodyJoinedIsReportedOnce() async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 2)) {
          Fiber(name: "careless") { throw Oops(number: 71) }
          Fiber<Void, Oops>(name: "typed") { () throws(Oops) in throw Oops(number: 72) }
          // Kept for a while, then dropped.
          do {
            let kept = Fiber(name: "kept") { throw Oops(number: 73) }
            waitUntil { kept.isFinished }
          }
        }
        exit(0)
      }
      let text = text(result)
      for (name, number) in [("careless", 71), ("typed", 72), ("kept", 73)] {
        #expect(occurrences(of: "\"\(name)\"", in: text) == 1, "\(text)")
        #expect(text.contains("Oops(number: \(number))"))
      }
      #expect(text.contains("DeathTests.swift:"))
      #expect(occurrences(of: "nobody joined it", in: text) == 3)
    }

    @Test func errorsThatNeedNoReport() async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) {
        try Scheduler.run(.init(workers: 2)) { () throws -> Void in
          // Joined, even late, and by others.
          let joined = Fiber { throw Oops(number: 1) }
          waitUntil { joined.isFinished }
          _ = try? joined.join()
          // The cancellation that it was given.
          let cancelled = Fiber { try Fiber.park() }
          cancelled.cancel()
          // Children of groups.
          _ = try? withFiberGroup(of: Void.self) { group in
            group.spawn { throw Oops(number: 2) }
            group.spawn { throw Oops(number: 3) }
          }
          try withFiberGroup(of: Void.self, onError: .collect) { group in
            group.spawn { throw Oops(number: 4) }
          }
          // The end of the scheduler.
          Fiber { try Fiber.park() }
          Fiber { try Fiber.sleep(for: .seconds(1_000)) }
        }
        exit(0)
      }
      #expect(!text(result).contains("nobody joined it"), "\(text(result))")
    }
  }
}
