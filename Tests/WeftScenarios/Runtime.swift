import Weft
import WeftTesting

// Park and unpark, joins, timers, workers.

extension Scenario {
  static let waking: [Scenario] = [
    Scenario("park and unpark") {
      let turns = Shared(0)
      let other = Fiber {
        for _ in 0..<3 {
          try Fiber.park()
          turns.value += 1
        }
      }
      for turn in 0..<3 {
        other.unpark()
        while turns.value == turn { Fiber.yield() }
      }
      try other.join()
      try require(turns.value == 3)
    },
    Scenario("a permit is kept") {
      let fiber = Fiber { try Fiber.park() }
      fiber.unpark()
      try fiber.join()
    },
    Scenario("unparked by a thread") {
      let fibers = (0..<2).map { _ in Fiber { try Fiber.park() } }
      let thread = try Simulation.thread { for fiber in fibers { fiber.unpark() } }
      for fiber in fibers { try fiber.join() }
      _ = thread
    },
    Scenario("unparked by a thread while all sleep", isExact: true) {
      let fibers = (0..<2).map { _ in
        Fiber { for _ in 0..<2 { try Fiber.park() } }
      }
      let thread = try Simulation.thread {
        for _ in 0..<2 {
          try? Fiber.sleep(for: .milliseconds(5))
          for fiber in fibers { fiber.unpark() }
        }
      }
      for fiber in fibers { try fiber.join() }
      _ = thread
    },
    Scenario("unpark and cancel at once") {
      let fiber = Fiber { () -> Bool in
        do { try Fiber.park() } catch { return true }
        return false
      }
      let canceller = Fiber { fiber.cancel() }
      fiber.unpark()
      let isThrown = fiber.join()
      canceller.join()
      try require(!isThrown || fiber.isCancelled)
    },
    Scenario("a permit survives other waits") {
      let channel = Channel<Int>()
      let fiber = Fiber { () throws -> Int? in
        let got = try channel.receive()
        try Fiber.park()
        return got
      }
      fiber.unpark()
      try channel.send(7)
      try require(try fiber.join() == 7)
    },
    Scenario("yield lets others run", workers: 1) {
      let seen = Shared([Int]())
      let fibers = (0..<3).map { index in
        Fiber {
          for _ in 0..<2 {
            seen.value.append(index)
            Fiber.yield()
          }
        }
      }
      for fiber in fibers { fiber.join() }
      try require(seen.value.count == 6)
    },
  ]

  static let joining: [Scenario] = [
    Scenario("join") {
      let fibers = (0..<3).map { index in Fiber { index } }
      try require(fibers.reduce(0) { $0 + $1.join() } == 3)
    },
    Scenario("several join one") {
      let target = Fiber { () -> Int in
        Fiber.yield()
        return 5
      }
      let joiners = (0..<3).map { _ in Fiber { target.join() } }
      for joiner in joiners { try require(joiner.join() == 5) }
      try require(target.join() == 5)
    },
    Scenario("join with a time limit", isExact: true) {
      let target = Fiber { () -> Int in
        try? Fiber.sleep(for: .milliseconds(1))
        return 5
      }
      let early = Fiber { try target.join(within: .microseconds(10)) }
      let even = Fiber { try target.join(within: .milliseconds(1)) }
      let late = Fiber { try target.join(within: .seconds(1)) }
      _ = try early.join()
      _ = try even.join()
      try require(try late.join() == 5)
    },
    Scenario("joined by a thread") {
      let target = Fiber { () -> Int in
        Fiber.yield()
        return 5
      }
      let got = Shared(0)
      let thread = try Simulation.thread { got.value = target.join() }
      try require(target.join() == 5)
      while got.value == 0 { Fiber.yield() }
      _ = thread
    },
    Scenario("a join is cancelled", isExact: true) {
      let target = Fiber { () -> Int in
        try? Fiber.sleep(for: .milliseconds(1))
        return 5
      }
      let joiner = Fiber { () -> Int? in
        do { return try target.join(within: .seconds(1)) } catch { return -1 }
      }
      Fiber.yield()
      joiner.cancel()
      let got = joiner.join()
      try require(got == 5 || got == -1)
      try require(target.join() == 5)
    },
    Scenario("an error comes out of each join") {
      struct Oops: Error {}
      let target = Fiber<Int, any Error> { throw Oops() }
      let other = Fiber { () -> Bool in
        do { _ = try target.join() } catch { return error is Oops }
        return false
      }
      var isThrown = false
      do { _ = try target.join() } catch { isThrown = error is Oops }
      try require(isThrown && other.join())
    },
  ]

