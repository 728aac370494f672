import Testing
import Weft

/// A number that is read and written.
private struct Register: SequentialModel {
  enum Op: Sendable { case read, write(Int) }
  var value = 0

  func after(_ op: Op, result: Int?) -> Register? {
    switch op {
    case .read: result == nil || result == value ? self : nil
    case .write(let new): Register(value: new)
    }
  }
}

extension SyncTests {
  /// The checker that the primitives are checked with.
  @Suite struct LinearizabilityTests {
    private typealias Event = History<Register.Op, Int>.Event

    private func holds(_ events: [Event]) -> Bool {
      History(events).isLinearizable(from: Register())
    }

    @Test func nothingIsLinearizable() { #expect(holds([])) }

    @Test func oneAfterTheOther() {
      #expect(holds([Event(.write(1), 0, start: 1, end: 2), Event(.read, 1, start: 3, end: 4)]))
      #expect(!holds([Event(.write(1), 0, start: 1, end: 2), Event(.read, 0, start: 3, end: 4)]))
    }

    @Test func atTheSameTime() {
      for seen in [0, 1] {
        #expect(
          holds([Event(.write(1), 0, start: 1, end: 4), Event(.read, seen, start: 2, end: 3)]))
      }
      // Who has seen the new value is not followed by one who sees the old.
      #expect(
        !holds([
          Event(.write(1), 0, start: 1, end: 8), Event(.read, 1, start: 2, end: 3),
          Event(.read, 0, start: 4, end: 5),
        ]))
      #expect(
        holds([
          Event(.write(1), 0, start: 1, end: 8), Event(.read, 1, start: 2, end: 5),
          Event(.read, 0, start: 3, end: 6),
        ]))
    }

    @Test func whatHasNotReturnedMayHaveHappened() {
      for seen in [0, 1] {
        #expect(holds([Event(.write(1), nil, start: 1), Event(.read, seen, start: 2, end: 3)]))
      }
      #expect(!holds([Event(.write(1), nil, start: 4), Event(.read, 1, start: 2, end: 3)]))
    }

    @Test func theRecorderOrdersWhatFollows() {
      let recorder = HistoryRecorder<Register.Op, Int>()
      var value = 0
      recorder.record(actor: 0, .write(7)) {
        value = 7
        return 0
      }
      recorder.record(actor: 1, .read) { value }
      #expect(recorder.history.isLinearizable(from: Register()), "\(recorder.history)")
      recorder.record(actor: 1, .read) { 8 }
      #expect(!recorder.history.isLinearizable(from: Register()))
    }
  }
}
