import Testing
import Weft

@testable import WeftSync

extension SyncTests {
  /// Supports what the documentation of `select` says.
  @Suite struct SelectTests {
    @Test(arguments: workerCounts)
    func theReadyCaseHappens(workers: Int) throws {
      try onWorkers(workers) {
        let numbers = Channel<Int>(capacity: 1)
        let texts = Channel<String>(capacity: 1)
        try numbers.send(7)
        let first = try select {
          numbers.onReceive { "number \($0 ?? -1)" }
          texts.onReceive { "text \($0 ?? "")" }
        }
        #expect(first == "number 7")
        try texts.send("x")
        let second = try select {
          numbers.onReceive { "number \($0 ?? -1)" }
          texts.onReceive { "text \($0 ?? "")" }
          after(.seconds(100)) { "late" }
        }
        #expect(second == "text x")
        let third = try select {
          numbers.onReceive { "number \($0 ?? -1)" }
          texts.onSend("y") { "sent" }
          otherwise { "none" }
        }
        #expect(third == "sent")
        let fourth = try select {
          numbers.onReceive { "number \($0 ?? -1)" }
          texts.onSend("z") { "sent" }
          otherwise { "none" }
        }
        #expect(fourth == "none")
        #expect(texts.receiveIfAvailable() == "y")
      }
    }

    @Test(arguments: workerCounts, [0, 1])
    func itWaitsForTheFirst(workers: Int, capacity: Int) throws {
      try onWorkers(workers) {
        let channels = (0..<4).map { _ in Channel<Int>(capacity: capacity) }
        for round in 0..<scaled(2_000) {
          let sender = Fiber { try channels[round % 4].send(round) }
          let found = try select {
            channels[0].onReceive { (0, $0) }
            channels[1].onReceive { (1, $0) }
            channels[2].onReceive { (2, $0) }
            channels[3].onReceive { (3, $0) }
          }
          #expect(found == (round % 4, round))
          try sender.join()
          let receiver = Fiber { try channels[round % 4].receive() }
          // With room everywhere any of them may take it.
          if capacity == 0 {
            let taken = try select {
              channels[0].onSend(round) { 0 }
              channels[1].onSend(round) { 1 }
              channels[2].onSend(round) { 2 }
              channels[3].onSend(round) { 3 }
            }
            #expect(taken == round % 4)
          } else {
            try channels[round % 4].send(round)
          }
          #expect(try receiver.join() == round)
        }
        // Nobody is left in a line.
        for channel in channels {
          #expect(ChannelTests.receiversWaiting(channel) == 0)
          #expect(ChannelTests.sendersWaiting(channel) == 0)
        }
      }
    }

    // MARK: - Choice

    /// Within five standard deviations of what is meant.
    private func expectShare(_ count: Int, of total: Int, _ share: Double) {
      let mean = Double(total) * share
      let deviation = (Double(total) * share * (1 - share)).squareRoot()
      #expect(abs(Double(count) - mean) < 5 * deviation, "\(count) of \(total), meant \(mean)")
    }

    @Test func theChoiceAmongReadyCasesIsUniform() throws {
      let rounds = 8_000
      try onWorkers(1) {
        let a = Channel<Int>(capacity: 1)
        let b = Channel<Int>(capacity: 1)
        let c = Channel<Int>(capacity: 1)
        let never = Channel<Int>()
        try a.send(1)
        try c.send(1)
        var counts = [0, 0, 0, 0]
        for _ in 0..<rounds {
          let chosen = try select {
            never.onReceive { _ in 3 }
            a.onReceive { _ in 0 }
            b.onSend(1) { 1 }
            c.onReceive { _ in 2 }
          }
          counts[chosen] += 1
          switch chosen {
          case 0: try a.send(1)
          case 1: _ = try b.receive()
          default: try c.send(1)
          }
        }
        for chosen in 0..<3 { expectShare(counts[chosen], of: rounds, 1 / 3) }
        #expect(counts[3] == 0)
      }
    }