  static let timing: [Scenario] = [
    Scenario("sleepers wake in order") {
      let woken = Shared([Int]())
      let fibers = [3, 1, 2].map { time in
        Fiber {
          try Fiber.sleep(for: .milliseconds(time))
          woken.value.append(time)
        }
      }
      for fiber in fibers { try fiber.join() }
      try require(Set(woken.value) == [1, 2, 3])
    },
    Scenario("nobody wakes early") {
      let fibers = (1...3).map { time in
        Fiber { () throws -> Bool in
          let end = Fiber.now + .milliseconds(time)
          try Fiber.sleep(until: end)
          return Fiber.now >= end
        }
      }
      for fiber in fibers { try require(try fiber.join()) }
    },
    Scenario("nobody wakes late", isExact: true) {
      let long = Fiber(placement: .worker(0)) { try Fiber.sleep(for: .seconds(10)) }
      let short = Fiber(placement: .worker(1)) { () throws -> Bool in
        for _ in 0..<3 {
          let end = Fiber.now + .microseconds(30)
          try Fiber.sleep(until: end)
          // Shorter than any nap of a worker. Those that spin take a little.
          if Fiber.now > end + .microseconds(10) { return false }
        }
        return true
      }
      try require(try short.join(), "woken late")
      try long.join()
    },
    Scenario("timers of others while one is busy", isExact: true) {
      let log = Shared([String]())
      let busy = Fiber(placement: .worker(0)) {
        try Fiber.sleep(for: .milliseconds(1))
        let end = Fiber.now + .seconds(10)
        while Fiber.now < end { Fiber.yield() }
        log.value.append("busy")
      }
      let sleeper = Fiber(placement: .worker(1)) {
        try Fiber.sleep(for: .milliseconds(20))
        log.value.append("sleeper")
      }
      try busy.join()
      try sleeper.join()
      try require(log.value == ["sleeper", "busy"], "\(log.value)")
    },
    Scenario("a sleep is cancelled") {
      let fiber = Fiber { () -> Bool in
        do { try Fiber.sleep(for: .milliseconds(1)) } catch { return true }
        return false
      }
      let canceller = Fiber {
        try Fiber.sleep(for: .milliseconds(1))
        fiber.cancel()
      }
      try canceller.join()
      _ = fiber.join()
    },
    Scenario("a time limit on a receive") {
      let channel = Channel<Int>()
      let receiver = Fiber { () -> Int? in
        do {
          return try withTimeout(.milliseconds(1)) { try channel.receive() }
        } catch { return nil }
      }
      let sender = Fiber { () -> Bool in
        try? Fiber.sleep(for: .milliseconds(1))
        return ((try? channel.sendIfAvailable(1)) ?? false)
      }
      let isSent = sender.join()
      let got = receiver.join()
      try require(isSent == (got == 1), "an element that was taken arrives, and no other")
    },
    Scenario("deadlines nest", isExact: true) {
      var isInner = false
      do {
        try withTimeout(.milliseconds(5)) {
          do {
            try withTimeout(.milliseconds(1)) { try Fiber.sleep(for: .seconds(1)) }
          } catch is DeadlineExceeded { isInner = true }
          try Fiber.sleep(for: .milliseconds(1))
        }
      }
      try require(isInner)
    },
    Scenario("timers are set while others sleep", workers: 3) {
      let fibers = (0..<3).map { index in
        Fiber {
          for step in 1...2 { try Fiber.sleep(for: .microseconds(60 * (index + step))) }
        }
      }
      for fiber in fibers { try fiber.join() }
    },
  ]

