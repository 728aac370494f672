import CWeft
import Testing
import Weft

@testable import WeftSync

extension SyncTests {
  /// Supports what the documentation of `Channel` says, with several capacities and workers.
  @Suite struct ChannelTests {
    @Test(arguments: workerCounts, [0, 1, 2, 128])
    func everyElementArrivesOnceAndInOrder(workers: Int, capacity: Int) throws {
      let count = scaled(20_000)
      try onWorkers(workers) {
        let channel = Channel<Int>(capacity: capacity)
        Fiber {
          for i in 0..<count { try channel.send(i) }
          channel.close()
        }
        var next = 0
        while let element = try channel.receive() {
          #expect(element == next)
          next += 1
        }
        #expect(next == count)
        #expect(try channel.receive() == nil)
      }
    }

    @Test(arguments: workerCounts)
    func aRendezvousEndsWhenTheElementIsTaken(workers: Int) throws {
      try onWorkers(workers) {
        let channel = Channel<Int>()
        let sent = Counter()
        let sender = Fiber {
          try channel.send(1)
          sent.add()
        }
        waitUntil { Self.sendersWaiting(channel) == 1 }
        for _ in 0..<100 { Fiber.yield() }
        #expect(sent.value == 0 && channel.count == 0)
        #expect(try channel.receive() == 1)
        try sender.join()
        #expect(sent.value == 1)
      }
    }

