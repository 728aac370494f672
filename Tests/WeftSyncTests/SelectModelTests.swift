import Testing
import Weft

// Selects, sends and receives over two rendezvous channels, through every short history. Where more
// than one partner is there the choice is by chance: any of them will do, and only one.

private enum Offer: Hashable { case send(Int), receive(Int) }

extension Offer {
  var partner: Offer {
    switch self {
    case .send(let channel): .receive(channel)
    case .receive(let channel): .send(channel)
    }
  }
}

private enum Event: CaseIterable {
  case selectReceive, selectSend, selectEither, send, receive, receiveOther
  case cancelFirst, cancelSecond

  /// What one that begins so offers.
  var offers: [Offer] {
    switch self {
    case .selectReceive: [.receive(0), .receive(1)]
    case .selectSend: [.send(0), .send(1)]
    case .selectEither: [.send(0), .receive(1)]
    case .send: [.send(0)]
    case .receive: [.receive(0)]
    case .receiveOther: [.receive(1)]
    case .cancelFirst, .cancelSecond: []
    }
  }
}

extension SyncTests {
  @Suite struct SelectModelTests {
    @Test func everyShortHistory() throws {
      let length = isSanitized ? 4 : 5
      let count = Event.allCases.count
      var total = 1
      for _ in 0..<length { total *= count }
      try onWorkers(1) {
        for number in 0..<total where !Self.run(number, length) { return }
      }
    }

    /// False if what happened is not what was meant.
    private static func run(_ number: Int, _ length: Int) -> Bool {
      let channels = [Channel<Int>(), Channel<Int>()]
      let operations = Operations()
      var waiting: [(operation: Int, offers: [Offer])] = []
      var meant: [Progress] = []
      var history: [Event] = []
      var rest = number
      defer { operations.finish() }
      for _ in 0..<length {
        let event = Event.allCases[rest % Event.allCases.count]
        rest /= Event.allCases.count
        history.append(event)
        // Who could be met: of each channel and side the one that came first.
        let partners = event.offers.compactMap { offer in
          waiting.first { $0.offers.contains(offer.partner) }?.operation
        }
        begin(event, channels, operations)
        for _ in 0..<4 { Fiber.yield() }
        let seen = operations.notes.progress
        switch event {
        case .cancelFirst, .cancelSecond:
          let operation = event == .cancelFirst ? 0 : 1
          if operation < meant.count, meant[operation] == .waits {
            meant[operation] = .cancelled
            waiting.removeAll { $0.operation == operation }
          }
        default:
          meant.append(.waits)
          if partners.isEmpty {
            waiting.append((meant.count - 1, event.offers))
          } else if let met = partners.first(where: { seen[$0] == .done }) {
            meant[met] = .done
            meant[meant.count - 1] = .done
            waiting.removeAll { $0.operation == met }
          }
        }
        if seen != meant || (!partners.isEmpty && meant.last == .waits) {
          Issue.record("\(history): \(seen), meant \(meant), partners \(partners)")
          return false
        }
      }
      return true
    }

    private static func begin(
      _ event: Event, _ channels: [Channel<Int>], _ operations: Operations
    ) {
      let (a, b) = (channels[0], channels[1])
      switch event {
      case .selectReceive:
        operations.start { _ in
          try select {
            a.onReceive { _ in Progress.done }
            b.onReceive { _ in Progress.done }
          }
        }
      case .selectSend:
        operations.start { _ in
          try select {
            a.onSend(1) { Progress.done }
            b.onSend(1) { Progress.done }
          }
        }
      case .selectEither:
        operations.start { _ in
          try select {
            a.onSend(1) { Progress.done }
            b.onReceive { _ in Progress.done }
          }
        }
      case .send:
        operations.start { _ in
          try a.send(1)
          return .done
        }
      case .receive:
        operations.start { _ in
          _ = try a.receive()
          return .done
        }
      case .receiveOther:
        operations.start { _ in
          _ = try b.receive()
          return .done
        }
      case .cancelFirst: operations.cancel(0)
      case .cancelSecond: operations.cancel(1)
      }
    }
  }
}
