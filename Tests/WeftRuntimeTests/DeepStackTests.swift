import CWeft
import Testing
import WeftContext

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// How a process ends that a fault ends: by the signal, unless a sanitizer reports it and exits.
private let faultEnd: ExitTest.Condition = sanitizer == nil ? .signal(SIGSEGV) : .failure

@inline(never) @_optimize(none)
private func depth(_ n: Int) -> Int { n == 0 ? 0 : 1 + depth(n - 1) }

/// Recursion without end, in frames of some kilobytes: thread sanitizer counts calls.
@inline(never) @_optimize(none)
private func endless(_ n: Int) -> Int {
  var frame = InlineArray<512, Int>(repeating: n)
  frame[n & 511] = n < 0 ? 0 : endless(n &+ 1)
  return frame[0] &+ frame[511]
}

/// In frames of 60 KB.
@inline(never) @_optimize(none)
private func wide(_ n: Int) -> Int {
  var frame = InlineArray<7_680, Int>(repeating: n)
  frame[n & 7_679] = n < 0 ? 0 : wide(n &+ 1)
  return frame[0] &+ frame[7_679]
}

/// Waits at the bottom of a recursion, then comes back up through it.
@inline(never) @_optimize(none)
private func dive(_ n: Int, _ bottom: () throws -> Void) rethrows -> Int {
  if n == 0 {
    try bottom()
    return 0
  }
  return try 1 + dive(n - 1, bottom)
}

extension RuntimeTests {
  /// Deep recursion in fibers, on their own stacks and on larger ones; and its end.
  @Suite struct DeepStackTests {
    @Test(arguments: workerCounts)
    func largeStacksInFibers(workers: Int) throws {
      let deep = scaled(100_000)
      try onWorkers(workers) {
        let fibers = (0..<8).map { i in
          Fiber { () throws -> Int in
            try withLargeStack(.mebibytes(64)) {
              try dive(deep) {
                Fiber.yield()
                if schedulerCore().migratesStarted { try hop(to: i % workers) }
                try Fiber.sleep(for: .microseconds(50))
                // One inside the other.
                expect(withLargeStack(.mebibytes(64)) { depth(deep) } == deep)
              }
            }
          }
        }
        for fiber in fibers {
          let reached = try fiber.join()
          #expect(reached == deep)
        }
      }
    }

    @Test(arguments: workerCounts)
    func errorsLeaveALargeStack(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let fibers = (0..<8).map { i in
          Fiber {
            expectError(Oops(number: i)) {
              try withLargeStack(.mebibytes(1)) {
                let kept = Tracked(alive, i)
                try Fiber.sleep(for: .microseconds(20))
                throw Oops(number: kept.number)
              }
            }
            expectCancellation {
              try withLargeStack(.mebibytes(1)) {
                Fiber.current?.cancel()
                try Fiber.park()
              }
            }
          }
        }
        for fiber in fibers { fiber.join() }
      }
      #expect(alive.value == 0)
    }

    @Test(arguments: workerCounts)
    func sizesOfFibers(workers: Int) throws {
      try onWorkers(workers) {
        let deep = scaled(50_000)
        let fibers = [16, 64, 192, 1_024, 65_536].map { kibibytes in
          Fiber(stackSize: .kibibytes(kibibytes)) {
            Fiber.yield()
            return kibibytes < 65_536 ? deep : depth(deep)
          }
        }
        for fiber in fibers { #expect(fiber.join() == deep) }
      }
    }

    // Situations 32 to 36: an overflow without a word, a handler on the same stack, every fault
    // called an overflow.
    @Test(arguments: [1, 4])
    func anOverflowNamesTheFiber(workers: Int) async {
      let result = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) { [workers] in
        try onWorkers(workers) {
          let name = "parser of " + String(workers)
          // Its neighbours go on until the end.
          for _ in 0..<8 { Fiber { while true { try Fiber.sleep(for: .milliseconds(1)) } } }
          try Fiber(name: name, placement: .worker(workers - 1), stackSize: .kibibytes(64)) {
            try Fiber.sleep(for: .milliseconds(2))
            _ = endless(0)
          }.join()
        }
      }
      let text = text(result)
      let named = "weft: stack overflow in \"parser of \(workers)\" (created at"
      #expect(text.contains(named), "\(text)")
      #expect(text.contains("WeftRuntimeTests/DeepStackTests.swift:"))
      #expect(text.contains("whose stack has 64 KiB"))
    }

    @Test func overflowsOfThoseWithoutAName() async {
      let fiber = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) {
        try onWorkers(2) { Fiber { _ = endless(0) }.join() }
      }
      #expect(text(fiber).contains("weft: stack overflow in \"fiber\" (created at"))
      #expect(text(fiber).contains("whose stack has 192 KiB"))
      let main = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) {
        try onWorkers(1) { _ = endless(0) }
      }
      #expect(text(main).contains("weft: stack overflow in \"main\" (created at"))
      let child = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) {
        try onWorkers(2) {
          try withFiberGroup(of: Void.self) { group in
            group.spawn(name: String(repeating: "é", count: 300)) { _ = endless(0) }
          }
        }
      }
      let long = String(repeating: "é", count: 128)
      #expect(text(child).contains("weft: stack overflow in \"\(long)\" (created at"))
    }

    // Situation 36 again: one big frame steps over the guard.
    @Test func aWideFrameDoesNotStepOverTheGuard() async {
      let result = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) {
        try onWorkers(2) {
          let parked = (0..<8).map { _ in Fiber { try Fiber.park() } }
          Fiber(name: "wide") { _ = wide(0) }.join()
          for fiber in parked { fiber.cancel() }
        }
      }
      #expect(text(result).contains("weft: stack overflow in \"wide\""))
    }

    /// The innermost stack is named, and what is no overflow is not called one.
    @Test func overflowsInsideAFiber() async {
      let large = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) {
        try onWorkers(2) {
          Fiber(name: "outer") { withLargeStack(.mebibytes(1)) { _ = endless(0) } }.join()
        }
      }
      #expect(text(large).contains("weft: stack overflow in \"withLargeStack\" (created at"))
      let generator = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) {
        try onWorkers(2) {
          Fiber(name: "outer") {
            let g = Generator<Int>(name: "numbers") { y in
              try Fiber.sleep(for: .milliseconds(1))
              try y.yield(endless(0))
            }
            _ = g.next()
          }.join()
        }
      }
      #expect(text(generator).contains("weft: stack overflow in \"numbers\" (created at"))
      let fault = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) {
        try onWorkers(2) {
          Fiber {
            // SAFETY: it is the point of the test that this faults.
            unsafe UnsafeMutablePointer<Int>(bitPattern: 8)!.pointee = 1
          }.join()
        }
      }
      #expect(!text(fault).contains("weft: stack overflow"))
    }
  }
}