    @Test(arguments: workerCounts)
    func receiversAreServedInTheOrderInWhichTheyCame(workers: Int) throws {
      try onWorkers(workers) {
        let channel = Channel<Int>()
        let receivers = (0..<20).map { number in
          let fiber = Fiber { try channel.receive() }
          waitUntil { Self.receiversWaiting(channel) == number + 1 }
          return fiber
        }
        for i in 0..<20 { try channel.send(i) }
        for (i, receiver) in receivers.enumerated() { #expect(try receiver.join() == i) }
      }
    }

    @Test(arguments: workerCounts, [0, 1, 3])
    func sendersAreServedInTheOrderInWhichTheyCame(workers: Int, capacity: Int) throws {
      try onWorkers(workers) {
        let channel = Channel<Int>(capacity: capacity)
        for i in 0..<capacity { try channel.send(i) }
        let senders = (0..<20).map { number in
          let fiber = Fiber { try channel.send(capacity + number) }
          waitUntil { Self.sendersWaiting(channel) == number + 1 }
          return fiber
        }
        for i in 0..<capacity + 20 { #expect(try channel.receive() == i) }
        for sender in senders { try sender.join() }
      }
    }

    static func receiversWaiting<T>(_ channel: Channel<T>) -> Int {
      unsafe waiting(channel, weft_channel_receivers(channel.pointer))  // SAFETY: it is alive
    }

    static func sendersWaiting<T>(_ channel: Channel<T>) -> Int {
      unsafe waiting(channel, weft_channel_senders(channel.pointer))  // SAFETY: it is alive
    }

    private static func waiting<T>(_ channel: Channel<T>, _ line: Line) -> Int {
      // SAFETY: under the lock those in the line are there.
      let lock = unsafe weft_channel_lock(channel.pointer)
      unsafe lock.lock()
      defer { unsafe lock.unlock() }
      var count = 0
      var waiter = unsafe line.pointee.first
      while let one = unsafe waiter {
        count += 1
        unsafe waiter = one.pointee.next
      }
      return count
    }

    // MARK: - Closing

    // Situation 81: whether closing twice, sending to and receiving from what is closed is allowed.
    @Test(arguments: workerCounts)
    func closingLetsAllGoOn(workers: Int) throws {
      try onWorkers(workers) {
        let empty = Channel<Int>()
        let receivers = (0..<50).map { _ in Fiber { try empty.receive() } }
        let full = Channel<Int>(capacity: 1)
        try full.send(0)
        let senders = (1..<50).map { i in Fiber { try full.send(i) } }
        waitUntil { Self.receiversWaiting(empty) == 50 }
        waitUntil { Self.sendersWaiting(full) == 49 }
        for _ in 0..<2 {
          empty.close()
          full.close()
        }
        for receiver in receivers { #expect(try receiver.join() == nil) }
        for sender in senders { expectClosed { try sender.join() } }
        #expect(empty.isClosed && full.isClosed && full.count == 1)
        // What was sent before is still received.
        #expect(try full.receive() == 0)
        #expect(try full.receive() == nil && full.receiveIfAvailable() == nil)
        expectClosed { try full.send(1) }
        expectClosed { _ = try full.sendIfAvailable(1) }
      }
    }

    @Test func theErrorSaysWhatToDo() {
      #expect("\(ChannelClosed())".contains("closed"))
    }

    // MARK: - If available

    @Test(arguments: [0, 1, 2])
    func ifAvailableNeverWaits(capacity: Int) throws {
      try onWorkers(1) {
        let channel = Channel<Int>(capacity: capacity)
        #expect(channel.receiveIfAvailable() == nil)
        for i in 0..<capacity { #expect(try channel.sendIfAvailable(i)) }
        #expect(channel.count == capacity)
        #expect(try !channel.sendIfAvailable(9))
        var kept: Int? = 7
        #expect(try !channel.sendIfAvailable(from: &kept))
        #expect(kept == 7)
        for i in 0..<capacity { #expect(channel.receiveIfAvailable() == i) }
        let receiver = Fiber { try channel.receive() }
        waitUntil { Self.receiversWaiting(channel) == 1 }
        #expect(try channel.sendIfAvailable(from: &kept))
        #expect(kept == nil)
        #expect(try !channel.sendIfAvailable(from: &kept))
        #expect(try receiver.join() == 7)
        let sender = Fiber { for i in 0..<capacity + 1 { try channel.send(i) } }
        waitUntil { Self.sendersWaiting(channel) == 1 }
        #expect(channel.receiveIfAvailable() == 0)
        try sender.join()
      }
    }

    // MARK: - Elements

    struct Box1: ~Copyable {
      let number: Int
      let counter: Counter
      init(_ number: Int, _ counter: Counter) {
        self.number = number
        self.counter = counter
        counter.add()
      }
      deinit { counter.add(-1) }
    }

    @Test(arguments: [0, 3])
    func elementsNeedNotBeCopyable(capacity: Int) throws {
      let alive = Counter()
      try onWorkers(2) {
        let channel = Channel<Box1>(capacity: capacity)
        let sender = Fiber {
          for i in 0..<100 { try channel.send(Box1(i, alive)) }
          channel.close()
        }
        var next = 0
        while let box = try channel.receive() {
          #expect(box.number == next)
          next += 1
        }
        #expect(next == 100)
        try sender.join()
      }
      #expect(alive.value == 0)
    }

    final class Plain { var count = 0 }

    @Test func elementsNeedNotBeSendable() throws {
      try onWorkers(2) {
        let there = Channel<Plain>()
        let back = Channel<Plain>()
        Fiber {
          while let plain = try there.receive() {
            plain.count += 1
            try back.send(plain)
          }
        }
        try there.send(Plain())
        for round in 1...100 {
          guard let plain = try back.receive() else { break }
          #expect(plain.count == 2 * round - 1)
          plain.count += 1
          if round < 100 { try there.send(plain) }
        }
        there.close()
      }
    }

    @Test(arguments: workerCounts)
    func whatIsNotReceivedIsReleased(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        do {
          let channel = Channel<Tracked>(capacity: 100)
          for i in 0..<70 { try channel.send(Tracked(alive, i)) }
          for _ in 0..<50 { _ = try channel.receive() }
          for i in 0..<60 { try channel.send(Tracked(alive, i)) }
          #expect(alive.value == 80)
          channel.close()
          expectClosed { try channel.send(Tracked(alive)) }
          expectClosed { _ = try channel.sendIfAvailable(Tracked(alive)) }
          #expect(alive.value == 80)
        }
        #expect(alive.value == 0)
        let rendezvous = Channel<Tracked>()
        let sender = Fiber { try rendezvous.send(Tracked(alive)) }
        waitUntil { alive.value == 1 }
        sender.cancel()
        expectCancelled { try sender.join() }
        #expect(alive.value == 0)
      }
    }

    @Test func anUnboundedOneNeverWaits() throws {
      try onWorkers(1) {
        let channel = Channel<Int>(capacity: .unbounded)
        // The ring grows while its first element is anywhere.
        var (sent, received) = (0, 0)
        for round in 1...60 {
          for _ in 0..<round * 3 {
            try channel.send(sent)
            sent += 1
          }
          for _ in 0..<round {
            #expect(try channel.receive() == received)
            received += 1
          }
        }
        #expect(channel.count == sent - received)
        channel.close()
        for element in channel {
          #expect(element == received)
          received += 1
        }
        #expect(received == sent)
      }
    }

    @Test func theLatestFirst() throws {
      try onWorkers(1) {
        let channel = Channel<Int>(capacity: 3, order: .lifo)
        for i in 0..<3 { try channel.send(i) }
        let sender = Fiber { try channel.send(3) }
        waitUntil { Self.sendersWaiting(channel) == 1 }
        #expect(try (0..<4).map { _ in try channel.receive() } == [2, 3, 1, 0])
        try sender.join()
      }
    }

    // MARK: - Cancellation and time

    @Test(arguments: workerCounts)
    func aLoopEndsWhenItsFiberIsCancelled(workers: Int) throws {
      try onWorkers(workers) {
        let channel = Channel<Int>(capacity: 4)
        let loop = Fiber { () -> [Int] in
          var seen: [Int] = []
          for element in channel { seen.append(element) }
          return seen
        }
        try channel.send(1)
        try channel.send(2)
        waitUntil { Self.receiversWaiting(channel) == 1 }
        loop.cancel()
        #expect(loop.join() == [1, 2])
        #expect(try channel.sendIfAvailable(3) && channel.count == 1)
      }
    }

    @Test(arguments: workerCounts)
    func whoIsCancelledBeforeThrowsAtOnce(workers: Int) throws {
      try onWorkers(workers) {
        let channel = Channel<Int>(capacity: 4)
        try channel.send(1)
        let fiber = Fiber {
          Fiber.current?.cancel()
          expectCancelled { _ = try channel.receive() }
          expectCancelled { try channel.send(2) }
        }
        fiber.join()
        #expect(channel.count == 1)
      }
    }

    @Test(arguments: workerCounts)
    func aTimeLimit(workers: Int) throws {
      try onWorkers(workers) {
        let channel = Channel<Int>()
        expectLate { _ = try channel.receive(within: .milliseconds(2)) }
        expectLate { try channel.send(1, within: .milliseconds(2)) }
        expectLate { try channel.send(1, within: .zero) }
        #expect(Self.receiversWaiting(channel) == 0)
        #expect(Self.sendersWaiting(channel) == 0)
        let receiver = Fiber { try channel.receive(within: .seconds(1_000)) }
        try channel.send(2, within: .seconds(1_000))
        #expect(try receiver.join() == 2)
      }
      onThread {
        let channel = Channel<Int>()
        expectLate { _ = try channel.receive(within: .milliseconds(2)) }
        expectLate { try channel.send(1, within: .milliseconds(2)) }
      }
    }

    // MARK: - Threads

    @Test(arguments: workerCounts, [0, 2])
    func plainThreadsTakePart(workers: Int, capacity: Int) throws {
      let count = scaled(2_000)
      let channel = Channel<Int>(capacity: capacity)
      let sum = Counter()
      let threads = (0..<2).map { _ in
        PlainThread { for i in 1...count { try! channel.send(i) } }
      }
      let receivers = (0..<2).map { _ in
        PlainThread { while let element = try! channel.receive() { sum.add(element) } }
      }
      try onWorkers(workers) {
        let fibers = (0..<2).map { _ in Fiber { for i in 1...count { try channel.send(i) } } }
        let others = (0..<2).map { _ in
          Fiber { while let element = try channel.receive() { sum.add(element) } }
        }
        for fiber in fibers { try fiber.join() }
        for thread in threads { thread.join() }
        channel.close()
        for fiber in others { try fiber.join() }
      }
      for thread in receivers { thread.join() }
      #expect(sum.value == 4 * count * (count + 1) / 2)
    }

    // MARK: - Misuse and layout

    @Test func aNegativeCapacityIsNamed() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        _ = Channel<Int>(capacity: -1)
      }
      #expect(errorText(result).contains("Channel(capacity: -1)"))
    }

    @Test func theCoreLiesWhereItIsLookedFor() {
      let numbers = Channel<Int>(capacity: 1)
      let texts = Channel<String>(capacity: 77)
      // SAFETY: only constants of an object that is alive are read.
      #expect(unsafe numbers.pointer.pointee.capacity == 1)
      #expect(unsafe texts.pointer.pointee.capacity == 77)
    }

    // Situations 70 and 77: one that is cancelled when it was chosen already swallows the element.
    /// Elements are conserved, whoever sends, receives, gives up, is cancelled or comes from where.
    @Test(arguments: workerCounts, [0, 1, 7])
    func nothingIsLostOrDoubled(workers: Int, capacity: Int) throws {
      let seed = stressSeed()
      let until = ContinuousClock.now + stressDuration / 4
      let alive = Counter()
      try onWorkers(workers) {
        var random = SplitMix64(seed: seed)
        while ContinuousClock.now < until {
          let channel = Channel<Tracked>(capacity: capacity)
          let (sent, received) = (Counter(), Counter())
          let fibers = (0..<12).map { number in
            let steps = random.next()
            return Fiber(placement: .worker(number % workers)) {
              Self.wander(channel, alive, sent, received, SplitMix64(seed: steps))
            }
          }
          for fiber in fibers where random.next() % 2 == 0 {
            Fiber.yield()
            fiber.cancel()
          }
          channel.close()
          for fiber in fibers { fiber.join() }
          while channel.receiveIfAvailable() != nil { received.add() }
          #expect(sent.value == received.value)
        }
      }
      #expect(alive.value == 0)
    }

    private static func wander(
      _ channel: Channel<Tracked>, _ alive: Counter, _ sent: Counter, _ received: Counter,
      _ random: SplitMix64
    ) {
      var random = random
      for _ in 0..<20 {
        do {
          switch random.next() % 6 {
          case 0:
            try channel.send(Tracked(alive))
            sent.add()
          case 1: if try channel.receive() != nil { received.add() }
          case 2: if try channel.sendIfAvailable(Tracked(alive)) { sent.add() }
          case 3: if channel.receiveIfAvailable() != nil { received.add() }
          case 4: if try channel.receive(within: .microseconds(5)) != nil { received.add() }
          default:
            try channel.send(Tracked(alive), within: .microseconds(5))
            sent.add()
          }
        } catch {}
      }
    }
  }
}
