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
    Sample("channels") { try SyncTests.ChannelTests().closingLetsAllGoOn(workers: $0) },
    Sample("time limits") { try SyncTests.ChannelTests().aTimeLimit(workers: $0) },
    Sample("threads") {
      try SyncTests.ChannelTests().plainThreadsTakePart(workers: $0, capacity: 1)
    },
    Sample("select") { try SyncTests.SelectTests().itWaitsForTheFirst(workers: $0, capacity: 0) },
    Sample("left selects") {
      try SyncTests.SelectTests().aCancelledSelectLeavesNothingBehind(workers: $0)
    },
    Sample("joins") { try SyncTests.SelectTests().joins(workers: $0) },
    Sample("locks in select") {
      try SyncTests.SelectLockTests().locksPermitsAndValues(workers: $0)
    },
    Sample("mutex") { try SyncTests.MutexTests().parkedOnesGoInOrder(workers: $0, handOff: true) },
    Sample("condition") { try SyncTests.ConditionTests().aQueueOfJobs(workers: $0) },
    Sample("readers") { try SyncTests.RWLockTests().phases(workers: $0) },
    Sample("once") { try SyncTests.OnceTests().itIsMadeOnce(workers: $0) },
    Sample("barrier") {
      try SyncTests.BarrierTests().allStepsAreTakenTogether(workers: $0, parties: 3)
    },
    Sample("promise") { try SyncTests.PromiseTests().allThatWaitGetIt(workers: $0) },
    Sample("semaphore") { try SyncTests.SemaphoreTests().cancelledOnesTakeNothing(workers: $0) },
    Sample("wait group") { try SyncTests.WaitGroupTests().cancelledOnesLeave(workers: $0) },
    Sample("pipeline") { try SyncTests.PipelineTests().mapKeepsTheOrder(workers: $0, fibers: 3) },
    Sample("ticks") { _ in try SyncTests.PipelineTests().ticksStop(byClosing: true) },
    Sample("broadcast") {
      try SyncTests.BroadcastTests().everySubscriberSeesAll(workers: $0, capacity: 2)
    },
    Sample("single flight") {
      try SyncTests.SingleFlightTests().requestsAtTheSameTimeAreOne(workers: $0)
    },
  ]
}

extension SyncTests {
  /// What the tests of other suites leave in a process of their own.
  @Suite struct SampleLeakTests {
    @Test(arguments: workerCounts) func aSampleOfTheSuitesLeavesNothing(workers: Int) async {
      await #expect(processExitsWith: .success) { [workers] in
        for sample in Sample.all {
          // What it needs once stays.
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
