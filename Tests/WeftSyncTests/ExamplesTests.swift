// Every example of the documentation of WeftSync, and those of the README about it, as they stand
// there, run in a fiber. A test of TidyTests compares the texts, layout aside, so that no example
// can be missing or out of date: what is changed there is changed here.

import Testing
import Weft

/// What the examples printed.
private let printed = Box<[String]>([])

/// In the place of the standard library's: tests don't print.
private func print(_ item: Any) { printed.change { $0.append("\(item)") } }

/// Runs an example, and says what it printed.
private func lines(_ example: () throws -> Void) throws -> [String] {
  printed.value = []
  try onWorkers(2, example)
  return printed.value
}

extension SyncTests {
  @Suite struct ExamplesTests {
    // MARK: - Channels

    @Test func channel() throws {
      let lines = try lines {
        let squares = Channel<Int>(capacity: 8)
        Fiber {
          for i in 0..<100 { try squares.send(i * i) }
          squares.close()
        }
        while let square = try squares.receive() { print(square) }
      }
      #expect(lines == (0..<100).map { "\($0 * $0)" })
    }

    @Test func sendIfAvailable() throws {
      let lines = try lines {
        let channel = Channel<[Int]>(capacity: 1)
        var job: [Int]? = [1, 2, 3]
        if try !channel.sendIfAvailable(from: &job) { print("kept: \(job ?? [])") }
        #expect(job == nil)
      }
      #expect(lines == [])
    }

    @Test func merging() throws {
      let lines = try lines {
        let a = Channel<Int>(capacity: 4)
        let b = Channel<Int>(capacity: 4)
        for (i, channel) in [a, b].enumerated() {
          Fiber {
            try channel.send(i)
            channel.close()
          }
        }
        for element in merge([a, b]) { print(element) }
      }
      #expect(lines.sorted() == ["0", "1"])
    }

    @Test func mapping() throws {
      let lines = try lines {
        let numbers = Channel<Int>(capacity: 8)
        let squares = numbers.map(fibers: 4) { $0 * $0 }
        Fiber {
          for i in 0..<100 { try numbers.send(i) }
          numbers.close()
        }
        for square in squares { print(square) }
      }
      #expect(lines == (0..<100).map { "\($0 * $0)" })
    }

    @Test func chunks() throws {
      let lines = try lines {
        let numbers = Channel<Int>(capacity: 8)
        Fiber {
          for i in 0..<10 { try numbers.send(i) }
          numbers.close()
        }
        for chunk in numbers.chunked(into: 4) { print(chunk) }  // [0, 1, 2, 3] …
      }
      #expect(lines == ["[0, 1, 2, 3]", "[4, 5, 6, 7]", "[8, 9]"])
    }

    @Test func ticking() throws {
      let lines = try lines {
        let clock = ticks(every: .milliseconds(20))
        for _ in 0..<3 { if let now = try clock.receive() { print(now) } }
        clock.close()
      }
      #expect(lines.count == 3)
    }

    /// The end of the run may cancel the subscriber before it has printed.
    @Test func broadcast() throws {
      let lines = try lines {
        let prices = Broadcast<Int>(capacity: 16)
        let subscription = prices.subscribe()
        Fiber {
          while let price = try subscription.receive() { print(price) }
        }
        try prices.send(42)
        prices.close()
      }
      #expect(lines == ["42"] || lines == [])
    }

    @Test func selecting() throws {
      let lines = try lines {
        let jobs = Channel<Int>()
        let results = Channel<Int>()
        Fiber { try jobs.send(1) }
        let name = try select {
          jobs.onReceive { job in job == nil ? "closed" : "a job" }
          results.onSend(7) { "sent" }
          after(.seconds(1)) { "late" }
        }
        print(name)  // a job
      }
      // On a machine that is very busy it is late.
      #expect(lines == ["a job"] || lines == ["late"])
    }

    // MARK: - Locks

    @Test func mutex() throws {
      _ = try lines {
        let balance = FiberMutex(100)
        let isPaid = balance.withLock { balance in
          if balance < 30 { return false }
          balance -= 30
          return true
        }
        #expect(isPaid && balance.withLock { $0 } == 70)
      }
    }

    @Test func guardOfAMutex() throws {
      _ = try lines {
        let isOpen = FiberMutex(false)
        let changed = FiberCondition()
        Fiber {
          isOpen.withLock { $0 = true }
          changed.notifyAll()
        }
        try isOpen.withGuard { isOpen in
          while !isOpen.value { try isOpen.wait(on: changed) }
        }
        #expect(isOpen.withLock { $0 })
      }
    }

