import CWeft
import Testing
import WeftContext

@testable import WeftRuntime

extension RuntimeTests {
  /// Bodies of coroutines and generators that wait as the fibers that resume them.
  @Suite struct CoroutinesInFibersTests {
    @Test(arguments: workerCounts)
    func aGeneratorsBodyMayWait(workers: Int) throws {
      let count = scaled(200, least: 20)
      try onWorkers(workers) {
        let fibers = (0..<8).map { i in
          Fiber { () throws -> Int in
            let own = Fiber.current
            let numbers = Generator<Int> { y in
              for n in 0..<count {
                expect(Fiber.current == own)
                switch n % 5 {
                case 0: Fiber.yield()
                case 1: try Fiber.sleep(for: .microseconds(n % 20))
                case 2:
                  own?.unpark()
                  try Fiber.park()
                case 3: Fiber { Fiber.yield() }.join()
                default:
                  if schedulerCore().migratesStarted { try hop(to: (n + i) % workers) }
                }
                try y.yield(n)
              }
            }
            var sum = 0
            for number in numbers {
              sum += number
              if number % 7 == 0 { Fiber.yield() }
            }
            return sum
          }
        }
        for fiber in fibers {
          let sum = try fiber.join()
          #expect(sum == count * (count - 1) / 2)
        }
      }
    }

    /// One generator, whose elements several fibers take in turn: the body is the taker's.
    @Test(arguments: workerCounts)
    func theBodyRunsAsWhoeverResumesIt(workers: Int) throws {
      try onWorkers(workers) {
        let seen = Shared(
          Generator<FiberHandle?> { y in
            while true {
              Fiber.yield()
              try Fiber.sleep(for: .microseconds(5))
              try y.yield(Fiber.current)
            }
          })
        for i in 0..<20 {
          let taker = Fiber(placement: i % 2 == 0 ? .here : .worker(i % workers)) {
            seen.content.next() == Fiber.current
          }
          let isOwn = taker.join()
          #expect(isOwn)
        }
        let last = seen.content.next()
        #expect(last == Fiber.current)
      }
    }

    @Test(arguments: workerCounts)
    func aCoroutineThatParksInItsBody(workers: Int) throws {
      try onWorkers(workers) {
        let fibers = (0..<8).map { i in
          Fiber { () throws -> Int in
            let own = Fiber.current
            var c = try Coroutine<Int, Int, Int> { y, first in
              var input = first
              for round in 0..<50 {
                Fiber(placement: .worker((round + i) % workers)) { own?.unpark() }
                try Fiber.park()
                input = try y.yield(input + 1)
              }
              return input
            }
            var value = 0
            while case .yielded(let next) = try c.resume(value) { value = next }
            return value
          }
        }
        for fiber in fibers {
          let value = try fiber.join()
          #expect(value == 50)
        }
      }
    }

    // Situation 47: resuming one that runs crashed. Its body waits, and so somebody else may try.
    @Test(arguments: workerCounts)
    func resumingOneWhoseBodyWaits(workers: Int) throws {
      try onWorkers(workers) {
        let held = Shared(
          try Coroutine<Void, Int, Void> { y, _ in
            try Fiber.park()
            try y.yield(1)
          })
        let started = Counter()
        let first = Fiber { () throws -> Int? in
          started.add()
          guard case .yielded(let value) = try held.content.resume() else { return nil }
          return value
        }
        waitUntil { started.value == 1 && first.isParked }
        expectError(CoroutineError.alreadyRunning) { _ = try held.content.resume() }
        first.unpark()
        let value = try first.join()
        #expect(value == 1)
        guard case .returned = try held.content.resume() else {
          Issue.record("it yielded again")
          return
        }
        expectError(CoroutineError.finished) { _ = try held.content.resume() }
      }
    }

    @Test(arguments: workerCounts)
    func aCancelledWaitInTheBody(workers: Int) throws {
      try onWorkers(workers) {
        // A generator ends, a throwing one and a coroutine throw.
        let plain = Fiber { () -> [Int] in
          Array(
            Generator<Int> { y in
              try y.yield(1)
              try Fiber.park()
              try y.yield(2)
            })
        }
        let throwing = Fiber { () throws -> Int in
          let g = ThrowingGenerator<Int> { y in
            try y.yield(1)
            try Fiber.sleep(for: .seconds(1_000))
          }
          _ = try g.next()
          _ = try g.next()
          return 0
        }
        let coroutine = Fiber { () throws -> Int in
          var c = try Coroutine<Void, Int, Int> { y, _ in
            try Fiber.park()
            return 1
          }
          _ = try c.resume()
          return 0
        }
        waitUntil { plain.isParked && throwing.isParked && coroutine.isParked }
        plain.cancel()
        throwing.cancel()
        coroutine.cancel()
        #expect(plain.join() == [1])
        expectCancellation { _ = try throwing.join() }
        expectCancellation { _ = try coroutine.join() }
      }
    }

    @Test(arguments: workerCounts)
    func aDroppedBodyMayWaitWhileItUnwinds(workers: Int) throws {
      let alive = Counter()
      let unwound = Counter()
      try onWorkers(workers) {
        let fibers = (0..<12).map { i in
          Fiber {
            let own = Fiber.current
            let g = Generator<Int> { y in
              let kept = Tracked(alive, i)
              defer {
                Fiber.yield()
                Fiber(placement: .worker(i % workers)) { own?.unpark() }
                expect(thrown { try Fiber.park() } == nil)
                unwound.add()
                expect(kept.number == i)
              }
              while true { try y.yield(kept.number) }
            }
            expect(g.next() == i)
          }
        }
        for fiber in fibers { fiber.join() }
      }
      #expect(unwound.value == 12)
      #expect(alive.value == 0)
    }

    /// A walk over a tree, in fibers that are stolen in the middle of it.
    @Test(arguments: workerCounts)
    func nestedGenerators(workers: Int) throws {
      func nested(_ depth: Int) -> Generator<Int> {
        Generator { y in
          if depth == 0 {
            Fiber.yield()
            try y.yield(1)
            return
          }
          for _ in 0..<2 { for leaf in nested(depth - 1) { try y.yield(leaf) } }
        }
      }
      try onWorkers(workers) {
        let fibers = (0..<6).map { _ in Fiber { nested(5).reduce(0, +) } }
        for fiber in fibers { #expect(fiber.join() == 32) }
      }
    }
  }
}

/// What fibers hand to each other.
// SAFETY: the tests use it one after the other, with a join in between.
final class Shared<Content: ~Copyable>: @unchecked Sendable {
  var content: Content
  init(_ content: consuming Content) { self.content = content }
}

extension Fiber {
  /// Whether it waits, and not in a join.
  var isParked: Bool {
    // SAFETY: the handle keeps the record alive.
    unsafe weft_word_load_acquire(weft_fiber_wait(cell.pointer)) & WaitBits.parked != 0
  }
}
