import Testing
import Weft

// A broadcast with two subscriptions, and a single flight, through every short history
// (Exhaust.swift).

private struct BroadcastMeaning: Meaning {
  enum Event { case send, receiveFirst, receiveSecond, close, cancelFirst, cancelSecond }
  static let events: [Event] = [
    .send, .receiveFirst, .receiveSecond, .close, .cancelFirst, .cancelSecond,
  ]
  static let capacity = 1

  var progress: [Progress] = []
  var sent = 0
  var received = [0, 0]
  var senders: [Int] = []
  var receivers: [(operation: Int, subscription: Int)] = []
  var isClosed = false

  /// All that was received.
  var tally: Int { received[0] + received[1] }

  func allows(_ event: Event) -> Bool { true }

  mutating func happen(_ event: Event) {
    switch event {
    case .send:
      progress.append(isClosed ? .refused : .waits)
      if !isClosed { senders.append(progress.count - 1) }
    case .receiveFirst: receive(0)
    case .receiveSecond: receive(1)
    case .close:
      isClosed = true
      for sender in senders { progress[sender] = .refused }
      senders = []
      for receiver in receivers { progress[receiver.operation] = .done }
      receivers = []
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    }
    settle()
  }

  private mutating func receive(_ subscription: Int) {
    progress.append(.waits)
    receivers.append((progress.count - 1, subscription))
  }

  /// Whatever can go on does.
  private mutating func settle() {
    var isSettled = false
    while !isSettled {
      isSettled = true
      if let index = receivers.firstIndex(where: { received[$0.subscription] < sent }) {
        let receiver = receivers.remove(at: index)
        received[receiver.subscription] += 1
        progress[receiver.operation] = .done
        isSettled = false
      }
      if !senders.isEmpty, sent - received.min()! < Self.capacity {
        progress[senders.removeFirst()] = .done
        sent += 1
        isSettled = false
      }
    }
    if isClosed {
      for receiver in receivers { progress[receiver.operation] = .done }
      receivers = []
    }
  }

  private mutating func cancel(_ operation: Int) {
    guard operation < progress.count, progress[operation] == .waits else { return }
    progress[operation] = .cancelled
    senders.removeAll { $0 == operation }
    receivers.removeAll { $0.operation == operation }
  }
}

private struct BroadcastThing: Thing {
  let operations: Operations
  let broadcast = Broadcast<Int>(capacity: BroadcastMeaning.capacity)
  let subscriptions: [Broadcast<Int>.Subscription]
  let received = Counter()

  init(_ operations: Operations) {
    self.operations = operations
    let broadcast = broadcast
    subscriptions = (0..<2).map { _ in broadcast.subscribe() }
  }

  var tally: Int { received.value }

  func happen(_ event: BroadcastMeaning.Event) {
    let broadcast = broadcast
    switch event {
    case .send:
      operations.start { _ in
        do {
          try broadcast.send(1)
          return .done
        } catch is ChannelClosed {
          return .refused
        }
      }
    case .receiveFirst: receive(0)
    case .receiveSecond: receive(1)
    case .close: broadcast.close()
    case .cancelFirst: operations.cancel(0)
    case .cancelSecond: operations.cancel(1)
    }
  }

  private func receive(_ number: Int) {
    let (subscription, received) = (subscriptions[number], received)
    operations.start { _ in
      if try subscription.receive() != nil { received.add() }
      return .done
    }
  }

  func finish() { broadcast.close() }
}

private struct FlightMeaning: Meaning {
  enum Event { case ask, end, cancelFirst, cancelSecond, cancelThird }
  static let events: [Event] = [.ask, .end, .cancelFirst, .cancelSecond, .cancelThird]

  var progress: [Progress] = []
  /// Runs that were started.
  var tally = 0

  private var isUnderWay: Bool { progress.contains(.waits) }

  func allows(_ event: Event) -> Bool { event != .end || isUnderWay }

  mutating func happen(_ event: Event) {
    switch event {
    case .ask:
      if !isUnderWay { tally += 1 }
      progress.append(.waits)
    case .end: progress = progress.map { $0 == .waits ? .done : $0 }
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    case .cancelThird: cancel(2)
    }
  }
}

private struct FlightThing: Thing {
  let operations: Operations
  let flights = SingleFlight<Int, Int>()
  let runs = Box<[Channel<Int>]>([])

  init(_ operations: Operations) { self.operations = operations }

  var tally: Int { runs.value.count }

  func happen(_ event: FlightMeaning.Event) {
    let (flights, runs) = (flights, runs)
    switch event {
    case .ask:
      operations.start { _ in
        _ = try flights.run(7) {
          let gate = Channel<Int>()
          runs.change { $0.append(gate) }
          return try gate.receive() ?? 0
        }
        return .done
      }
    case .end: runs.value.last?.close()
    case .cancelFirst: operations.cancel(0)
    case .cancelSecond: operations.cancel(1)
    case .cancelThird: operations.cancel(2)
    }
  }

  func finish() { for gate in runs.value { gate.close() } }
}

extension SyncTests {
  @Suite struct BroadcastModelTests {
    @Test func broadcast() throws {
      try exhaust(BroadcastMeaning.self, BroadcastThing.self, length: historyLength(6))
    }

    @Test func singleFlight() throws {
      try exhaust(FlightMeaning.self, FlightThing.self, length: historyLength(6))
    }
  }
}