    @Test func waitInAGuard() throws {
      _ = try lines {
        let jobs = FiberMutex<[Int]>([])
        let notEmpty = FiberCondition()
        Fiber {
          jobs.withLock { $0.append(7) }
          notEmpty.notifyOne()
        }
        let job = try jobs.withGuard { jobs in
          while jobs.value.isEmpty { try jobs.wait(on: notEmpty) }
          return jobs.value.removeLast()
        }
        #expect(job == 7)
      }
    }

    @Test func condition() throws {
      _ = try lines {
        let level = FiberMutex(0)
        let raised = FiberCondition()
        Fiber {
          for _ in 0..<10 {
            level.withLock { $0 += 1 }
            raised.notifyAll()
          }
        }
        try level.withGuard { level in
          while level.value < 10 { try level.wait(on: raised) }
        }
        #expect(level.withLock { $0 } == 10)
      }
    }

    @Test func semaphore() throws {
      _ = try lines {
        let connections = FiberSemaphore(4)
        try withFiberGroup(of: Void.self) { group in
          for _ in 0..<100 {
            group.spawn { try connections.withPermit { Fiber.yield() } }
          }
        }
        #expect(connections.availablePermits == 4)
      }
    }

    @Test func waitGroup() throws {
      _ = try lines {
        let pending = WaitGroup()
        for _ in 0..<10 {
          pending.add()
          Fiber { pending.done() }
        }
        try pending.wait()
        #expect(pending.count == 0)
      }
    }

    @Test func barrier() throws {
      _ = try lines {
        let parties = 3
        let barrier = FiberBarrier(parties)
        for _ in 0..<parties {
          Fiber {
            for _ in 0..<10 { try barrier.wait() }  // ten steps, which all do together
          }
        }
      }
    }

    @Test func readersAndWriters() throws {
      _ = try lines {
        let routes = FiberRWLock(["/": "index"])
        routes.withWriteLock { $0["/about"] = "about" }
        let page = routes.withReadLock { $0["/about"] }
        #expect(page == "about")
      }
    }

    // MARK: - Values that come once

    @Test func once() throws {
      _ = try lines {
        let table = FiberOnce<[Int]>()
        let squares = try table.get { (0..<100).map { $0 * $0 } }
        #expect(squares[99] == 9801)
      }
    }

    /// The end of the run may cancel those that have not got it yet.
    @Test func singleFlight() throws {
      let lines = try lines {
        let lookups = SingleFlight<String, Int>()
        for _ in 0..<10 {
          Fiber {
            // Where ten ask at the same time, one looks it up for all.
            let length = try lookups.run("key") {
              try Fiber.sleep(for: .milliseconds(5))
              return 3
            }
            print(length)
          }
        }
      }
      #expect(lines.allSatisfy { $0 == "3" })
    }

    @Test func promise() throws {
      let lines = try lines {
        let answer = Promise<Int>()
        Fiber { try answer.resolve(6 * 7) }
        print(try answer.wait())  // 42
      }
      #expect(lines == ["42"])
    }

    // MARK: - The README

    @Test func pipelineAndSelect() throws {
      let lines = try lines {
        let jobs = Channel<Int>(capacity: 8)
        let results = jobs.map(fibers: 4) { job in job * job }  // four at once, in order
        Fiber {
          for job in 1...100 { try jobs.send(job) }
          jobs.close()
        }
        var sum = 0
        var isOpen = true
        while isOpen {
          try select {
            results.onReceive { result in
              if let result { sum += result } else { isOpen = false }
            }
            after(.seconds(5)) { isOpen = false }
          }
        }
        print(sum)  // 338350
      }
      #expect(lines == ["338350"])
    }

    @Test func locksTogether() throws {
      _ = try lines {
        let stock = FiberMutex(["apples": 3])
        let delivered = FiberCondition()
        let scales = FiberSemaphore(2)
        let buyer = Fiber {
          try stock.withGuard { stock in
            while stock.value["apples", default: 0] < 5 { try stock.wait(on: delivered) }
            stock.value["apples"] = nil
          }
        }
        try scales.withPermit { stock.withLock { $0["apples", default: 0] += 7 } }
        delivered.notifyAll()
        try buyer.join()
        #expect(stock.withLock { $0 } == [:])
      }
    }
  }
}
