import Glibc
import Weft

/// Things that fibers and threads use at random, all at once, and what must hold when they are
/// done: nothing was lost, doubled or kept.
final class World: Sendable {
  let alive = Counter()
  let channels = [0, 1, 16].map { Channel<Tracked>(capacity: $0) }
  let sent = Counter()
  let received = Counter()
  let accounts = FiberMutex([Int](repeating: 100, count: 8))
  let changed = FiberCondition()
  let ledger = FiberRWLock((0, 0))
  let semaphore = FiberSemaphore(3)
  let inside = Counter()
  let begun = Counter()
  let ended = Counter()
  let steps = Counter()
  let isOver = Box(false)
  let handles = Box<[FiberHandle]>([])
  let failures = Box<[String]>([])

  func note(_ failure: String) { failures.change { $0.append(failure) } }

  /// What must hold when all have ended.
  func checkAtTheEnd() throws {
    for channel in channels {
      while channel.receiveIfAvailable() != nil { received.add() }
    }
    handles.value = []
    try check(failures.value.isEmpty, failures.value.prefix(5).joined(separator: "\n"))
    try check(sent.value == received.value, "\(sent.value) sent, \(received.value) received")
    try check(alive.value == 0, "\(alive.value) objects are left")
    let sum = accounts.withLock { $0.reduce(0, +) }
    try check(sum == 800, "the accounts hold \(sum)")
    let pair = ledger.withReadLock { $0 }
    try check(pair.0 == pair.1, "the ledger holds \(pair)")
    try check(
      semaphore.availablePermits == 3 && inside.value == 0,
      "\(semaphore.availablePermits) permits, \(inside.value) inside")
    try check(begun.value == ended.value, "\(begun.value) begun, \(ended.value) ended")
    try check(steps.value > 0, "nothing was done")
  }
}

// MARK: - Fibers

extension World {
  /// A fiber's life: steps at random until it is cancelled or all is over.
  func walk(_ seed: UInt64, depth: Int = 0, steps limit: Int = .max) {
    begun.add()
    defer { ended.add() }
    var random = SplitMix64(seed: seed)
    var left = limit
    while left > 0, !isOver.value {
      left -= 1
      do {
        try step(&random, depth)
        steps.add()
        if random.next() % 4 == 0 { Fiber.yield() }
      } catch is DeadlineExceeded {
        continue
      } catch is CancellationError {
        return
      } catch is ChannelClosed {
        return
      } catch {
        note("a step threw \(error)")
        return
      }
    }
  }

  private func step(_ random: inout SplitMix64, _ depth: Int) throws {
    let dice = Int(random.next() % 14)
    switch dice {
    case 0..<4: try exchange(&random, dice)
    case 4..<8: try share(&random, dice)
    case 8..<10: try pause(&random, dice)
    default: if depth < 2 { try multiply(&random, dice, depth) }
    }
  }

  private func moment(_ random: inout SplitMix64) -> Duration {
    .microseconds(Int(random.next() % 200))
  }

  private func channel(_ random: inout SplitMix64) -> Channel<Tracked> {
    channels[Int(random.next() % 3)]
  }

  /// Elements, by all ways.
  private func exchange(_ random: inout SplitMix64, _ dice: Int) throws {
    let (one, other) = (channel(&random), channel(&random))
    let time = moment(&random)
    switch dice {
    case 0:
      try one.send(Tracked(alive))
      sent.add()
    case 1: if try one.receive() != nil { received.add() }
    case 2 where time > .microseconds(100):
      try one.send(Tracked(alive), within: time)
      sent.add()
    case 2: if try one.receive(within: time) != nil { received.add() }
    default:
      try select {
        one.onReceive { if $0 != nil { self.received.add() } }
        other.onSend(Tracked(alive)) { _ = self.sent.add() }
        after(time) {}
      }
    }
  }

  /// Locks and permits.
  private func share(_ random: inout SplitMix64, _ dice: Int) throws {
    let (from, to) = (Int(random.next() % 8), Int(random.next() % 8))
    let amount = Int(random.next() % 50)
    let time = moment(&random)
    switch dice {
    case 4:
      accounts.withLock { accounts in
        accounts[from] -= amount
        if amount % 4 == 0 { Fiber.yield() }
        accounts[to] += amount
      }
      changed.notifyOne()
    case 5:
      try accounts.withGuard { accounts in
        accounts.value[from] -= amount
        defer { accounts.value[to] += amount }
        try accounts.wait(on: changed, within: time)
      }
    case 6:
      try semaphore.withPermit {
        let count = inside.add()
        if count > 3 { note("\(count) have one of three permits") }
        if amount % 2 == 0 { Fiber.yield() } else { try? Fiber.sleep(for: time) }
        inside.add(-1)
      }
    default:
      if amount % 2 == 0 {
        ledger.withWriteLock { pair in
          pair.0 += 1
          Fiber.yield()
          pair.1 += 1
        }
      } else if !ledger.withReadLock({ $0.0 == $0.1 }) {
        note("half of a change was seen")
      }
      try semaphore.wait(2, within: time)
      semaphore.signal(2)
    }
  }

