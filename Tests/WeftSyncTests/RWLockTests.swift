import Testing
import Weft

@testable import WeftSync

extension FiberRWLock {
  var waiting: Int { unsafe waiters(in: pointer) }  // SAFETY: `self` keeps it
}

extension SyncTests {
  @Suite struct RWLockTests {
    @Test func theGateLiesWhereItIsExpected() {
      let lock = FiberRWLock(1)
      unsafe expectGate(&lock.gate, at: lock.pointer)  // SAFETY: `lock` keeps it
    }

    @Test(arguments: workerCounts)
    func readersShareAndWritersDoNot(workers: Int) throws {
      let seed = stressSeed()
      try onWorkers(workers) {
        let lock = FiberRWLock([0, 0])
        let (readers, writers, most) = (Counter(), Counter(), Box(0))
        let written = Counter()
        together(8) { actor in
          var random = SplitMix64(seed: seed &+ UInt64(actor))
          for _ in 0..<scaled(3_000, least: 150) {
            let dice = Int.random(in: 0..<16, using: &random)
            func read(_ value: [Int]) {
              let now = readers.add()
              most.change { $0 = max($0, now) }
              if writers.value != 0 || value[0] != value[1] { Issue.record("seed \(seed)") }
              if dice < 8 { Fiber.yield() }
              readers.add(-1)
            }
            func write(_ value: inout [Int]) {
              if writers.add() != 1 || readers.value != 0 { Issue.record("seed \(seed)") }
              value[0] += 1
              if dice < 8 { Fiber.yield() }
              value[1] += 1
              writers.add(-1)
              written.add()
            }
            switch dice % 8 {
            case 0: lock.withWriteLock { write(&$0) }
            case 1: _ = lock.withWriteLockIfAvailable { write(&$0) }
            case 2: _ = lock.withReadLockIfAvailable { read($0) }
            default: lock.withReadLock { read($0) }
            }
          }
        }
        #expect(lock.withReadLock { $0 } == [written.value, written.value])
        #expect(most.value > 1)
        #expect(lock.waiting == 0)
        #expect(lock.withWriteLockIfAvailable { _ in true } == true)
      }
    }

