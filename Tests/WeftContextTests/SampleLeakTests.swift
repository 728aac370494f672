import Testing
import WeftTestSupport

/// What the tests of other suites leave in a process of their own: stacks above all.
@Suite struct SampleLeakTests {
  @Test func aSampleOfTheSuitesLeavesNothing() async {
    await #expect(processExitsWith: .success) {
      let samples: [(name: String, run: () throws -> Void)] = [
        ("defers", { try UnwindingTests().defersAndDeinitsRunFromTheInsideOut() }),
        ("nested", { UnwindingTests().nestedGeneratorsAreDroppedTogether() }),
        ("errors", { try UnwindingTests().errorsCrossManySwitches() }),
        ("many switches", { try CoroutineTests().aMillionSwitchesKeepTheirOrder() }),
        ("dropped elsewhere", { try CoroutineTests().aSuspendedOneIsDroppedOnAnotherThread() }),
        ("never started", { GeneratorTests().aGeneratorThatNeverStartedReleasesItsClosure() }),
        ("moved", { try GeneratorTests().itMovesBetweenThreads() }),
        ("throwing", { try ThrowingGeneratorTests().droppedWhileSuspendedItUnwinds() }),
        ("large", { LargeStackTests().itWorksOnManyThreadsAtOnce() }),
        ("beyond slabs", { LargeStackTests().stacksBeyondTheSlabsAreMadeAndUnmadeOnManyThreads() }),
        ("deep", { try DepthTests().atDepth10000ADropUnwindsThemAll() }),
        ("accesses", { ThreadWordsTests().accessesMoveBetweenThreads() }),
        ("rounding", { try FloatingPointTests().itTravelsFromThreadToThread() }),
      ]
      for sample in samples {
        // What it needs once stays.
        try sample.run()
        do {
          try leavingNothing { try sample.run() }
        } catch let leak as Leak {
          Issue.record("\(sample.name): \(leak)")
        }
      }
    }
  }
}
