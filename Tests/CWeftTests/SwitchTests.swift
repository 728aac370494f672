// The context switch, checked register by register.

import CWeft
import CWeftProbe
import Testing

/// A way to leave a stack, printable as a test argument.
struct Way: CustomTestStringConvertible, Sendable {
  let way: weft_probe_way
  // SAFETY: the names are string literals.
  var testDescription: String { unsafe String(cString: weft_probe_way_name(way)) }

  static let bare = [WEFT_PROBE_SWITCH, WEFT_PROBE_INLINE].map(Way.init)
  static let all = (0..<WEFT_PROBE_WAYS.rawValue).map { Way(way: weft_probe_way($0)) }
}

/// Built with the thread sanitizer, which has to be told of each switch. It keeps a stack of calls
/// of its own, and bare switches, of which it is not told, run that over its end.
private let isThreadSanitized: Bool = {
  // SAFETY: null, or a string literal.
  guard let name = unsafe weft_sanitizer() else { return false }
  return unsafe String(cString: name) == "thread"
}()

@Suite(.disabled(if: isThreadSanitized, "it is not told of bare switches")) struct SwitchTests {
  static let rounds: UInt64 = 1_000_000

  @Test(arguments: Way.all, Way.all)
  func calleeSavedRegistersSurvive(parent: Way, child: Way) {
    // SAFETY: `failure` passes a valid report.
    let text = failure { report in
      unsafe weft_probe_registers(parent.way, child.way, Self.rounds, report.pointer)
    }
    #expect(text == "")
  }

  @Test func calleeSavedRegistersSurviveTheTextbookSwitch() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_textbook_registers(Self.rounds, $0.pointer) } == "")
  }

  @Test(arguments: Way.bare)
  func bareSwitchLeavesFloatingPointControlAlone(way: Way) {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_control_passes(way.way, $0.pointer) } == "")
  }

  @Test func liveValuesSurviveTheInlineSwitch() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_live_values(Self.rounds, $0.pointer) } == "")
  }

  @Test func redZoneOfALeafFunctionSurvives() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_red_zone(Self.rounds, $0.pointer) } == "")
  }

  @Test func oneFrameServesBothSides() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_one_frame(Self.rounds, $0.pointer) } == "")
  }

  @Test func stackPointerIsAlignedAtEntry() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_entry_alignment($0.pointer) } == "")
  }

  @Test func stackPointerIsAlignedAtTheTextbookEntry() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_textbook_alignment($0.pointer) } == "")
  }

  @Test func stacksAboveAndBelowTheParentWork() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_above_and_below($0.pointer) } == "")
  }

  @Test(arguments: [1, 2, 1000])
  func contextsNest(depth: UInt32) {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_nested(depth, $0.pointer) } == "")
  }

  @Test func valuesPassBothWays() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_first_value($0.pointer) } == "")
  }

  @Test func backtraceEndsAtTheRoot() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_backtrace($0.pointer) } == "")
  }

  @Test func textbookBacktraceEndsAtTheRoot() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_textbook_backtrace($0.pointer) } == "")
  }

  @Test(.timeLimit(.minutes(2)))
  func signalsInTheMiddleOfASwitchHarmNothing() {
    // SAFETY: as above; no other test handles SIGURG.
    #expect(failure { unsafe weft_probe_signal_storm(1000, $0.pointer) } == "")
  }

  @Test func bodyThatReturnsTraps() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_body_returns($0.pointer) } == "")
  }

  @Test func textbookRoutineThatReturnsTraps() {
    // SAFETY: as above.
    #expect(failure { unsafe weft_probe_routine_returns($0.pointer) } == "")
  }
}
