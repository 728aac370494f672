import Testing
import Weft

@testable import WeftSync

// A channel on one worker, where each operation runs until it has to wait, driven through every
// sequence of a few events, and compared after each with the simplest thing that could be meant.

private enum Event: CaseIterable {
  case send, receive, sendIfAvailable, receiveIfAvailable, close
  /// Cancels the first, second or third operation that was started.
  case cancelFirst, cancelSecond, cancelThird
}

private enum Outcome: Equatable {
  case waits, sent, isClosed, isCancelled
  case received(Int?)
  case offered(Bool)
}

/// What is meant.
private struct Model {
  let capacity: Int
  let isLIFO: Bool
  var buffer: [Int] = []
  var senders: [(operation: Int, element: Int)] = []
  var receivers: [Int] = []
  var isClosed = false
  var outcomes: [Outcome] = []

  mutating func begin(_ event: Event) {
    let operation = outcomes.count
    switch event {
    case .send:
      outcomes.append(.waits)
      if isClosed {
        outcomes[operation] = .isClosed
      } else if accept(operation) {
        outcomes[operation] = .sent
      } else {
        senders.append((operation, operation))
      }
    case .receive:
      outcomes.append(.waits)
      if let element = provide() {
        outcomes[operation] = .received(element)
      } else if isClosed {
        outcomes[operation] = .received(nil)
      } else {
        receivers.append(operation)
      }
    case .sendIfAvailable:
      outcomes.append(isClosed ? .isClosed : .waits)
      if !isClosed { outcomes[operation] = .offered(accept(operation)) }
    case .receiveIfAvailable: outcomes.append(.received(provide()))
    case .close: close()
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    case .cancelThird: cancel(2)
    }
  }

  private mutating func accept(_ element: Int) -> Bool {
    if !receivers.isEmpty {
      outcomes[receivers.removeFirst()] = .received(element)
      return true
    }
    if buffer.count == capacity { return false }
    buffer.append(element)
    return true
  }

  private mutating func provide() -> Int? {
    if buffer.isEmpty {
      if senders.isEmpty { return nil }
      let sender = senders.removeFirst()
      outcomes[sender.operation] = .sent
      return sender.element
    }
    let element = isLIFO ? buffer.removeLast() : buffer.removeFirst()
    if !senders.isEmpty {
      let sender = senders.removeFirst()
      outcomes[sender.operation] = .sent
      buffer.append(sender.element)
    }
    return element
  }

  private mutating func close() {
    isClosed = true
    for receiver in receivers { outcomes[receiver] = .received(nil) }
    for sender in senders { outcomes[sender.operation] = .isClosed }
    receivers = []
    senders = []
  }

  private mutating func cancel(_ operation: Int) {
    guard operation < outcomes.count, outcomes[operation] == .waits else { return }
    outcomes[operation] = .isCancelled
    receivers.removeAll { $0 == operation }
    senders.removeAll { $0.operation == operation }
  }
}

/// The channel, and a fiber for each operation. All on one worker.
private final class Real {
  let channel: Channel<Int>
  // SAFETY: one worker runs all fibers, which switch only where they wait.
  final class Outcomes: @unchecked Sendable { var list: [Outcome] = [] }
  let outcomes = Outcomes()
  var fibers: [Fiber<Void, Never>] = []

  init(_ model: Model) {
    channel = Channel(capacity: model.capacity, order: model.isLIFO ? .lifo : .fifo)
  }

  func begin(_ event: Event) {
    switch event {
    case .send:
      start { channel, operation in
        try channel.send(operation)
        return .sent
      }
    case .receive: start { channel, _ in .received(try channel.receive()) }
    case .sendIfAvailable:
      start { channel, operation in .offered(try channel.sendIfAvailable(operation)) }
    case .receiveIfAvailable: start { channel, _ in .received(channel.receiveIfAvailable()) }
    case .close: channel.close()
    case .cancelFirst: if fibers.count > 0 { fibers[0].cancel() }
    case .cancelSecond: if fibers.count > 1 { fibers[1].cancel() }
    case .cancelThird: if fibers.count > 2 { fibers[2].cancel() }
    }
    // Each round runs all that are runnable; those that they wake run in the next.
    for _ in 0..<3 { Fiber.yield() }
  }

  private func start(_ body: @escaping @Sendable (Channel<Int>, Int) throws -> Outcome) {
    let (channel, outcomes) = (channel, outcomes)
    let operation = outcomes.list.count
    outcomes.list.append(.waits)
    fibers.append(
      Fiber {
        do {
          outcomes.list[operation] = try body(channel, operation)
        } catch is ChannelClosed {
          outcomes.list[operation] = .isClosed
        } catch {
          outcomes.list[operation] = .isCancelled
        }
      })
  }

  func finish() {
    channel.close()
    for fiber in fibers { fiber.join() }
  }
}

extension SyncTests {
  @Suite struct ChannelModelTests {
    @Test(arguments: [0, 1, 2], [false, true])
    func everyShortHistory(capacity: Int, isLIFO: Bool) throws {
      if isLIFO && capacity < 2 { return }
      let length = isSanitized ? 4 : 5
      let count = Event.allCases.count
      var total = 1
      for _ in 0..<length { total *= count }
      try onWorkers(1) {
        for number in 0..<total {
          var model = Model(capacity: capacity, isLIFO: isLIFO)
          let real = Real(model)
          var rest = number
          var history: [Event] = []
          for _ in 0..<length {
            let event = Event.allCases[rest % count]
            rest /= count
            history.append(event)
            model.begin(event)
            real.begin(event)
            if real.outcomes.list != model.outcomes || real.channel.count != model.buffer.count {
              Issue.record(
                "\(history): \(real.outcomes.list), meant \(model.outcomes), \(model.buffer)")
              real.finish()
              return
            }
          }
          real.finish()
        }
      }
    }
  }
}