    @Test(arguments: workerCounts)
    func whatIsAvailable(workers: Int) throws {
      try onWorkers(workers) {
        let lock = FiberRWLock(1)
        lock.withReadLock { _ in
          #expect(lock.withReadLockIfAvailable { $0 } == 1)
          #expect(lock.withWriteLockIfAvailable { $0 } == nil)
          // Reading inside a read works while nobody waits to write.
          #expect(lock.withReadLock { $0 } == 1)
          onThread {
            #expect(lock.withReadLock { $0 } == 1)
            #expect(lock.withWriteLockIfAvailable { $0 } == nil)
          }
        }
        lock.withWriteLock { _ in
          #expect(lock.withReadLockIfAvailable { $0 } == nil)
          onThread { #expect(lock.withReadLockIfAvailable { $0 } == nil) }
          #expect(lock.withWriteLockIfAvailable { $0 } == nil)
        }
        #expect(throws: Oops.self) { try lock.withReadLock { _ in throw Oops() } }
        #expect(throws: Oops.self) { try lock.withWriteLock { _ in throw Oops() } }
        #expect(lock.withWriteLockIfAvailable { $0 } == 1)
      }
    }

    /// While one waits to write, those who come to read wait; after it, all of them read before
    /// the next writes.
    @Test(arguments: workerCounts)
    func phases(workers: Int) throws {
      try onWorkers(workers) {
        let lock = FiberRWLock(0)
        let order = Box<[String]>([])
        let (ended, reading) = (Counter(), Counter())
        func write(_ name: String) {
          let before = lock.waiting
          Fiber {
            lock.withWriteLock { _ in order.change { $0.append(name) } }
            ended.add()
          }
          waitUntil { lock.waiting == before + 1 }
        }
        func read(_ name: String, together parties: Int) {
          let before = lock.waiting
          Fiber {
            lock.withReadLock { _ in
              order.change { $0.append(name) }
              // They read at the same time: each waits here for the others.
              reading.add()
              waitUntil { reading.value >= parties }
            }
            ended.add()
          }
          waitUntil { lock.waiting == before + 1 }
        }
        lock.withReadLock { _ in
          write("w1")
          read("r", together: 3)
          write("w2")
          read("r", together: 3)
          read("r", together: 3)
          #expect(lock.withReadLockIfAvailable { $0 } == nil)
        }
        waitUntil { ended.value == 5 }
        #expect(order.value == ["w1", "r", "r", "r", "w2"])
        // The other way round: a writer, then the readers that came.
        reading.add(-3)
        order.value = []
        lock.withWriteLock { _ in
          write("w3")
          read("r", together: 2)
          read("r", together: 2)
        }
        waitUntil { ended.value == 8 }
        #expect(order.value == ["r", "r", "w3"])
      }
    }

    @Test(arguments: workerCounts)
    func nobodyStarves(workers: Int) throws {
      try onWorkers(workers) {
        let lock = FiberRWLock(0)
        let isDone = Box(false)
        let readers = (0..<3).map { _ in
          Fiber { while !isDone.value { lock.withReadLock { _ in Fiber.yield() } } }
        }
        let thread = PlainThread { while !isDone.value { lock.withReadLock { _ in } } }
        for _ in 0..<scaled(200, least: 20) { lock.withWriteLock { $0 += 1 } }
        isDone.value = true
        for reader in readers { reader.join() }
        waitUntil { lock.waiting == 0 }
        thread.join()

        isDone.value = false
        let writers = (0..<3).map { _ in
          Fiber {
            while !isDone.value {
              lock.withWriteLock { value in
                value += 1
                Fiber.yield()
              }
            }
          }
        }
        for _ in 0..<scaled(200, least: 20) { lock.withReadLock { _ in } }
        isDone.value = true
        for writer in writers { writer.join() }
      }
    }

    @Test(arguments: workerCounts)
    func cancelledOnesGetItInTheirTurn(workers: Int) throws {
      try onWorkers(workers) {
        let lock = FiberRWLock(0)
        var fibers: [Fiber<Bool, Never>] = []
        lock.withWriteLock { _ in
          fibers.append(
            Fiber {
              lock.withWriteLock { value in
                value += 1
                return Fiber.isCancelled
              }
            })
          fibers.append(Fiber { lock.withReadLock { _ in Fiber.isCancelled } })
          waitUntil { lock.waiting == 2 }
          for fiber in fibers { fiber.cancel() }
          for _ in 0..<20 { Fiber.yield() }
          #expect(lock.waiting == 2)
        }
        for fiber in fibers { #expect(fiber.join()) }
        #expect(lock.withReadLock { $0 } == 1)
      }
    }

    @Test func aValueIsReleasedWithItsLock() {
      let counter = Counter()
      do {
        let lock = FiberRWLock(Tracked(counter))
        lock.withWriteLock { $0 = Tracked(counter, 2) }
        #expect(lock.withReadLock { $0.number } == 2)
        #expect(counter.value == 1)
      }
      #expect(counter.value == 0)
    }

    // MARK: - Misuse

    @Test func writingInsideAWrite() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 1)) {
          let lock = FiberRWLock(0)
          Fiber(name: "again") { lock.withWriteLock { _ in lock.withWriteLock { _ in } } }.join()
        }
      }
      #expect(
        errorText(result).contains(
          "\"again\" locked a FiberRWLock to write, inside a lock of its own that writes"))
    }

    @Test func readingInsideAWrite() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        let lock = FiberRWLock(0)
        lock.withWriteLock { _ in lock.withReadLock { _ in } }
      }
      #expect(
        errorText(result).contains(
          "a plain thread locked a FiberRWLock to read, inside a lock of its own that writes"))
    }

    @Test func writingInsideARead() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 1)) {
          let lock = FiberRWLock(0)
          lock.withReadLock { _ in lock.withWriteLock { _ in } }
        }
      }
      #expect(
        errorText(result).contains(
          "locked a FiberRWLock to write, inside a lock of its own that reads"))
    }

    @Test func readingInsideAReadWhileAnotherWaitsToWrite() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 1)) {
          let lock = FiberRWLock(0)
          lock.withReadLock { _ in
            Fiber { lock.withWriteLock { _ in } }
            waitUntil { lock.waiting == 1 }
            lock.withReadLock { _ in }
          }
        }
      }
      #expect(errorText(result).contains("that reads, while another waits to write"))
    }
  }
}
