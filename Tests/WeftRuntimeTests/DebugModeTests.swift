import CWeft
import Testing
import Weft

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// In an exit test: runs a function as a program that was started with this `WEFT_DEBUG`.
private func asProgram(modes: String, _ main: @escaping @Sendable () -> Int32) {
  // SAFETY: no other thread of this process reads its environment now.
  unsafe setenv("WEFT_DEBUG", modes, 1)
  asProgram(main)
}

/// A number for an exit status that says which check failed: 0 if none did.
private func firstFailure(_ checks: Bool...) -> Int32 {
  checks.firstIndex(of: false).map { Int32($0) + 1 } ?? 0
}

/// The worker that runs the caller.
@inline(never)
private func workerIndex() -> Int {
  // SAFETY: called by a fiber.
  unsafe Int(weft_worker_current().unsafelyUnwrapped.pointee.index)
}

/// The record of the caller.
@inline(never)
private func ownRecord() -> UInt {
  // SAFETY: called by a fiber.
  unsafe UInt(bitPattern: weft_worker_current().unsafelyUnwrapped.pointee.current)
}

private func record(_ address: UInt) -> Record {
  // SAFETY: what ownRecord gave, of a fiber that lives.
  unsafe Record(bitPattern: address).unsafelyUnwrapped
}

/// The lowest word of the caller's stack.
@inline(never)
private func lowestWord() -> UnsafeMutablePointer<UInt64> {
  // SAFETY: called by a fiber, which has a stack.
  unsafe UnsafeMutableRawPointer(
    record(ownRecord()).pointee.cold.pointee.stack.low.unsafelyUnwrapped
  )
  .assumingMemoryBound(to: UInt64.self)
}

/// Puts a value on the caller's stack and says where.
@inline(never)
private func leaveOnStack(_ value: UInt64) -> UInt {
  var local = value
  // SAFETY: the address is read later on purpose: of a stack whose mapping stays.
  return unsafe withUnsafeMutablePointer(to: &local) { UInt(bitPattern: $0) }
}

private func word(at address: UInt) -> UInt64 {
  // SAFETY: a word of a stack that was given back, and stays mapped.
  unsafe UnsafePointer<UInt64>(bitPattern: address).unsafelyUnwrapped.pointee
}

