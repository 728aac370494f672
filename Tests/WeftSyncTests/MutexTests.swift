import CWeft
import Testing
import Weft

@testable import WeftSync

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Not copyable, and not Sendable either.
private struct Handle: ~Copyable {
  var uses = 0
  var text = ["a"]
}

extension FiberMutex where Value: ~Copyable {
  var waiting: Int { unsafe waiters(in: pointer) }  // SAFETY: `self` keeps it
}

extension SyncTests {
  @Suite struct MutexTests {
    @Test func partsLieWhereTheyAreExpected() {
      func check<Value: ~Copyable>(_ mutex: FiberMutex<Value>) {
        unsafe expectGate(&mutex.gate, at: mutex.pointer)  // SAFETY: `mutex` keeps it
        unsafe withUnsafeMutablePointer(to: &mutex.content) { #expect(unsafe $0 == mutex.place) }
      }
      check(FiberMutex("text"))
      check(FiberMutex(UInt8(1)))
      check(FiberMutex(SIMD8<Double>()))
      check(FiberMutex<(Int, String)?>(nil))
      check(FiberMutex(Handle()))
    }

    @Test(arguments: workerCounts, [false, true])
    func oneAtATime(workers: Int, handOff: Bool) throws {
      let rounds = scaled(5_000, least: 200)
      try onWorkers(workers) {
        let mutex = FiberMutex(0, handOff: handOff)
        let inside = Counter()
        together(6) { actor in
          for round in 0..<rounds {
            mutex.withLock { value in
              #expect(inside.add() == 1)
              value += 1
              if (round + actor) % 8 == 0 { Fiber.yield() }
              inside.add(-1)
            }
          }
        }
        #expect(mutex.withLock { $0 } == 6 * rounds)
        #expect(mutex.waiting == 0)
      }
    }

    @Test func valuesThatAreNeitherCopyableNorSendable() {
      let mutex = FiberMutex(Handle())
      mutex.withLock { handle in
        handle.uses += 1
        handle.text.append("b")
      }
      #expect(mutex.withLock { $0.text.count + $0.uses } == 3)
      #expect(mutex.withGuard { $0.value.uses } == 1)
      let replaced = mutex.withLock { handle in
        let old = handle
        handle = Handle(uses: 7)
        return old.uses
      }
      #expect(replaced == 1)
      #expect(mutex.withLockIfAvailable { $0.uses } == 7)
    }

    @Test func errorsComeOutAndTheMutexIsFree() {
      let mutex = FiberMutex(0)
      do throws(Oops) {
        try mutex.withLock { (value) throws(Oops) in
          value = 1
          throw Oops(number: 3)
        }
      } catch {
        #expect(error.number == 3)
      }
      #expect(throws: Oops.self) { try mutex.withGuard { _ in throw Oops() } }
      #expect(throws: Oops.self) { try mutex.withLockIfAvailable { _ in throw Oops() } }
      #expect(mutex.withLockIfAvailable { $0 } == 1)
    }

    @Test(arguments: workerCounts)
    func heldOnesAreNotAvailable(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0)
        mutex.withLock { _ in
          #expect(mutex.withLockIfAvailable { _ in } == nil)
          #expect(Fiber { mutex.withLockIfAvailable { _ in true } }.join() == nil)
          onThread { #expect(mutex.withLockIfAvailable { _ in } == nil) }
        }
        #expect(mutex.withLockIfAvailable { _ in true } == true)
      }
    }