    // Situation 81: a channel that is named three times has three chances.
    @Test func theChoiceIsUniformOverCases() throws {
      let rounds = 8_000
      try onWorkers(1) {
        let a = Channel<Int>(capacity: 1)
        let b = Channel<Int>(capacity: 1)
        a.close()
        b.close()
        var chosenA = 0
        for _ in 0..<rounds {
          chosenA += try select {
            a.onReceive { _ in 1 }
            b.onReceive { _ in 0 }
            a.onReceive { _ in 1 }
            a.onReceive { _ in 1 }
          }
        }
        expectShare(chosenA, of: rounds, 3 / 4)
      }
    }

    /// An element goes to and fro, and is always in one of two channels.
    @Test(arguments: [2, 4])
    func otherwiseOnlyIfNothingWasReadyAtOneMoment(workers: Int) throws {
      try onWorkers(workers) {
        let a = Channel<Int>(capacity: 2)
        let b = Channel<Int>(capacity: 2)
        try a.send(0)
        let stop = Counter()
        let mover = Fiber(placement: .worker(1)) {
          while stop.value == 0 {
            try b.send(1)
            _ = try a.receive()
            try a.send(1)
            _ = try b.receive()
          }
        }
        for _ in 0..<scaled(20_000) {
          // What it takes it puts back, so whenever it looks one of them has an element.
          let found = try select {
            a.onReceive { element in
              try a.send(element ?? 0)
              return true
            }
            b.onReceive { element in
              try b.send(element ?? 0)
              return true
            }
            otherwise { false }
          }
          #expect(found)
        }
        stop.add()
        try mover.join()
      }
    }

    // MARK: - Time

    @Test(arguments: workerCounts)
    func afterWinsWhenItsTimeHasCome(workers: Int) throws {
      try onWorkers(workers) {
        let channel = Channel<Int>()
        let start = ContinuousClock.now
        let late = try select {
          channel.onReceive { _ in 0 }
          after(.seconds(100)) { 1 }
          after(.milliseconds(3)) { 2 }
        }
        #expect(late == 2 && ContinuousClock.now - start >= .milliseconds(3))
        for duration in [Duration.zero, .seconds(-1)] {
          let atOnce = try select {
            channel.onReceive { _ in 0 }
            after(duration) { 1 }
          }
          #expect(atOnce == 1)
        }
        #expect(ChannelTests.receiversWaiting(channel) == 0)
        let alone = try select { after(.microseconds(10)) { "alone" } }
        #expect(alone == "alone")
      }
      onThread {
        let channel = Channel<Int>()
        let late = try? select {
          channel.onReceive { _ in 0 }
          after(.milliseconds(2)) { 2 }
        }
        #expect(late == 2)
      }
    }

    // MARK: - Closed, cancelled, failed

    @Test(arguments: workerCounts)
    func closedChannels(workers: Int) throws {
      try onWorkers(workers) {
        let open = Channel<Int>()
        let closed = Channel<Int>()
        closed.close()
        let value = try select {
          open.onReceive { $0 ?? -1 }
          closed.onReceive { $0 ?? -2 }
        }
        #expect(value == -2)
        expectClosed {
          try select {
            open.onReceive { _ in }
            closed.onSend(1)
          }
        }
        // While it waits.
        for isSender in [false, true] {
          let channel = Channel<Int>()
          let fiber = Fiber { () throws -> Int in
            try isSender
              ? select {
                channel.onSend(1) { 1 }
                open.onReceive { _ in 2 }
              }
              : select {
                channel.onReceive { $0 ?? -1 }
                open.onReceive { _ in 2 }
              }
          }
          waitUntil {
            ChannelTests.sendersWaiting(channel) + ChannelTests.receiversWaiting(channel) == 1
          }
          channel.close()
          if isSender {
            expectClosed { _ = try fiber.join() }
          } else {
            #expect(try fiber.join() == -1)
          }
        }
        #expect(ChannelTests.receiversWaiting(open) == 0)
      }
    }

    @Test(arguments: workerCounts)
    func aCancelledSelectLeavesNothingBehind(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let empty = Channel<Tracked>()
        let full = Channel<Tracked>(capacity: 1)
        try full.send(Tracked(alive))
        let fiber = Fiber {
          try select {
            empty.onReceive { _ in }
            full.onSend(Tracked(alive))
            after(.seconds(1_000)) {}
          }
        }
        waitUntil { ChannelTests.sendersWaiting(full) == 1 }
        fiber.cancel()
        expectCancelled { try fiber.join() }
        #expect(alive.value == 1)
        #expect(ChannelTests.receiversWaiting(empty) == 0)
        #expect(ChannelTests.sendersWaiting(full) == 0)
        let before = Fiber {
          Fiber.current?.cancel()
          expectCancelled { try select { full.onReceive { _ in } } }
        }
        before.join()
        #expect(full.count == 1)
      }
      #expect(alive.value == 0)
    }