extension RuntimeTests {
  /// Each mode of `WEFT_DEBUG` does what it says, and programs give the same answers.
  @Suite(.timeLimit(.minutes(2))) struct DebugModeTests {
    // MARK: The variable

    @Test func unknownWordsAreReportedOnce() async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) {
        asProgram(modes: " tiny,nonsense,, migrate,canaryy") {
          for _ in 0..<2 { Scheduler.run(.init(workers: 1)) { Fiber {}.join() } }
          return Environment.debugModes == [.tiny, .migrate] ? 0 : 1
        }
      }
      let reports = text(result).split(separator: "\n").filter { $0.hasPrefix("weft:") }
      #expect(
        reports == [
          "weft: WEFT_DEBUG has unknown modes: nonsense canaryy",
          "weft: There are: migrate, steal, tiny, queue, canary, poison, words.",
        ])
    }

    @Test func withoutTheVariableThereIsNone() async {
      await #expect(processExitsWith: .success) {
        asProgram(modes: "") {
          let core = SchedulerCore(configuration: .init(workers: 2), hasVisitor: false)
          // SAFETY: the core's own pool and worker.
          return unsafe firstFailure(
            core.debug.isEmpty, core.words.pool.pointee.moves == nil,
            core.workers[0].pointee.direct_most == 32, core.words.pool.pointee.timers_most == 64)
        }
      }
    }

    // MARK: migrate

    /// The workers on which a fiber was that yields with nobody else to run, one that yields among
    /// others, one that is parked and unparked, one that sleeps, and one that is pinned.
    ///
    /// - Parameter patience: how long one that has been on one worker only goes on.
    private static func workersSeen(patience: Duration) -> [Set<Int>] {
      Scheduler.run(.init(workers: 2)) {
        // Its thread has begun.
        Fiber(placement: .worker(1)) {}.join()
        func seen(_ step: @escaping @Sendable () -> Void) -> Fiber<Set<Int>, Never> {
          Fiber {
            var seen: Set<Int> = [workerIndex()]
            let end = ContinuousClock.now + patience
            for round in 0... {
              step()
              seen.insert(workerIndex())
              if round >= 100 && (seen.count > 1 || ContinuousClock.now > end) { break }
            }
            return seen
          }
        }
        let lone = seen { Fiber.yield() }.join()
        let many = (0..<4).map { _ in seen { Fiber.yield() } }.map { $0.join() }
        let parked = seen {
          let own = Fiber.current
          Fiber { own?.unpark() }
          try? Fiber.park()
        }.join()
        let joins = seen { Fiber { Fiber.yield() }.join() }.join()
        let asleep = seen { try? Fiber.sleep(for: .microseconds(1)) }.join()
        let pinned = Fiber {
          Fiber.pinned {
            var seen: Set<Int> = []
            for _ in 0..<100 {
              Fiber.yield()
              seen.insert(workerIndex())
            }
            return seen
          }
        }.join()
        return [lone] + many + [parked, joins, asleep, pinned]
      }
    }

    @Test func migrateSendsFibersToOtherWorkers() async {
      let result = await #expect(
        processExitsWith: .success, observing: [\.standardErrorContent]
      ) {
        asProgram(modes: "migrate") {
          let seen = Self.workersSeen(patience: .seconds(5))
          writeToStandardError("workers seen: \(seen.map { $0.sorted() })\n")
          return 0
        }
      }
      let expected = Array(repeating: [0, 1], count: 8)
      let texts = [[0], [1]].map { pinned in "workers seen: \(expected + [pinned])\n" }
      #expect(texts.contains { text(result).contains($0) })
    }

    /// What the test above sees is the mode's doing.
    @Test func withoutMigrateALoneFiberStays() async {
      await #expect(processExitsWith: .success) {
        asProgram(modes: "") { Self.workersSeen(patience: .zero)[0].count == 1 ? 0 : 1 }
      }
    }

    // MARK: steal, tiny

    /// How many of `count` queued fibers a first look takes, not the last one of its search.
    private static func stolenAtOnce(of count: Int, last: Bool) -> UInt64 {
      let core = SchedulerCore(configuration: .init(workers: 2), hasVisitor: false)
      // SAFETY: no thread of this scheduler runs, so that this one may act for both workers. The
      // records never run, and keep themselves.
      for _ in 0..<count {
        unsafe pushLocal(
          makeCell(
            name: nil, site: weft_site(), stackBytes: 65_536, flags: 0, home: core.workers[0]),
          core.workers[0])
      }
      var looks = Array(repeating: Look(), count: 2)
      unsafe looks.withUnsafeMutableBufferPointer { looks in
        _ = unsafe core.steal(core.workers[1], looks, last: last)
      }
      return unsafe weft_word_load_relaxed(weft_worker_stolen(core.workers[1]))
    }

    @Test(.enabled(if: looksAtMemory)) func stealTakesAllAtOnce() async {
      await #expect(processExitsWith: .success) {
        asProgram(modes: "steal") {
          firstFailure(
            Self.stolenAtOnce(of: 1, last: false) == 1,
            Self.stolenAtOnce(of: 1000, last: false) == 1000)
        }
      }
      await #expect(processExitsWith: .success) {
        asProgram(modes: "") {
          firstFailure(
            Self.stolenAtOnce(of: 1, last: false) == 0,
            Self.stolenAtOnce(of: 10, last: false) == 0,
            Self.stolenAtOnce(of: 10, last: true) == 5,
            Self.stolenAtOnce(of: 1000, last: true) == 256)
        }
      }
    }

    @Test(.enabled(if: looksAtMemory)) func tinyCapacities() async {
      await #expect(processExitsWith: .success) {
        asProgram(modes: "tiny") {
          let cached = Scheduler.run(.init(workers: 1)) {
            // All have a stack at the same time, and give them back here.
            let fibers = (0..<20).map { _ in Fiber { Fiber.yield() } }
            fibers.forEach { $0.join() }
            return weft_stack_cached()
          }
          let fired = Scheduler.run(.init(workers: 1)) {
            let wakes = Counter()
            let sleepers = (0..<50).map { _ in
              Fiber {
                try? Fiber.sleep(for: .milliseconds(1))
                wakes.add()
              }
            }
            sleepers.forEach { $0.join() }
            return wakes.value
          }
          let core = SchedulerCore(configuration: .init(workers: 2), hasVisitor: false)
          // SAFETY: the core's own worker and pool.
          return unsafe firstFailure(
            cached <= 2, fired == 50, Self.stolenAtOnce(of: 10, last: true) == 1,
            core.workers[0].pointee.direct_most == 1, core.words.pool.pointee.timers_most == 1)
        }
      }
    }

    // MARK: queue

    /// In which order two children run, of which the second is joined first, and their joiner.
    private static func order() -> [String] {
      let order = Box<[String]>([])
      Scheduler.run(.init(workers: 1)) {
        Fiber {
          let first = Fiber { order.change { $0.append("first") } }
          let second = Fiber { order.change { $0.append("second") } }
          let third = Fiber { order.change { $0.append("third") } }
          second.join()
          order.change { $0.append("joiner") }
          first.join()
          third.join()
        }.join()
      }
      return order.value
    }

    @Test func queueLetsNobodyPass() async {
      await #expect(processExitsWith: .success) {
        asProgram(modes: "queue") {
          Self.order() == ["first", "second", "third", "joiner"] ? 0 : 1
        }
      }
      await #expect(processExitsWith: .success) {
        asProgram(modes: "") { Self.order() == ["second", "joiner", "first", "third"] ? 0 : 1 }
      }
    }

    // MARK: canary

    @Test func aBrokenCanaryIsFoundAtTheNextSwitch() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        asProgram(modes: "canary") {
          Scheduler.run(.init(workers: 1)) {
            Fiber(name: "digger") {
              Fiber.yield()
              // SAFETY: the stack's own lowest word, in which there is nothing but the canary.
              unsafe lowestWord().pointee += 1
              try? Fiber.sleep(for: .milliseconds(1))
              writeToStandardError("it went on\n")
            }.join()
          }
          return 0
        }
      }
      let errors = text(result)
      #expect(errors.contains("weft: the canary at the low end of a stack was overwritten: "))
      #expect(errors.contains(#""digger" (created at WeftRuntimeTests/DebugModeTests.swift:"#))
      #expect(!errors.contains("it went on"))
    }

    @Test func aBrokenCanaryIsFoundWhenTheStackIsGivenBack() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        asProgram(modes: "canary") {
          Scheduler.run(.init(workers: 1)) {
            // SAFETY: as above.
            Fiber(name: "digger") { unsafe lowestWord().pointee += 1 }.join()
            writeToStandardError("it went on\n")
          }
          return 0
        }
      }
      let errors = text(result)
      #expect(errors.contains(#"overwritten: "digger" (created at"#))
      #expect(!errors.contains("it went on"))
    }

    @Test(.enabled(if: looksAtMemory)) func coroutinesHaveCanariesToo() async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) {
        asProgram(modes: "canary") {
          let generator = Generator<Int>(name: "mole") { y in
            try y.yield(1)
            // SAFETY: below this frame, down to the lowest word of a stack whose size is known, at
            // whose low end there is nothing but the canary.
            let here = leaveOnStack(0)
            let stride: UInt = 256 << 10
            let low = here & ~(stride - 1) + UInt(64 << 10)
            unsafe UnsafeMutablePointer<UInt64>(bitPattern: low).unsafelyUnwrapped.pointee += 1
            try y.yield(2)
          }
          let iterator = generator.makeIterator()
          let first = iterator.next()
          writeToStandardError("first: \(String(describing: first))\n")
          _ = iterator.next()
          writeToStandardError("it went on\n")
          return 0
        }
      }
      let errors = text(result)
      #expect(errors.contains("first: Optional(1)"))
      #expect(errors.contains(#"overwritten: "mole" (created at"#))
      #expect(!errors.contains("it went on"))
    }

    // MARK: poison

    @Test(.enabled(if: looksAtMemory)) func stacksThatAreGivenBackAreFilled() async {
      await #expect(processExitsWith: .success) {
        asProgram(modes: "poison") {
          let pattern = UInt64(repeating: UInt8(WEFT_DEBUG_POISON_BYTE))
          let ofFiber = Scheduler.run(.init(workers: 1)) {
            let address = Fiber {
              let address = leaveOnStack(42)
              Fiber.yield()
              return address
            }.join()
            return word(at: address)
          }
          let address = Box<UInt>(0)
          do {
            let generator = Generator<Int> { y in
              address.value = leaveOnStack(42)
              try y.yield(1)
            }
            let iterator = generator.makeIterator()
            _ = iterator.next()
          }
          return firstFailure(ofFiber == pattern, word(at: address.value) == pattern)
        }
      }
    }

    // MARK: words

    @Test(arguments: [0, 3]) func changedWordsAreFound(index: Int) async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [index = index as Int] in
        asProgram(modes: "words") {
          Scheduler.run(.init(workers: 1)) {
            let address = Box<UInt>(0)
            let fiber = Fiber(name: "victim") {
              address.value = ownRecord()
              try? Fiber.park()
              writeToStandardError("it went on\n")
            }
            // SAFETY: the fiber is parked, and lives. Nobody follows what it finds in place of its
            // own word.
            waitUntil {
              unsafe address.value != 0
                && weft_word_load_acquire(weft_fiber_wait(record(address.value)))
                  & WaitBits.parked != 0
            }
            let wrong = unsafe UnsafeMutableRawPointer(bitPattern: 64)
            if index == 0 {
              unsafe record(address.value).pointee.cold.pointee.words.0 = wrong
            } else {
              unsafe record(address.value).pointee.cold.pointee.words.3 = wrong
            }
            unsafe record(address.value).pointee.flags |= UInt32(WEFT_FIBER_HAS_WORDS)
            fiber.unpark()
            fiber.join()
          }
          return 0
        }
      }
      let errors = text(result)
      let which = index == 0 ? "open accesses" : "task-locals"
      #expect(errors.contains("came back to other thread words than it had left with (\(which))"))
      #expect(errors.contains(#""victim" (created at WeftRuntimeTests/DebugModeTests.swift:"#))
      #expect(!errors.contains("it went on"))
    }

    // MARK: All at once

    @Test func aMixGivesTheRightAnswerInAllModes() async {
      await #expect(processExitsWith: .success) {
        asProgram(modes: "migrate,steal,tiny,queue,canary,poison,words") {
          Environment.debugModes.rawValue == 0x7F ? Mix.run() : 99
        }
      }
    }

    @Test(arguments: ["migrate", "steal", "tiny", "queue", "canary", "poison", "words"])
    func aMixGivesTheRightAnswer(mode: String) async {
      await #expect(processExitsWith: .success) { [mode = mode as String] in
        asProgram(modes: mode) { Environment.debugModes.isEmpty ? 99 : Mix.run() }
      }
    }
  }
}

