import Testing
import Weft

/// What a channel with a buffer does when nothing happens at the same time.
private struct Model: SequentialModel {
  enum Op: Sendable { case send(Int), sendIfAvailable(Int), receive, receiveIfAvailable, close }
  enum Answer: Sendable, Hashable {
    case sent, refused, isClosed, gaveUp, closed
    case element(Int?)
  }

  let capacity: Int
  var buffer: [Int] = []
  var isClosed = false

  func after(_ op: Op, result: Answer?) -> Model? {
    switch (op, result) {
    case (.send, .gaveUp), (.receive, .gaveUp): return self
    case (.send, .isClosed), (.sendIfAvailable, .isClosed): return isClosed ? self : nil
    case (.sendIfAvailable, .refused): return !isClosed && buffer.count == capacity ? self : nil
    case (.send(let element), _), (.sendIfAvailable(let element), _):
      if isClosed || buffer.count == capacity { return nil }
      return changed { $0.buffer.append(element) }
    case (.receive, .element(nil)): return isClosed && buffer.isEmpty ? self : nil
    case (.receiveIfAvailable, .element(nil)): return buffer.isEmpty ? self : nil
    case (.receive, .element(let element)), (.receiveIfAvailable, .element(let element)):
      if buffer.isEmpty || buffer[0] != element { return nil }
      return changed { $0.buffer.removeFirst() }
    case (.close, _): return changed { $0.isClosed = true }
    default: return nil
    }
  }

  private func changed(_ change: (inout Model) -> Void) -> Model {
    var copy = self
    change(&copy)
    return copy
  }
}

extension SyncTests {
  /// Supports the claim that whatever fibers and threads do to a channel at the same time, it is as
  /// if they had done it one after the other.
  @Suite struct ChannelLinearizabilityTests {
    @Test(arguments: workerCounts, [1, 2])
    func linearizable(workers: Int, capacity: Int) throws {
      let seed = stressSeed()
      var random = SplitMix64(seed: seed)
      try onWorkers(workers) {
        for round in 0..<scaled(1_500, least: 50) {
          let recorder = HistoryRecorder<Model.Op, Model.Answer>()
          let channel = Channel<Int>(capacity: capacity)
          let dice = random.next()
          together(4) { actor in
            var random = SplitMix64(seed: dice &+ UInt64(actor))
            for step in 0..<4 { Self.act(channel, recorder, actor, step, random.next()) }
          }
          let history = recorder.history
          #expect(
            history.isLinearizable(from: Model(capacity: capacity)),
            "seed \(seed), round \(round)\n\(history)")
        }
      }
    }

    private static func act(
      _ channel: Channel<Int>, _ recorder: HistoryRecorder<Model.Op, Model.Answer>,
      _ actor: Int, _ step: Int, _ dice: UInt64
    ) {
      let element = 10 * actor + step
      switch dice % 16 {
      case 0..<5:
        recorder.record(actor: actor, .send(element)) {
          do {
            try channel.send(element, within: .microseconds(20))
            return .sent
          } catch {
            return error is ChannelClosed ? .isClosed : .gaveUp
          }
        }
      case 5..<7:
        recorder.record(actor: actor, .sendIfAvailable(element)) {
          do throws(ChannelClosed) {
            return try channel.sendIfAvailable(element) ? .sent : .refused
          } catch {
            return .isClosed
          }
        }
      case 7..<12:
        recorder.record(actor: actor, .receive) {
          do {
            return .element(try channel.receive(within: .microseconds(20)))
          } catch {
            return .gaveUp
          }
        }
      case 12..<15:
        recorder.record(actor: actor, .receiveIfAvailable) {
          .element(channel.receiveIfAvailable())
        }
      default:
        recorder.record(actor: actor, .close) {
          channel.close()
          return .closed
        }
      }
    }

    /// At a rendezvous, each element's send and receive overlap.
    @Test(arguments: workerCounts)
    func aRendezvousIsOneMoment(workers: Int) throws {
      let seed = stressSeed()
      var random = SplitMix64(seed: seed)
      try onWorkers(workers) {
        for _ in 0..<scaled(1_000, least: 50) {
          let recorder = HistoryRecorder<Model.Op, Model.Answer>()
          let channel = Channel<Int>()
          let dice = random.next()
          together(4) { actor in
            var random = SplitMix64(seed: dice &+ UInt64(actor))
            for step in 0..<4 {
              // No close: it has its own tests.
              Self.act(channel, recorder, actor, step, random.next() % 15)
            }
          }
          let events = recorder.history.events
          for received in events {
            guard case .element(let element?) = received.result else { continue }
            let sent = events.filter { event in
              guard event.result == .sent else { return false }
              switch event.op {
              case .send(let other), .sendIfAvailable(let other): return other == element
              default: return false
              }
            }
            #expect(sent.count == 1, "seed \(seed)")
            #expect(
              sent.allSatisfy { $0.start < received.end && received.start < $0.end },
              "seed \(seed)\n\(recorder.history)")
          }
        }
      }
    }
  }
}