  static let workers: [Scenario] = [
    Scenario("work spreads", workers: 3) {
      let done = Shared(0)
      let fibers = (0..<6).map { _ in
        Fiber {
          Fiber.yield()
          done.value += 1
        }
      }
      for fiber in fibers { fiber.join() }
      try require(done.value == 6)
    },
    Scenario("workers sleep and wake", workers: 3) {
      let channel = Channel<Int>(capacity: 1)
      let receivers = (0..<2).map { _ in Fiber { try channel.receive() ?? 0 } }
      for element in 1...2 {
        try Fiber.sleep(for: .milliseconds(1))
        try channel.send(element)
      }
      var sum = 0
      for receiver in receivers { sum += try receiver.join() }
      try require(sum == 3)
    },
    Scenario("pinned fibers", workers: 3) {
      let fibers = (0..<3).map { index in
        Fiber(placement: .worker(index)) { () throws -> Int in
          try Fiber.sleep(for: .microseconds(1))
          Fiber.yield()
          return index
        }
      }
      var sum = 0
      for fiber in fibers { sum += try fiber.join() }
      try require(sum == 3)
    },
    Scenario("an exclusive worker", workers: 3) {
      let fiber = Fiber(placement: .exclusive) { () -> Int in
        Fiber.yield()
        return 4
      }
      let others = (0..<2).map { _ in Fiber { Fiber.yield() } }
      try require(fiber.join() == 4)
      for other in others { other.join() }
    },
    Scenario("calls on other threads") {
      let fibers = (0..<2).map { index in Fiber { try blocking { index + 1 } } }
      var sum = 0
      for fiber in fibers { sum += try fiber.join() }
      try require(sum == 3)
    },
    Scenario("one call after the other", isExact: true) {
      let start = Fiber.now
      for index in 0..<3 { try require(try blocking { index } == index) }
      try require(Fiber.now - start < .seconds(1), "an idle thread slept on")
    },
    Scenario("a call is cancelled") {
      let ran = Shared(false)
      let fiber = Fiber { () -> Bool in
        do { try blocking { ran.value = true } } catch { return false }
        return true
      }
      Fiber.yield()
      fiber.cancel()
      let result = fiber.join()
      try require(result == ran.value, "cancelled means that it never ran")
    },
    Scenario("the end cancels what is left", allowsLeftovers: true) {
      _ = Fiber { try? Fiber.park() }
      _ = Fiber { try? Fiber.sleep(for: .seconds(100)) }
      let channel = Channel<Int>()
      _ = Fiber { while (try? channel.receive()) != nil {} }
      Fiber.yield()
    },
    Scenario("the end meets fibers that begin", allowsLeftovers: true) {
      let channel = Channel<Int>()
      for _ in 0..<2 {
        _ = Fiber { while (try? channel.receive()) != nil {} }
        _ = Fiber { try? Fiber.sleep(for: .seconds(100)) }
      }
    },
    Scenario("priorities", workers: 1) {
      let seen = Shared(0)
      let fibers = (0..<4).map { index in
        Fiber(priority: index % 2 == 0 ? .high : .normal) {
          Fiber.yield()
          seen.value += 1
        }
      }
      for fiber in fibers { fiber.join() }
      try require(seen.value == 4)
    },
    Scenario("no stack for a while", faults: [.noStack]) {
      let fibers = (0..<4).map { index in Fiber { index } }
      try require(fibers.reduce(0) { $0 + $1.join() } == 6)
    },
    Scenario("no thread for a call", faults: [.noThread]) {
      let fibers = (0..<3).map { index in Fiber { try blocking { index } } }
      var sum = 0
      for fiber in fibers { sum += try fiber.join() }
      try require(sum == 3)
    },
  ]
}