extension UInt64 {
  fileprivate init(repeating byte: UInt8) { self = UInt64(byte) &* 0x0101_0101_0101_0101 }
}

/// A bit of everything, with answers that are known.
private enum Mix {
  static func run() -> Int32 {
    for workers in [1, 2, 4] {
      do {
        let found = try Scheduler.run(.init(workers: workers)) {
          [
            tree(10), try channels(), try selects(), locks(), timers(), try group(),
            try generators(),
          ]
        }
        let expected = [1 << 10, 4 * 5050, 200, 1000, 100, 4950, 8 * 45]
        writeToStandardError("\(workers) workers: \(found)\n")
        if found != expected { return Int32(workers) }
      } catch {
        writeToStandardError("\(workers) workers: \(error)\n")
        return 10 + Int32(workers)
      }
    }
    return 0
  }

  /// The leaves of a tree of fibers.
  static func tree(_ depth: Int) -> Int {
    if depth == 0 { return 1 }
    let left = Fiber { tree(depth - 1) }
    let right = Fiber { tree(depth - 1) }
    return left.join() + right.join()
  }

  /// Senders and receivers of a channel with little room, and of one with none.
  static func channels() throws -> Int {
    let near = Channel<Int>(capacity: 2)
    let far = Channel<Int>(capacity: 0)
    let senders = (0..<4).map { _ in Fiber { for i in 1...100 { try near.send(i) } } }
    let relays = (0..<3).map { _ in Fiber { for i in near { try far.send(i) } } }
    let sum = Fiber { far.reduce(0, +) }
    for sender in senders { try sender.join() }
    near.close()
    for relay in relays { try relay.join() }
    far.close()
    return sum.join()
  }

