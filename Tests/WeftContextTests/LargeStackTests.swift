import Glibc
import Testing
import Weft
import WeftTestSupport

/// Recursion that no optimizer turns into a loop.
@inline(never)
func depth(_ n: Int) -> Int {
  n == 0 ? 0 : (depth(n - 1) ^ n ^ n) &+ blackHole(1)
}

/// The same object, for all that the optimizer knows another.
@inline(never) @_optimize(none)
func opaque<T: AnyObject>(_ object: T) -> T { object }

@inline(never) @_optimize(none)
func blackHole(_ n: Int) -> Int { n }

@Suite struct LargeStackTests {
  enum Local { @TaskLocal static var value = 0 }

  @Test func deepRecursionHasRoom() {
    // Thread sanitizer's shadow stack has room for 65,536 calls.
    let n = count(1_000_000, sanitized: 30_000)
    #expect(withLargeStack(.mebibytes(512)) { depth(n) } == n)
  }

  @Test func theBodysErrorKeepsItsType() {
    do throws(Oops) {
      try withLargeStack(.kibibytes(64)) { () throws(Oops) in throw Oops(code: 4) }
      #expect(Bool(false))
    } catch {
      #expect(error.code == 4)
    }
  }

  @Test func itReturnsWhatTheBodyReturns() {
    let counter = LiveCounter()
    do {
      let list = withLargeStack(.mebibytes(1)) { (0..<10).map { _ in counter.make() } }
      #expect(list.count == 10 && counter.live == 10)
      withExtendedLifetime(list) {}
    }
    #expect(counter.live == 0)
    withLargeStack(.default) {}
  }

  @Test func itNests() {
    func nest(_ level: Int) -> [UInt] {
      var mark = level
      // SAFETY: only the address is looked at.
      let here = unsafe withUnsafePointer(to: &mark) { UInt(bitPattern: $0) }
      if level == 0 { return [here] }
      return withLargeStack(.kibibytes(64)) { nest(level - 1) } + [here]
    }
    // Each level on a stack of its own.
    #expect(Set(nest(20).map { $0 >> 16 }).count >= 20)
  }

  @Test func aCoroutineMayYieldFromIt() throws {
    let g = Generator<Int> { y in
      try withLargeStack(.mebibytes(4)) {
        try y.yield(depth(20_000))
        try withLargeStack(.mebibytes(8)) { try y.yield(depth(40_000)) }
        try y.yield(3)
      }
      try y.yield(4)
    }
    #expect(Array(g) == [20_000, 40_000, 3, 4])
  }

  @Test func aGeneratorDroppedInsideItUnwinds() {
    let counter = LiveCounter()
    do {
      let g = Generator<Int> { y in
        let outer = counter.make()
        try withLargeStack(.kibibytes(64)) {
          let inner = counter.make()
          try y.yield(1)
          withExtendedLifetime(inner) {}
        }
        withExtendedLifetime(outer) {}
      }
      _ = g.next()
      #expect(counter.live == 2)
    }
    #expect(counter.live == 0)
  }

  @Test func theCallersTaskLocalsAreSeen() {
    Local.$value.withValue(5) {
      #expect(withLargeStack(.default) { Local.value } == 5)
    }
    onNewThread {
      Local.$value.withValue(6) {
        #expect(withLargeStack(.default) { Local.value } == 6)
      }
    }
  }

  @Test func itWorksOnManyThreadsAtOnce() {
    onThreads(4) { index in
      for _ in 0..<50 {
        #expect(withLargeStack(.mebibytes(2)) { depth(1_000 + index) } == 1_000 + index)
      }
    }
  }

  @Test func stacksBeyondTheSlabsAreMadeAndUnmadeOnManyThreads() {
    // 128 MiB and more are mapped one by one.
    let rounds = count(300, sanitized: 20)
    onThreads(4) { index in
      for round in 0..<rounds {
        let size = StackSize.mebibytes(128 << ((round + index) % 3))
        #expect(withLargeStack(size) { depth(100) } == 100)
      }
    }
  }

  @Test(.disabled(if: sanitizer != nil, "its shadow needs address space of its own"))
  func theLargestSizeIsPossible() {
    #expect(withLargeStack(.mebibytes(64 << 10)) { depth(1_000) } == 1_000)
  }

  @Test func anImpossibleSizeStopsTheProcessByName() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      withLargeStack(.bytes(100)) {}
    }
    #expect(errorText(result).contains("a stack of 100 bytes was asked for; sizes from 16 KiB"))
  }

  @Test func anAccessThatIsOpenOutsideConflictsInside() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let held = opaque(Held(1))
      func modify(_ value: inout Int) { withLargeStack(.default) { opaque(held).value += 1 } }
      modify(&held.value)
    }
    #expect(errorText(result).contains("imultaneous accesses"))
  }
}
