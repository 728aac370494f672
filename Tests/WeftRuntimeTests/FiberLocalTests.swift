import CWeft
import Testing
import WeftContext

@testable import WeftRuntime

private let requestID = FiberLocal<String?>(nil)
private let depth = FiberLocal(0)

/// How many bindings are in force here.
private var chainLength: Int {
  // SAFETY: the scope of the code that calls, which keeps the chain.
  guard let locals = unsafe weft_current_scope().pointee.locals else { return 0 }
  var link: LocalBinding? = unsafe Unmanaged<LocalBinding>.fromOpaque(locals).takeUnretainedValue()
  var count = 0
  while let found = link {
    count += 1
    link = found.outer
  }
  return count
}

extension RuntimeTests {
  /// What code has for the time of a call.
  @Suite struct FiberLocalTests {
    @Test(arguments: workerCounts)
    func bindingsNest(workers: Int) throws {
      try onWorkers(workers) {
        #expect(requestID.value == nil && depth.value == 0)
        requestID.withValue("a") {
          expect(requestID.value == "a" && depth.value == 0)
          depth.withValue(1) {
            requestID.withValue("b") {
              expect(requestID.value == "b" && depth.value == 1)
              requestID.withValue(nil) { expect(requestID.value == nil && depth.value == 1) }
              expect(requestID.value == "b")
            }
            expect(requestID.value == "a" && depth.value == 1)
          }
          expect(depth.value == 0)
        }
        expectNoScope()
      }
    }

    @Test(arguments: workerCounts)
    func errorsPassThrough(workers: Int) throws {
      try onWorkers(workers) {
        do throws(Oops) {
          try depth.withValue(5) { () throws(Oops) in throw Oops(number: depth.value) }
        } catch {
          #expect(error.number == 5)
        }
        expectNoScope()
        // As what it was put in, however odd.
        let odd = FiberLocal<Int??>(.some(nil))
        #expect(odd.value == .some(nil))
        odd.withValue(nil) { expect(odd.value == nil) }
        odd.withValue(.some(nil)) { expect(odd.value == .some(nil)) }
      }
    }

    // MARK: - Inheritance

    @Test(arguments: workerCounts)
    func childrenInherit(workers: Int) throws {
      try onWorkers(workers) {
        let placements: [Placement] = [.automatic, .here, .worker(workers - 1)]
        try requestID.withValue("a") {
          for placement in placements {
            let fiber = Fiber(name: "named", placement: placement) {
              Fiber.yield()
              expect(requestID.value == "a" && Fiber.current?.name == "named")
              // Its own, which the parent does not see.
              return requestID.withValue("c") { Fiber { requestID.value }.join() }
            }
            #expect(fiber.join() == "c")
            #expect(requestID.value == "a")
          }
          try withFiberGroup(of: Void.self) { outer in
            depth.withValue(1) { outer.spawn { try Self.nested(1) } }
            outer.spawn { expect(depth.value == 0) }
          }
          if workers > 1 { Fiber(placement: .exclusive) { expect(requestID.value == "a") }.join() }
        }
        // One that is made before or after has nothing, and no memory for it.
        let fiber = Fiber { expectNoScope() }
        expect(fiber.cell.extras == nil)
        fiber.join()
      }
    }

    /// In groups within groups.
    private static func nested(_ level: Int) throws {
      expect(depth.value == level && requestID.value == "a")
      if level == 5 { return }
      try withFiberGroup(of: Void.self) { group in
        try depth.withValue(level + 1) {
          for _ in 0..<2 { group.spawn { try nested(level + 1) } }
          _ = try group.next()
        }
      }
      expect(depth.value == level)
    }

    @Test(arguments: workerCounts)
    func whatAFiberInheritedOutlivesTheBinding(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Counter()
        let fiber = depth.withValue(3) {
          Fiber {
            waitUntil { gate.value == 1 }
            return depth.value
          }
        }
        #expect(depth.value == 0)
        gate.add()
        #expect(fiber.join() == 3)
      }
    }

    @Test func onPlainThreads() throws {
      let ran = Counter()
      onThread {
        expect(requestID.value == nil)
        requestID.withValue("t") {
          expect(requestID.value == "t")
          // Of another thread, nothing; of fibers that are started here, what this one has.
          onThread { expect(requestID.value == nil) }
          expect(Fiber { requestID.value }.join() == "t")
          let sum = try? withFiberGroup(of: Int.self) { group in
            depth.withValue(2) { for _ in 0..<3 { group.spawn { depth.value } } }
            var sum = 0
            while let value = try group.next() { sum += value }
            return sum
          }
          expect(sum == 6)
          // A run is a call like others.
          Scheduler.run(.init(workers: 2)) {
            expect(requestID.value == "t")
            expect(Fiber { requestID.value }.join() == "t")
            requestID.withValue("u") { onThread { expect(requestID.value == nil) } }
          }
          expect(requestID.value == "t")
          ran.add()
        }
        expectNoScope()
      }
      #expect(ran.value == 1)
    }

    /// The call is on another thread, and not the fiber's code.
    @Test(arguments: workerCounts)
    func blockingCallsHaveNone(workers: Int) throws {
      try onWorkers(workers) {
        try requestID.withValue("a") {
          let inside = try blocking { requestID.value }
          #expect(inside == nil && requestID.value == "a")
        }
      }
    }

    // MARK: - Switches