    @Test(arguments: workerCounts, [false, true])
    func parkedOnesGoInOrder(workers: Int, handOff: Bool) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex([Int](), handOff: handOff)
        var ends: [Fiber<Void, Never>] = []
        let thread = Box<PlainThread?>(nil)
        mutex.withLock { _ in
          for number in 0..<8 {
            if number == 4 {
              thread.value = PlainThread { mutex.withLock { $0.append(number) } }
            } else {
              ends.append(Fiber { mutex.withLock { $0.append(number) } })
            }
            waitUntil { mutex.waiting == number + 1 }
          }
        }
        for end in ends { end.join() }
        thread.value?.join()
        #expect(mutex.withLock { $0 } == Array(0..<8))
      }
    }

    @Test(arguments: workerCounts)
    func handedOffItIsNeverFreeBetween(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0, handOff: true)
        let goes = Box(false)
        var next: Fiber<Void, Never>?
        mutex.withLock { _ in
          next = Fiber { mutex.withLock { _ in waitUntil { goes.value } } }
          waitUntil { mutex.waiting == 1 }
        }
        // It is the other's already, whether that has run or not.
        #expect(mutex.withLockIfAvailable { _ in } == nil)
        goes.value = true
        next?.join()
      }
    }

    @Test func whoComesWhileItIsFreeTakesIt() throws {
      try onWorkers(1) {
        let mutex = FiberMutex([Int]())
        var others: [Fiber<Void, Never>] = []
        mutex.withLock { _ in
          for number in 1...3 {
            others.append(Fiber { mutex.withLock { $0.append(number) } })
            waitUntil { mutex.waiting == number }
          }
        }
        // The first was woken, and has no worker to run on. Until it has tried, nobody else is.
        #expect(mutex.waiting == 2)
        #expect(mutex.withLockIfAvailable { $0.append(0) } != nil)
        var thread: PlainThread?
        mutex.withLock { _ in
          thread = PlainThread { mutex.withLock { $0.append(4) } }
          // No fiber runs before this one yields.
          while mutex.waiting < 3 { sched_yield() }
        }
        #expect(mutex.waiting == 3)
        for other in others { other.join() }
        waitUntil { mutex.withLock { $0.count } == 5 }
        thread?.join()
        #expect(mutex.withLock { $0 } == [0, 1, 2, 3, 4])
      }
    }

    @Test func whoLostTwiceIsHandedIt() throws {
      try onWorkers(1) {
        let mutex = FiberMutex(0)
        let turns = Counter()
        let isDone = Box(false)
        // It lets others run only while it holds the mutex, and takes it again at once.
        let greedy = Fiber {
          while !isDone.value {
            mutex.withLock { _ in
              turns.add()
              Fiber.yield()
            }
          }
        }
        waitUntil { turns.value > 0 }
        for _ in 0..<50 {
          let modest = Fiber {
            let before = turns.value
            return mutex.withLock { _ in turns.value - before }
          }
          #expect(modest.join() <= 2)
        }
        isDone.value = true
        greedy.join()
      }
    }

    @Test(arguments: workerCounts)
    func nobodyStarves(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0)
        let isDone = Box(false)
        let greedy = PlainThread { while !isDone.value { mutex.withLock { $0 += 1 } } }
        let other = Fiber {
          while !isDone.value {
            mutex.withLock { value in
              value += 1
              Fiber.yield()
            }
          }
        }
        let modest = (0..<4).map { _ in
          Fiber { for _ in 0..<scaled(500, least: 50) { mutex.withLock { $0 += 1 } } }
        }
        for fiber in modest { fiber.join() }
        isDone.value = true
        other.join()
        greedy.join()
      }
    }

    @Test(arguments: workerCounts, [false, true])
    func cancelledOnesGetItInTheirTurn(workers: Int, handOff: Bool) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0, handOff: handOff)
        var waiter: Fiber<Bool, Never>?
        mutex.withLock { _ in
          waiter = Fiber {
            mutex.withLock { value in
              value += 1
              return Fiber.isCancelled
            }
          }
          waitUntil { mutex.waiting == 1 }
          waiter?.cancel()
          for _ in 0..<20 { Fiber.yield() }
          #expect(mutex.waiting == 1)
        }
        #expect(waiter?.join() == true)
        #expect(mutex.withLock { $0 } == 1)
      }
    }

    @Test func aValueIsReleasedWithItsMutex() {
      let counter = Counter()
      do {
        let mutex = FiberMutex(Tracked(counter))
        mutex.withLock { value in value = Tracked(counter, 2) }
        #expect(counter.value == 1)
      }
      #expect(counter.value == 0)
    }

    // MARK: - Misuse

    @Test func lockingItTwiceInAFiber() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 2)) {
          let mutex = FiberMutex(0)
          Fiber(name: "forgetful") { mutex.withLock { _ in mutex.withLock { _ in } } }.join()
        }
      }
      #expect(errorText(result).contains("\"forgetful\" locked a FiberMutex that it holds"))
    }

    @Test func lockingItTwiceInAThread() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        let mutex = FiberMutex(0)
        mutex.withLock { _ in mutex.withGuard { _ in } }
      }
      #expect(errorText(result).contains("a plain thread locked a FiberMutex that it holds"))
    }

    @Test func lockingItTwiceWhileOthersWait() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        Scheduler.run(.init(workers: 1)) {
          let mutex = FiberMutex(0, handOff: true)
          mutex.withLock { _ in
            Fiber { mutex.withLock { _ in mutex.withLock { _ in } } }
            Fiber { mutex.withLock { _ in } }
            waitUntil { mutex.waiting == 2 }
          }
          mutex.withLock { _ in }
        }
      }
      #expect(errorText(result).contains("locked a FiberMutex that it holds"))
    }

    // MARK: - Select

    @Test(arguments: workerCounts)
    func aClaimedWaiterThatCannotTryAgainOwnsIt(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0)
        var selector: Fiber<Void, Never>?
        let isOver = Box(false)
        mutex.withLock { _ in
          selector = Fiber {
            // SAFETY: the waiter lies on this stack until it was claimed; the mutex is captured.
            var waiter = unsafe weft_waiter()
            unsafe withUnsafeMutablePointer(to: &waiter) { waiter in
              let gate = unsafe mutex.pointer
              let owner = weft_owner_current()
              unsafe gate.lock()
              #expect(unsafe !takeMutexOrAnnounce(gate, owner))
              unsafe waiter.prepare()
              unsafe awaitMutex(gate, waiter, owner)
              unsafe gate.unlock()
              #expect(unsafe waiter.wait(for: .select, of: gate) == .woken)
              waitUntil { isOver.value }
              unsafe unlockMutex(gate, owner)
            }
          }
          waitUntil { mutex.waiting == 1 }
        }
        #expect(mutex.withLockIfAvailable { _ in } == nil)
        isOver.value = true
        selector?.join()
        #expect(mutex.withLockIfAvailable { _ in true } == true)
      }
    }

    @Test(arguments: workerCounts)
    func aSelectThatGaveUpIsPassedOver(workers: Int) throws {
      try onWorkers(workers) {
        let mutex = FiberMutex(0)
        var fibers: [Fiber<Void, Never>] = []
        mutex.withLock { _ in
          fibers.append(
            Fiber {
              // SAFETY: as above; it leaves the line before it goes.
              var waiter = unsafe weft_waiter()
              unsafe withUnsafeMutablePointer(to: &waiter) { waiter in
                let gate = unsafe mutex.pointer
                let owner = weft_owner_current()
                unsafe gate.lock()
                #expect(unsafe !takeMutexOrAnnounce(gate, owner))
                unsafe waiter.prepare()
                unsafe awaitMutex(gate, waiter, owner)
                unsafe gate.unlock()
                #expect(unsafe waiter.wait(for: .select, of: gate) == .cancelled)
                // What it lost was not its own: it may lock as anybody.
                mutex.withLock { $0 += 1 }
                unsafe waiter.leave(weft_gate_lock(gate))
              }
            })
          waitUntil { mutex.waiting == 1 }
          fibers.append(Fiber { mutex.withLock { $0 += 1 } })
          waitUntil { mutex.waiting == 2 }
          fibers[0].cancel()
        }
        for fiber in fibers { fiber.join() }
        #expect(mutex.withLockIfAvailable { $0 } == 2)
      }
    }

    // MARK: - Many at once

    @Test(arguments: workerCounts)
    func stress(workers: Int) throws {
      let seed = stressSeed()
      try onWorkers(workers) {
        for handOff in [false, true] {
          let until = ContinuousClock.now + stressDuration / 4
          let mutex = FiberMutex(0, handOff: handOff)
          let inside = Counter()
          let done = Counter()
          together(8) { actor in
            var random = SplitMix64(seed: seed &+ UInt64(actor))
            while ContinuousClock.now < until {
              let dice = Int.random(in: 0..<16, using: &random)
              func use(_ value: inout Int) {
                if inside.add() != 1 { Issue.record("two hold it, seed \(seed)") }
                value += 1
                if dice < 4 { Fiber.yield() }
                inside.add(-1)
                done.add()
              }
              switch dice % 3 {
              case 0: mutex.withLock { use(&$0) }
              case 1: _ = mutex.withLockIfAvailable { use(&$0) }
              default: mutex.withGuard { use(&$0.value) }
              }
              if dice == 15 { Fiber.yield() }
            }
          }
          #expect(mutex.withLock { $0 } == done.value, "seed \(seed)")
          #expect(mutex.waiting == 0)
        }
      }
    }

    private struct Model: SequentialModel {
      enum Op: Sendable { case lock, lockIfAvailable, unlock }
      var owner: Bool = false

      func after(_ op: Op, result: Bool?) -> Model? {
        switch op {
        case .lock: owner ? nil : Model(owner: true)
        case .lockIfAvailable:
          result == false ? (owner ? self : nil) : (owner ? nil : Model(owner: true))
        case .unlock: owner ? Model(owner: false) : nil
        }
      }
    }

    @Test(arguments: workerCounts, [false, true])
    func linearizable(workers: Int, handOff: Bool) throws {
      let seed = stressSeed()
      var random = SplitMix64(seed: seed)
      try onWorkers(workers) {
        for round in 0..<scaled(400, least: 50) {
          let recorder = HistoryRecorder<Model.Op, Bool>()
          let mutex = FiberMutex(0, handOff: handOff)
          let dice = random.next()
          together(3) { actor in
            for step in 0..<2 {
              let bit = dice >> UInt64(actor * 8 + step)
              let start = recorder.call()
              var isHeld = false
              func hold(_ op: Model.Op) -> UInt64 {
                recorder.note(actor: actor, op, true, start: start)
                isHeld = true
                if bit & 4 != 0 { Fiber.yield() }
                return recorder.call()
              }
              if bit & 1 == 0 {
                let end = mutex.withLock { _ in hold(.lock) }
                recorder.note(actor: actor, .unlock, true, start: end)
              } else if let end = mutex.withLockIfAvailable({ _ in hold(.lockIfAvailable) }) {
                recorder.note(actor: actor, .unlock, true, start: end)
              }
              if !isHeld {
                recorder.note(actor: actor, .lockIfAvailable, false, start: start)
              }
            }
          }
          let history = recorder.history
          #expect(
            history.isLinearizable(from: Model()), "seed \(seed), round \(round)\n\(history)")
        }
      }
    }
  }
}
