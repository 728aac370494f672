// The pool of stacks and the coroutine of the C layer, without the library's Swift around them.

import CWeft
import CWeftProbe
import Testing

@Suite struct StackPoolTests {
  @Test func sizesAreGivenOrRefused() {
    // SAFETY: `failure` passes a valid report.
    #expect(failure { unsafe weft_probe_pool_sizes($0.pointer) } == "")
  }

  @Test func stacksAreDistinctAndTheLastIsReusedFirst() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_pool_reuse($0.pointer) } == "")
  }

  @Test func stacksHaveOneOwnerAmongThreads() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_pool_threads($0.pointer) } == "")
  }

  /// Sizes of three classes, the last of them mapped on its own; the next byte, and a frame of
  /// 60 KiB that would step over a guard of one page.
  @Test(arguments: [65_536, 200_000, 1 << 28], [1, 60 << 10])
  func writeBelowAStackFaults(bytes: Int, below: Int) {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_pool_guard(bytes, below, $0.pointer) } == "")
  }

  @Test func depthOfUseIsKnown() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_pool_high_water($0.pointer) } == "")
  }

  @Test(.timeLimit(.minutes(2))) func hundredThousandStacksAtOnce() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_pool_many(100_000, false, $0.pointer) } == "")
  }
}

@Suite struct CoroutineSwitchTests {
  /// The thread sanitizer numbers every switch, and may fail a check of its own when it has to
  /// start counting anew, after some millions.
  // SAFETY: a string literal, or null; only looked at for being there.
  static let rounds: UInt64 = unsafe weft_sanitizer() == nil ? 1_000_000 : 50_000

  @Test func registersAndControlSurviveResumeAndYield() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_coroutine_registers(Self.rounds, $0.pointer) } == "")
  }

  @Test(arguments: [0, 1, rounds]) func sumOfAGenerator(count: UInt64) {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_coroutine_sum(count, $0.pointer) } == "")
  }

  @Test func coroutineMovesFromThreadToThread() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_coroutine_migrates(100, $0.pointer) } == "")
  }

  @Test func deepCallRunsOnAStackOfItsOwn() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_call_on_stack($0.pointer) } == "")
  }
}