    @Test func theErrorOfABodyComesOut() throws {
      try onWorkers(1) {
        let channel = Channel<Int>(capacity: 1)
        try channel.send(1)
        do {
          try select { channel.onReceive { _ in throw Oops(number: 5) } }
          Issue.record("nothing thrown")
        } catch let error as Oops {
          #expect(error.number == 5)
        }
        #expect(channel.count == 0)
      }
    }

    @Test(arguments: workerCounts)
    func whatIsNotSentIsReleased(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let a = Channel<Tracked>(capacity: 1)
        let b = Channel<Int>(capacity: 1)
        try a.send(Tracked(alive))
        try b.send(1)
        let chosen = try select {
          a.onSend(Tracked(alive)) { "sent" }
          b.onReceive { _ in "received" }
        }
        #expect(chosen == "received" && alive.value == 1)
        let box = Channel<ChannelTests.Box1>(capacity: 1)
        try select {
          box.onSend(ChannelTests.Box1(1, alive)) {}
          b.onReceive { _ in }
        }
        #expect(alive.value == 2)
        let number = try select {
          box.onReceive { found in
            if let found { return found.number }
            return -1
          }
        }
        #expect(number == 1 && alive.value == 1)
        let kept = try select {
          a.onSend(Tracked(alive)) { "sent" }
          otherwise { "kept" }
        }
        #expect(kept == "kept" && alive.value == 1)
      }
      #expect(alive.value == 0)
    }

    // MARK: - Fibers

    @Test(arguments: workerCounts)
    func joins(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Channel<Int>()
        let slow = Fiber { () throws -> String in
          _ = try gate.receive()
          return "slow"
        }
        let fast = Fiber { "fast" }
        let first = try select {
          slow.onJoin { $0 }
          fast.onJoin { $0 }
        }
        #expect(first == "fast")
        // Both have to be waited for.
        let second = Fiber { () throws -> String in
          try select {
            slow.onJoin { $0 }
            gate.onReceive { _ in "gate" }
            after(.seconds(1_000)) { "late" }
          }
        }
        waitUntil { ChannelTests.receiversWaiting(gate) == 2 }
        try gate.send(1)
        #expect(try second.join() == "slow")
        let failing = Fiber { () throws -> String in throw Oops(number: 3) }
        do {
          _ = try select { failing.onJoin { $0 } }
          Issue.record("nothing thrown")
        } catch let error as Oops {
          #expect(error.number == 3)
        }
        // Many that end while they are enlisted.
        for round in 0..<scaled(500) {
          let others = (0..<3).map { i in
            Fiber { () -> Int in
              for _ in 0..<(round + i) % 4 { Fiber.yield() }
              return i
            }
          }
          let winner = try select { for other in others { other.onJoin { $0 } } }
          #expect(others[winner].isFinished)
        }
      }
    }

    @Test func aPlainThreadSelects() throws {
      let channel = Channel<Int>()
      let results = Channel<String>(capacity: 8)
      let gate = Channel<Int>()
      let fiber = Fiber { () throws -> Int in try gate.receive() ?? 0 }
      let thread = PlainThread {
        for _ in 0..<2 {
          let found = try! select {
            channel.onReceive { "received \($0 ?? 0)" }
            fiber.onJoin { "joined \($0)" }
          }
          try! results.send(found)
        }
      }
      try onWorkers(2) {
        try channel.send(3)
        #expect(try results.receive() == "received 3")
        try gate.send(4)
        #expect(try results.receive() == "joined 4")
      }
      thread.join()
      try fiber.join()
    }

    // MARK: - The builder

    @Test func ifSwitchAndForChooseTheCases() throws {
      try onWorkers(1) {
        let channels = (0..<100).map { _ in Channel<Int>(capacity: 1) }
        for number in [3, 99] {
          try channels[number].send(number)
          let found = try select {
            for (index, channel) in channels.enumerated() {
              if index % 3 == 0 {
                channel.onReceive { ($0 ?? -1, index) }
              } else {
                channel.onReceive { ($0 ?? -1, index) }
              }
            }
          }
          #expect(found == (number, number))
        }
        enum Way: CaseIterable { case receive, send, time }
        for way in Way.allCases {
          for hasMore in [false, true] {
            let result = try select {
              switch way {
              case .receive: channels[0].onReceive { _ in "received" }
              case .send: channels[1].onSend(1) { "sent" }
              case .time: after(.zero) { "time" }
              }
              if hasMore { otherwise { "none" } } else { after(.milliseconds(1)) { "late" } }
              if hasMore { channels[2].onReceive { _ in "no" } }
            }
            let expected =
              switch (way, hasMore) {
              case (.receive, true): "none"
              case (.receive, false): "late"
              case (.send, _): "sent"
              case (.time, _): "time"
              }
            #expect(result == expected)
            _ = channels[1].receiveIfAvailable()
          }
        }
      }
    }

    @Test func withoutACaseItIsNamed() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        let none: [Channel<Int>] = []
        try select { for channel in none { channel.onReceive { _ in } } }
      }
      #expect(errorText(result).contains("a select has no case"))
    }

    // MARK: - Many at once

    /// One that sends to and receives from the same channel does not meet itself.
    @Test(arguments: workerCounts)
    func bothSidesOfOneChannel(workers: Int) throws {
      try onWorkers(workers) {
        let channel = Channel<Int>()
        let fibers = (0..<2).map { number in
          Fiber { () throws -> Int in
            try select {
              channel.onSend(number) { -1 }
              channel.onReceive { $0 ?? -2 }
            }
          }
        }
        let results = try fibers.map { try $0.join() }
        #expect(results == [-1, 0] || results == [1, -1])
      }
    }

    /// Selects that name the same channels in all orders, some of them cancelled or late: each
    /// element that was sent is received once.
    @Test(arguments: workerCounts, [0, 2])
    func nothingIsLostOrDoubled(workers: Int, capacity: Int) throws {
      let seed = stressSeed()
      let until = ContinuousClock.now + stressDuration / 4
      let alive = Counter()
      try onWorkers(workers) {
        var random = SplitMix64(seed: seed)
        while ContinuousClock.now < until {
          let channels = (0..<3).map { _ in Channel<Tracked>(capacity: capacity) }
          let (sent, received) = (Counter(), Counter())
          let fibers = (0..<10).map { number in
            let steps = random.next()
            return Fiber(placement: .worker(number % workers)) {
              Self.wander(channels, alive, sent, received, SplitMix64(seed: steps))
            }
          }
          let steps = random.next()
          let thread = PlainThread {
            Self.wander(channels, alive, sent, received, SplitMix64(seed: steps))
          }
          for fiber in fibers where random.next() % 3 == 0 {
            Fiber.yield()
            fiber.cancel()
          }
          // Where nearly all were cancelled, one may be left with nobody to meet: until the close.
          let limit = ContinuousClock.now + .seconds(2)
          waitUntil {
            sent.value + received.value > 20 || fibers.allSatisfy(\.isFinished)
              || ContinuousClock.now > limit
          }
          for channel in channels { channel.close() }
          for fiber in fibers { fiber.join() }
          thread.join()
          for channel in channels {
            while channel.receiveIfAvailable() != nil { received.add() }
          }
          #expect(sent.value == received.value)
        }
      }
      #expect(alive.value == 0)
    }

    private static func wander(
      _ channels: [Channel<Tracked>], _ alive: Counter, _ sent: Counter, _ received: Counter,
      _ random: SplitMix64
    ) {
      var random = random
      for _ in 0..<20 {
        let order = channels.shuffled(using: &random)
        let kind = random.next() % 4
        do {
          try select {
            order[0].onReceive { if $0 != nil { received.add() } }
            order[1].onSend(Tracked(alive)) { _ = sent.add() }
            order[2].onReceive { if $0 != nil { received.add() } }
            if kind == 0 { after(.microseconds(5)) {} }
            if kind == 1 { order[0].onSend(Tracked(alive)) { _ = sent.add() } }
            if kind == 2 { otherwise { Fiber.yield() } }
          }
        } catch {}
      }
    }
  }
}
