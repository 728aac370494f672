import Glibc
import Testing
import Weft
import WeftTestSupport

@Suite struct DepthTests {
  /// A coroutine that resumes one that resumes one ...; each yields what it gets, plus one.
  private static func nest(_ level: Int, _ counter: LiveCounter) throws -> Coroutine<Int, Int, Int>
  {
    try Coroutine { y, first in
      let local = counter.make()
      defer { withExtendedLifetime(local) {} }
      if level == 1 { return try y.yield(first + 1) + 1 }
      var inner = try nest(level - 1, counter)
      var input = first
      while true {
        switch try inner.resume(input) {
        case .yielded(let value): input = try y.yield(value + 1)
        case .returned(let value): return value + 1
        }
      }
    }
  }

  @Test func aCoroutineResumesOthersToDepth10000() throws {
    let levels = count(10_000, sanitized: 1_000)
    let counter = LiveCounter()
    var c = try Self.nest(levels, counter)
    #expect(try c.resume(0).yielded == levels)
    #expect(counter.live == levels)
    #expect(try c.resume(7).returned == levels + 7)
    #expect(counter.live == 0)
  }

  @Test func atDepth10000ADropUnwindsThemAll() throws {
    let levels = count(10_000, sanitized: 1_000)
    let counter = LiveCounter()
    var c = try Self.nest(levels, counter)
    #expect(try c.resume(0).yielded == levels)
    #expect(counter.live == levels)
    c.cancel()
    #expect(counter.live == 0)
  }

  @Test func anErrorCrosses10000Levels() throws {
    let levels = count(10_000, sanitized: 1_000)
    func nest(_ level: Int) -> ThrowingGenerator<Int> {
      ThrowingGenerator { y in
        if level == 1 { throw Oops(code: 1) }
        while let value = try nest(level - 1).next() { try y.yield(value) }
      }
    }
    #expect(throws: Oops(code: 1)) { try nest(levels).next() }
  }

  @Test(
    .disabled(if: sanitizer != nil || !isRelease, "a matter of minutes there"),
    .disabled(if: availableBytes() < 14 << 30, "needs 8 GiB of memory to spare"))
  func aMillionSuspendedGenerators() async {
    await #expect(processExitsWith: .success) {
      guard RuntimeInfo.current.stackGuard == .madvise else {
        print("this kernel has no guards without a mapping: some 32,000 stacks are the limit")
        return
      }
      let n = 1_000_000
      var all: [Generator<Int>] = []
      all.reserveCapacity(n)
      for i in 0..<n {
        all.append(Generator { y in for j in 0... { try y.yield(i &+ j) } })
        if all[i].next() != i { Issue.record("generator \(i)") }
      }
      for (i, g) in all.enumerated() where g.next() != i + 1 { Issue.record("generator \(i)") }
      #expect(mappingCount() < 2_000)
      all = []
      #expect(StackPool.statistics.live == 0)
    }
  }
}
