import Weft
import WeftTesting

// Channels, select, broadcast.

extension Scenario {
  /// Two send, two receive: each element arrives once.
  private static func conservation(_ capacity: Int) -> Scenario {
    Scenario("channel of \(capacity), two to two") {
      let channel = Channel<Int>(capacity: capacity)
      let senders = (0..<2).map { half in
        Fiber { for element in 1...2 { try channel.send(half * 2 + element) } }
      }
      let receivers = (0..<2).map { _ in
        Fiber { () throws -> [Int] in
          var got: [Int] = []
          while let element = try channel.receive() { got.append(element) }
          return got
        }
      }
      for sender in senders { try sender.join() }
      channel.close()
      var all: [Int] = []
      for receiver in receivers { all += try receiver.join() }
      try require(all.sorted() == [1, 2, 3, 4], "\(all)")
    }
  }

  static let channels: [Scenario] = [
    conservation(0), conservation(1), conservation(2),
    Scenario("a receive is cancelled") {
      let channel = Channel<Int>()
      let receivers = (0..<2).map { _ in
        Fiber { () -> Int in ((try? channel.receive()) ?? nil) ?? 0 }
      }
      let canceller = Fiber { receivers[0].cancel() }
      try channel.send(1)
      canceller.join()
      channel.close()
      let sum = receivers.reduce(0) { $0 + $1.join() }
      try require(sum == 1, "the element was taken, and got lost")
    },
    Scenario("a send is cancelled") {
      let channel = Channel<Int>(capacity: 1)
      try channel.send(0)
      let senders = (1...2).map { element in
        Fiber { () -> Int in
          do { try channel.send(element) } catch { return 0 }
          return element
        }
      }
      let canceller = Fiber { senders[0].cancel() }
      var got = 0
      while let element = try channel.receive() {
        got += element
        if element == 2 { break }
      }
      canceller.join()
      let sent = senders.reduce(0) { $0 + $1.join() }
      channel.close()
      while let element = try channel.receive() { got += element }
      try require(got == sent, "\(sent) sent, \(got) received")
    },
    Scenario("a close wakes everybody") {
      let channel = Channel<Int>()
      let receivers = (0..<2).map { _ in Fiber { try channel.receive() } }
      let closer = Fiber { channel.close() }
      for receiver in receivers { try require(try receiver.join() == nil) }
      closer.join()
    },
    Scenario("a close wakes senders") {
      let channel = Channel<Int>()
      let senders = (0..<2).map { element in
        Fiber { () -> Bool in
          do { try channel.send(element) } catch { return error is ChannelClosed }
          return false
        }
      }
      Fiber.yield()
      channel.close()
      for sender in senders { try require(sender.join()) }
    },
    Scenario("a channel between threads and fibers") {
      let channel = Channel<Int>(capacity: 1)
      try Simulation.thread {
        for element in 1...3 { try? channel.send(element) }
        channel.close()
      }
      var sum = 0
      while let element = try channel.receive() { sum += element }
      try require(sum == 6)
    },
    Scenario("select of two receives") {
      let (a, b) = (Channel<Int>(), Channel<Int>(capacity: 1))
      let senders = [Fiber { try a.send(1) }, Fiber { try b.send(2) }]
      var sum = 0
      for _ in 0..<2 {
        sum += try select {
          a.onReceive { $0 ?? 100 }
          b.onReceive { $0 ?? 100 }
        }
      }
      for sender in senders { try sender.join() }
      try require(sum == 3, "\(sum)")
    },
    Scenario("two selects meet") {
      let (a, b) = (Channel<Int>(), Channel<Int>())
      let got = Shared(0)
      let other = Fiber {
        try select {
          a.onReceive { got.value = $0 ?? 100 }
          b.onSend(2) {}
        }
      }
      let mine = try select {
        a.onSend(1) { 0 }
        b.onReceive { $0 ?? 100 }
      }
      try other.join()
      let isMet = got.value == 1 && mine == 0 || got.value == 0 && mine == 2
      try require(isMet, "\(got.value) \(mine)")
    },
    Scenario("select with a time limit") {
      let channel = Channel<Int>()
      let sender = Fiber { () -> Bool in
        try? Fiber.sleep(for: .milliseconds(1))
        return (try? channel.sendIfAvailable(1)) ?? false
      }
      let got = try select {
        channel.onReceive { $0 ?? 100 }
        after(.milliseconds(1)) { 0 }
      }
      try require(sender.join() == (got == 1))
    },
    Scenario("a select is cancelled") {
      let (a, b) = (Channel<Int>(), Channel<Int>())
      let selector = Fiber { () -> Int in
        do {
          return try select {
            a.onReceive { $0 ?? 0 }
            b.onReceive { $0 ?? 0 }
          }
        } catch { return 0 }
      }
      let canceller = Fiber { selector.cancel() }
      let isSent = try b.sendIfAvailable(2)
      canceller.join()
      try require(selector.join() == (isSent ? 2 : 0))
    },
    Scenario("select on locks and joins") {
      let semaphore = FiberSemaphore(0)
      let target = Fiber { 5 }
      let signaller = Fiber { semaphore.signal() }
      let which = try select {
        semaphore.onWait { 1 }
        target.onJoin { _ in 2 }
      }
      signaller.join()
      _ = target.join()
      try require(semaphore.availablePermits == (which == 1 ? 0 : 1))
    },
    Scenario("broadcast") {
      let broadcast = Broadcast<Int>(capacity: 1)
      let subscriptions = (0..<2).map { _ in broadcast.subscribe() }
      let receivers = subscriptions.map { subscription in
        Fiber { () throws -> Int in
          var sum = 0
          while let element = try subscription.receive() { sum += element }
          return sum
        }
      }
      for element in 1...3 { try broadcast.send(element) }
      broadcast.close()
      for receiver in receivers { try require(try receiver.join() == 6) }
    },
    Scenario("a pipeline") {
      let source = Channel<Int>(capacity: 1)
      let doubled = source.map(fibers: 2) { $0 * 2 }
      let sender = Fiber {
        for element in 1...3 { try source.send(element) }
        source.close()
      }
      var got: [Int] = []
      while let element = try doubled.receive() { got.append(element) }
      try sender.join()
      try require(got.sorted() == [2, 4, 6], "\(got)")
    },
  ]
}