    @Test(arguments: workerCounts)
    func theyMoveWithTheirFiber(workers: Int) throws {
      try onWorkers(workers) {
        let canHop = schedulerCore().migratesStarted
        let fibers = (0..<16).map { i in
          Fiber {
            for round in 0..<scaled(300, least: 20) {
              try depth.withValue(i) {
                if canHop { try hop(to: (i + round) % workers) } else { Fiber.yield() }
                expect(depth.value == i && requestID.value == nil)
                try requestID.withValue("\(i)") {
                  Fiber.yield()
                  if canHop { try hop(to: (i + round + 1) % workers) }
                  let seen = Fiber { "\(depth.value)" == requestID.value }
                  expect(seen.join() && requestID.value == "\(i)")
                }
              }
            }
            expectNoScope()
          }
        }
        for fiber in fibers { try fiber.join() }
      }
    }

    @Test(arguments: workerCounts)
    func coroutinesHaveThoseOfTheirResumer(workers: Int) throws {
      try onWorkers(workers) {
        let held = Shared(
          Generator<Int> { y in
            while true {
              try depth.withValue(depth.value + 100) { try Fiber.sleep(for: .zero) }
              try y.yield(depth.value)
            }
          })
        for i in 0..<10 {
          let fiber = depth.withValue(i) { Fiber { held.content.next() } }
          #expect(fiber.join() == i)
        }
        depth.withValue(77) { expect(held.content.next() == 77) }
        #expect(held.content.next() == 0)
      }
    }

    // MARK: - Memory

    @Test(arguments: workerCounts)
    func whatIsBoundIsReleasedWithTheLastFiber(workers: Int) throws {
      let alive = Counter()
      let local = FiberLocal<Tracked?>(nil)
      try onWorkers(workers) {
        let gate = Counter()
        let fibers = local.withValue(Tracked(alive, 5)) {
          (0..<6).map { i in
            Fiber(name: i % 2 == 0 ? "named" : nil) {
              if i == 0 { waitUntil { gate.value == 1 } }
              return local.value?.number
            }
          }
        }
        for fiber in fibers[1...] { #expect(fiber.join() == 5) }
        #expect(alive.value == 1)
        gate.add()
        #expect(fibers[0].join() == 5)
        // Not with the handles.
        #expect(alive.value == 0)
        withExtendedLifetime(fibers) {}

        // By every way out.
        for round in 0..<scaled(200, least: 20) {
          let fiber = local.withValue(Tracked(alive)) {
            Fiber {
              try local.withValue(Tracked(alive)) {
                switch round % 4 {
                case 0: throw Oops()
                case 1: try Fiber.park()
                case 2: try withFiberGroup(of: Void.self) { $0.spawn { try Fiber.park() } }
                default: Fiber { expect(local.value != nil) }.join()
                }
              }
            }
          }
          fiber.cancel()
          _ = try? fiber.join()
          #expect(alive.value == 0)
        }
      }
    }

    /// A value's end may do anything that a fiber may do.
    @Test(arguments: workerCounts)
    func aValueMayWaitWhenItIsReleased(workers: Int) throws {
      final class Waits: Sendable {
        let ended: Counter
        init(_ ended: Counter) { self.ended = ended }
        deinit {
          Fiber.yield()
          Fiber { Fiber.yield() }.join()
          ended.add()
        }
      }
      let local = FiberLocal<Waits?>(nil)
      let ended = Counter()
      try onWorkers(workers) {
        for _ in 0..<20 {
          let fiber = local.withValue(Waits(ended)) { Fiber { Fiber.yield() } }
          fiber.join()
        }
        #expect(ended.value == 20)
      }
    }

    /// Each starts the next one inside its own binding: no chain of those before.
    @Test(arguments: workerCounts)
    func aRelayDoesNotGrow(workers: Int) throws {
      @Sendable func step(_ left: Int, _ longest: Counter) {
        depth.withValue(left) {
          requestID.withValue("\(left)") {
            if chainLength > 2 { longest.add() }
            expect(depth.value == left && requestID.value == "\(left)")
            if left > 0 { Fiber { step(left - 1, longest) } }
          }
        }
        if left == 0 { longest.add(1_000_000) }
      }
      let longest = Counter()
      try onWorkers(workers) {
        step(scaled(20_000), longest)
        waitUntil { longest.value >= 1_000_000 }
      }
      #expect(longest.value == 1_000_000)
    }

    /// A local that is gone is not mistaken for one that has its address.
    @Test(arguments: workerCounts)
    func localsThatComeAndGo(workers: Int) throws {
      try onWorkers(workers) {
        let gate = Counter()
        var fibers: [Fiber<Void, Never>] = []
        for i in 0..<50 {
          let local = FiberLocal(i)
          let fiber = local.withValue(-1) {
            Fiber {
              waitUntil { gate.value == 1 }
              for j in 0..<5 { expect(FiberLocal("\(j)").value == "\(j)") }
            }
          }
          fibers.append(fiber)
        }
        gate.add()
        for fiber in fibers { fiber.join() }
        let many = (0..<40).map { FiberLocal($0) }
        func bind(_ index: Int) {
          if index == many.count {
            expect(chainLength == many.count)
            for (i, local) in many.enumerated() { expect(local.value == -i) }
            many[0].withValue(9) {
              expect(many[0].value == 9 && many[1].value == -1 && chainLength == many.count)
            }
            return
          }
          many[index].withValue(-index) { bind(index + 1) }
        }
        bind(0)
        expectNoScope()
      }
    }
  }
}
