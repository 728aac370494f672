import Testing

/// A test of some suite: a function of the number of workers.
private struct Sample: Sendable {
  let name: String
  let run: @Sendable (Int) throws -> Void
  init(_ name: String, _ run: @escaping @Sendable (Int) throws -> Void) {
    self.name = name
    self.run = run
  }

  // Each suite has one or two here: those that leave whatever can be left.
  static let all = [
    Sample("errors") { try RuntimeTests.JoinTests().errorsReachEveryJoin(workers: $0) },
    Sample("joiners") { try RuntimeTests.JoinTests().manyJoinersOfOneFiber(workers: $0) },
    Sample("threads") { try RuntimeTests.JoinTests().joinFromPlainThreads(workers: $0) },
    Sample("join within") { try RuntimeTests.JoinTests().joinWithin(workers: $0) },
    Sample("outside") { _ in try RuntimeTests.JoinTests().fibersOutsideAnyScheduler() },
    Sample("permits") { try RuntimeTests.ParkTests().permits(workers: $0) },
    Sample("sleeps") { try RuntimeTests.ParkTests().hugeDurationsSaturate(workers: $0) },
    Sample("ping-pong") { try RuntimeTests.ParkTests().pingPong(workers: $0) },
    Sample("cancellation") { workers in
      for wait in EndlessWait.all {
        try RuntimeTests.CancellationTests().whileItWaits(workers: workers, wait: wait)
        try RuntimeTests.DeadlineTests().itEndsEachWait(workers: workers, wait: wait)
      }
    },
    Sample("groups") { try RuntimeTests.GroupTests().groupsNest(workers: $0) },
    Sample("failures") {
      try RuntimeTests.GroupErrorTests()
        .theFirstErrorCancelsTheSiblingsAndIsRethrown(workers: $0)
    },
    Sample("races") { try RuntimeTests.RaceTests().theFirstValueWins(workers: $0) },
    Sample("blocking") { try RuntimeTests.BlockingTests().givesValuesAndErrors(workers: $0) },
    Sample("locals") { try RuntimeTests.FiberLocalTests().bindingsNest(workers: $0) },
    Sample("coroutines") {
      try RuntimeTests.CoroutinesInFibersTests().aGeneratorsBodyMayWait(workers: $0)
    },
    Sample("shutdown") { try RuntimeTests.ShutdownTests().everyWaitEnds(workers: max(2, $0)) },
    Sample("across") { try RuntimeTests.SeveralSchedulersTests().joinsAcross(workers: $0) },
    Sample("handles") {
      try RuntimeTests.SeveralSchedulersTests().handlesOutliveTheirScheduler(workers: $0)
    },
    Sample("pinned") { try RuntimeTests.PinnedTests().itStaysOnItsThread(workers: $0) },
    Sample("priority") { try RuntimeTests.PriorityTests().highOnesRunFirst(workers: $0) },
    Sample("moves") { try RuntimeTests.ThreadStateTests().typedErrorsAfterAMove(workers: $0) },
  ]
}

extension RuntimeTests {
  /// What the tests of other suites leave in a process of their own.
  @Suite struct SampleLeakTests {
    @Test(arguments: workerCounts) func aSampleOfTheSuitesLeavesNothing(workers: Int) async {
      await #expect(processExitsWith: .success) { [workers] in
        for sample in Sample.all {
          // What it needs once, like the threads of the shared scheduler, stays.
          try sample.run(workers)
          do {
            try leavingNothing { try sample.run(workers) }
          } catch let leak as Leak {
            Issue.record("\(sample.name): \(leak)")
          }
        }
      }
    }
  }
}