  /// Time, parks, calls that block.
  private func pause(_ random: inout SplitMix64, _ dice: Int) throws {
    let time = moment(&random)
    if dice == 8 {
      let start = ContinuousClock.now
      try Fiber.sleep(for: time)
      let passed = ContinuousClock.now - start
      if passed < time { note("a sleep of \(time) took \(passed)") }
    } else if random.next() % 8 == 0 {
      let value = try blocking { 7 }
      if value != 7 { note("a blocking call returned \(value)") }
    } else {
      if let own = Fiber.current {
        handles.change { handles in
          handles.append(own)
          if handles.count > 16 { handles.removeFirst() }
        }
      }
      handles.value.randomElement(using: &random)?.unpark()
      try withTimeout(time) { try Fiber.park() }
    }
  }

  /// Other fibers, and coroutines that wait inside.
  private func multiply(_ random: inout SplitMix64, _ dice: Int, _ depth: Int) throws {
    let seed = random.next()
    switch dice {
    case 10:
      let child = Fiber { self.walk(seed, depth: depth + 1, steps: 3) }
      if seed % 3 == 0 { child.cancel() }
      // Or its handle is dropped.
      if seed % 4 != 0 { child.join() }
    case 11:
      let sum = try withFiberGroup(of: Int.self) { group in
        for i in 1...3 {
          group.spawn {
            self.walk(seed &+ UInt64(i), depth: depth + 1, steps: 2)
            return i
          }
        }
        if seed % 5 == 0 { throw CancellationError() }
        var sum = 0
        while let value = try group.next() { sum += value }
        return sum
      }
      if sum != 6 { note("a group's sum is \(sum)") }
    case 12:
      let (one, other) = (seed % 50, seed / 64 % 50)
      let winner = try race(
        {
          try Fiber.sleep(for: .microseconds(one))
          return one
        },
        {
          try Fiber.sleep(for: .microseconds(other))
          return other
        })
      if winner != one && winner != other { note("a race gave \(winner)") }
    default:
      let kept = Tracked(alive)
      let numbers = Generator<Int> { y in
        for i in 0..<4 {
          Fiber.yield()
          try y.yield(withExtendedLifetime(kept) { i })
        }
      }
      // Of some the rest is dropped.
      let taken = Array(numbers.prefix(Int(seed % 5)))
      if taken != Array(0..<Int(seed % 5)) { note("a generator gave \(taken)") }
    }
  }
}

// MARK: - Threads

extension World {
  /// The life of a thread that knows no scheduler.
  func walkAsThread(_ seed: UInt64) {
    begun.add()
    defer { ended.add() }
    var random = SplitMix64(seed: seed)
    while !isOver.value {
      do {
        switch random.next() % 7 {
        case 6: try pause(&random, 8)
        case 0: try exchange(&random, 2)
        case 1: try exchange(&random, 3)
        case 2: try share(&random, 4)
        case 3: try share(&random, 6)
        case 4: handles.value.randomElement(using: &random)?.cancel()
        default: handles.value.randomElement(using: &random)?.unpark()
        }
        steps.add()
      } catch is DeadlineExceeded {
        continue
      } catch is ChannelClosed {
        return
      } catch {
        note("a thread's step threw \(error)")
        return
      }
    }
  }
}

// MARK: - The run

extension World {
  /// Twelve fibers and two threads at once, with cancellations, for a while.
  static func run(
    _ configuration: Scheduler.Configuration, seed: UInt64, for time: Duration,
    meanwhile: @escaping @Sendable (World) -> Void = { _ in }
  ) throws {
    let world = World()
    let until = ContinuousClock.now + time
    try Scheduler.run(configuration) { try world.main(seed, until: until, meanwhile) }
    try world.checkAtTheEnd()
  }

  private func main(
    _ seed: UInt64, until: ContinuousClock.Instant, _ meanwhile: (World) -> Void
  ) throws {
    var random = SplitMix64(seed: seed)
    func start() -> Fiber<Void, Never> {
      let seed = random.next()
      return Fiber { self.walk(seed) }
    }
    var fibers = (0..<12).map { _ in start() }
    let left = Counter()
    let threads = (0..<2).map { _ in
      let seed = random.next()
      return PlainThread {
        self.walkAsThread(seed)
        left.add()
      }
    }
    // Where all is slow, at least until something was done.
    while ContinuousClock.now < until || steps.value < 100 {
      meanwhile(self)
      try Fiber.sleep(for: .microseconds(200))
      let index = Int(random.next() % 12)
      if random.next() % 2 == 0 { fibers[index].cancel() }
      if fibers[index].isFinished { fibers[index] = start() }
    }
    isOver.value = true
    for channel in channels { channel.close() }
    for fiber in fibers { fiber.join() }
    // Not joined at once: they may wait for what a fiber of this worker has.
    waitUntil { left.value == threads.count }
    for thread in threads { thread.join() }
    // Those whose handles were dropped.
    waitUntil { begun.value == ended.value }
  }
}
