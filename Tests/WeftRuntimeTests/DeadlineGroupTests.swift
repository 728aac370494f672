import CWeft
import Testing

@testable import WeftRuntime

/// How the body of a group waits for its children.
private enum BodyWait: CaseIterable {
  case next, nextResult, all, end, elsewhere, join, computing

  /// Waits in the body of a group whose children end with their cancellation, `ended` times.
  func run(_ group: inout FiberGroup<Int>, ended: () -> Bool) throws {
    switch self {
    case .next: while try group.next() != nil {}
    case .nextResult: while group.nextResult() != nil {}
    case .all: group.waitForAll()
    case .end: break
    case .elsewhere: try Fiber.park()
    case .join: while !ended() { Fiber { Fiber.yield() }.join() }
    case .computing: waitUntil(ended)
    }
  }
}

extension RuntimeTests {
  /// Deadlines with groups, and on plain threads.
  @Suite struct DeadlineGroupTests {
    /// However the body waits, its children and theirs end.
    @Test(arguments: workerCounts, BodyWait.allCases)
    fileprivate func theChildrenEnd(workers: Int, wait: BodyWait) throws {
      try onWorkers(workers) {
        for policy: FiberGroupErrorPolicy in [.cancel, .collect] {
          for time: Duration in [.zero, .milliseconds(1)] {
            let ended = Counter()
            let error = thrown {
              try withTimeout(time) {
                try withFiberGroup(of: Int.self, onError: policy) { group in
                  for _ in 0..<3 { group.spawn { try Self.parkDeep(3, ended) } }
                  try wait.run(&group) { ended.value == 12 }
                  expect(Fiber.isCancelled || wait == .end && time > .zero)
                }
                // What the deadline provoked is no error of the group.
                expect(wait != .next && wait != .elsewhere)
                try Fiber.checkCancellation()
              }
            }
            #expect(error is DeadlineExceeded)
            #expect(ended.value == 12)
            expectNoScope()
          }
        }
      }
    }

    /// In groups within groups; counts each fiber that ends.
    private static func parkDeep(_ depth: Int, _ ended: Counter) throws -> Int {
      defer { ended.add() }
      if depth == 0 {
        expectCancellation { try Fiber.sleep(for: endless) }
        expect(Fiber.isCancelled && Fiber.current?.isCancelled == true)
        try Fiber.park()
      } else {
        try withFiberGroup(of: Int.self) { group in
          group.spawn { try parkDeep(depth - 1, ended) }
          _ = try group.next()
        }
      }
      return 0
    }