  /// What a select takes from two channels.
  static func selects() throws -> Int {
    let (a, b) = (Channel<Int>(capacity: 0), Channel<Int>(capacity: 1))
    Fiber { for _ in 0..<100 { try a.send(1) } }
    Fiber { for _ in 0..<100 { try b.send(1) } }
    var sum = 0
    while sum < 200 {
      try select {
        a.onReceive { sum += $0 ?? 0 }
        b.onReceive { sum += $0 ?? 0 }
        after(.seconds(30)) { sum = .max }
      }
    }
    return sum
  }

  /// A count under a lock, by fibers that yield between.
  static func locks() -> Int {
    let count = FiberMutex(0)
    let fibers = (0..<20).map { _ in
      Fiber {
        for _ in 0..<50 {
          count.withLock { $0 += 1 }
          Fiber.yield()
        }
      }
    }
    fibers.forEach { $0.join() }
    return count.withLock { $0 }
  }

  /// Sleepers, half of which are due at the same time.
  static func timers() -> Int {
    let start = ContinuousClock.now
    let fibers = (0..<100).map { i in
      Fiber {
        let time = Duration.milliseconds(i % 2 == 0 ? 2 : i % 7)
        try? Fiber.sleep(until: start + time)
        return ContinuousClock.now >= start + time ? 1 : 0
      }
    }
    return fibers.reduce(0) { $0 + $1.join() }
  }

  /// Children of a group that park.
  static func group() throws -> Int {
    try withFiberGroup(of: Int.self) { group in
      for i in 0..<100 {
        group.spawn {
          try Fiber.sleep(for: .microseconds(i % 3))
          return i
        }
      }
      var sum = 0
      while let value = try group.next() { sum += value }
      return sum
    }
  }

  /// Generators that fibers take along when they move.
  static func generators() throws -> Int {
    let fibers = (0..<8).map { _ in
      Fiber {
        var sum = 0
        for value in Generator<Int>({ y in for i in 0..<10 { try y.yield(i) } }) {
          sum += value
          Fiber.yield()
        }
        return sum
      }
    }
    return fibers.reduce(0) { $0 + $1.join() }
  }
}