    @Test(arguments: workerCounts)
    func aGroupThatIsOpenedTooLate(workers: Int) throws {
      try onWorkers(workers) {
        let ran = Counter()
        let value = try withTimeout(.zero) {
          try withFiberGroup(of: Void.self) { group in
            expect(group.isCancelled)
            group.spawn {
              expect(Fiber.isCancelled)
              expectCancellation { try Fiber.park() }
              ran.add()
            }
            group.waitForAll()
            return 7
          }
        }
        #expect(value == 7 && ran.value == 1)
        // One that was opened in time, and gets its child too late.
        let instant = ContinuousClock.now + .microseconds(200)
        let sum = try withDeadline(instant) {
          try withFiberGroup(of: Int.self) { group in
            waitUntil { Fiber.isCancelled }
            expect(group.isCancelled)
            group.spawn { Fiber.isCancelled ? 1 : 0 }
            expectCancellation { _ = try group.next() }
            return group.nextResult()
          }
        }
        try #expect(sum?.get() == 1)
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func errorsOfChildren(workers: Int) throws {
      try onWorkers(workers) {
        // One that comes from the deadline's cancellation, but is another.
        expectError(Oops(number: 3)) {
          try withTimeout(.milliseconds(1)) {
            try withFiberGroup(of: Void.self) { group in
              group.spawn {
                do { try Fiber.park() } catch { throw Oops(number: 3) }
              }
            }
          }
        }
        // A child's own deadline is its own error.
        expectExceeded {
          try withTimeout(endless) {
            try withFiberGroup(of: Void.self) { group in
              group.spawn { try withTimeout(.microseconds(10)) { try Fiber.park() } }
              group.spawn { try Fiber.park() }
            }
          }
        }
        expectNoScope()
      }
    }

    /// A deadline around next() alone is not the children's.
    @Test(arguments: workerCounts)
    func oneInsideTheBody(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Counter()
        let value = try withFiberGroup(of: Int.self) { group in
          group.spawn {
            waitUntil { gate.value == 1 }
            expect(!Fiber.isCancelled)
            return 5
          }
          expectExceeded { try withTimeout(.milliseconds(1)) { _ = try group.next() } }
          expect(!group.isCancelled)
          gate.add()
          return try group.next()
        }
        #expect(value == 5)
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func withShields(workers: Int) throws {
      try onWorkers(workers) {
        let ended = Counter()
        try withTimeout(.milliseconds(1)) {
          // Outside the shield: the children end, though their body is shielded.
          try withFiberGroup(of: Void.self) { group in
            group.spawn {
              expectCancellation { try Fiber.park() }
              ended.add()
            }
            withCancellationShield { group.waitForAll() }
            #expect(ended.value == 1)
          }
          // Inside: they do not.
          try withCancellationShield {
            try withFiberGroup(of: Void.self) { group in
              group.spawn {
                expect(!Fiber.isCancelled)
                try Fiber.sleep(for: .microseconds(10))
                ended.add()
              }
              expect(!group.isCancelled)
              _ = try group.next()
            }
          }
          // A child's own shield.
          try withFiberGroup(of: Void.self) { group in
            group.spawn {
              try withCancellationShield { try Fiber.sleep(for: .microseconds(10)) }
              expectCancellation { try Fiber.park() }
              ended.add()
            }
          }
        }
        #expect(ended.value == 3)
        expectNoScope()
      }
    }

    /// Fibers that are no children have no deadline.
    @Test(arguments: workerCounts)
    func otherFibersAreNotLimited(workers: Int) throws {
      try onWorkers(workers) {
        let fiber = withExtendedLifetime(0) {
          try? withTimeout(.zero) {
            Fiber {
              expectNoScope()
              return 5
            }
          }
        }
        #expect(fiber?.join() == 5)
      }
    }

    // MARK: - Plain threads

    @Test func aPlainThread() throws {
      let gate = Counter()
      onThread {
        expectThreadWaitsEnd(gate)
        expectNoScope()
        gate.add()
      }
      #expect(gate.value == 1)
    }

    @Test func itsGroups() throws {
      let ended = Counter()
      onThread {
        for wait in BodyWait.allCases where wait != .elsewhere {
          let error = thrown {
            try withTimeout(.milliseconds(1)) {
              try withFiberGroup(of: Int.self) { group in
                let before = ended.value
                for _ in 0..<2 { group.spawn { try Self.parkDeep(1, ended) } }
                try wait.run(&group) { ended.value == before + 4 }
              }
              try Fiber.checkCancellation()
            }
          }
          expect(error is DeadlineExceeded)
          expectNoScope()
        }
        // The deadline ends the wait, and not the children.
        let value = try? withFiberGroup(of: Int.self) { group in
          let gate = Counter()
          group.spawn {
            waitUntil { gate.value == 1 }
            return 8
          }
          expectExceeded { try withTimeout(.milliseconds(1)) { _ = try group.next() } }
          gate.add()
          return try group.next()
        }
        expect(value == 8)
      }
      #expect(ended.value == 24)
    }

    /// `Scheduler.run` is a call like others.
    @Test(arguments: workerCounts)
    func aRunInsideOne(workers: Int) throws {
      onThread {
        expectExceeded {
          try withTimeout(.milliseconds(1)) {
            try onWorkers(workers) {
              let fiber = Fiber { expectNoScope() }
              fiber.join()
              try Fiber.park()
            }
          }
        }
        let value = try? withTimeout(.zero) {
          try withCancellationShield {
            try onWorkers(workers) {
              expectNoScope()
              return 5
            }
          }
        }
        expect(value == 5)
        expectNoScope()
      }
    }
  }
}

/// Each wait that blocks a thread, before a deadline and after.
private func expectThreadWaitsEnd(_ gate: Counter) {
  let other = Fiber { while gate.value == 0 { try Fiber.sleep(for: .milliseconds(1)) } }
  for time: Duration in [.zero, .seconds(-1), .milliseconds(1)] {
    expectExceeded { try withTimeout(time) { try Fiber.sleep(for: endless) } }
    expectExceeded { try withTimeout(time) { try Fiber.sleep(until: .now + endless) } }
    expectExceeded { try withTimeout(time) { _ = try other.join(within: endless) } }
    expectExceeded {
      try withTimeout(time) {
        while !Fiber.isCancelled {}
        try Fiber.checkCancellation()
      }
    }
    expectExceeded {
      try withTimeout(endless) {
        try withTimeout(time) {
          expectCancellation { try withTimeout(endless) { try Fiber.sleep(for: endless) } }
          expectCancellation { try Fiber.sleep(for: .zero) }
          // Not cut short, or shielded.
          expect(Fiber { 4 }.join() == 4)
          try withCancellationShield {
            try Fiber.sleep(for: .microseconds(10))
            expect(try Fiber { 5 }.join(within: .seconds(60)) == 5)
            expectExceeded { try withTimeout(.zero) { try blocking { itRan() } } }
          }
          try blocking { itRan() }
        }
      }
    }
    expectNoScope()
  }
  // Its own limit is a result.
  expect(thrown { try withTimeout(endless) { try Fiber.sleep(for: .microseconds(1)) } } == nil)
  let result = try? withTimeout(endless) { try other.join(within: .microseconds(1)) == nil }
  expect(result == true)
}
