import Glibc
import Testing
import Weft
import WeftTestSupport

/// Floating-point control is callee-saved by the ABI: a body that changes it must not change its
/// caller's, nor the other way round (situations: rounding and flush-to-zero seen by a neighbour,
/// the control word reloaded as garbage).
@Suite struct FloatingPointTests {
  // FE_TONEAREST and its kin, which the importer finds in two places.
  private static let nearest: Int32 = 0
  #if arch(x86_64)
    private static let upward: Int32 = 0x800
    private static let downward: Int32 = 0x400
  #else
    private static let upward: Int32 = 0x40_0000
    private static let downward: Int32 = 0x80_0000
  #endif

  /// A third, with a division that no optimizer does for us.
  @inline(never) @_optimize(none)
  private static func third() -> Double { 1.0 / blackHole(3.0) }

  @inline(never) @_optimize(none)
  private static func blackHole(_ value: Double) -> Double { value }

  /// The same on the x87 unit.
  @inline(never) @_optimize(none)
  private static func longThird() -> Double {
    #if arch(x86_64)
      let wide: Float80 = 1.0 / Float80(blackHole(3.0))
      return Double(wide)
    #else
      return third()
    #endif
  }

  @Test func roundingIsKeptForEachSide() throws {
    try onNewThread { () throws in
      let (ordinary, upper) = (Self.third(), Self.third().nextUp)
      var c = try Coroutine<Void, Double, Void> { y, _ in
        #expect(fegetround() == Self.nearest)
        fesetround(Self.upward)
        for _ in 0..<3 {
          try y.yield(Self.third())
          #expect(fegetround() == Self.upward)
        }
      }
      for _ in 0..<3 {
        #expect(try c.resume().yielded == upper)
        #expect(fegetround() == Self.nearest)
        #expect(Self.third() == ordinary)
        #expect(Self.longThird() == ordinary)
      }
      _ = try c.resume()
      #expect(fegetround() == Self.nearest)
    }
  }

  @Test func theCallersRoundingIsNotTheBodys() throws {
    onNewThread {
      let ordinary = Self.third()
      let g = Generator<Double> { y in while true { try y.yield(Self.third()) } }
      #expect(g.next() == ordinary)
      fesetround(Self.upward)
      #expect(g.next() == ordinary)
      #expect(fegetround() == Self.upward)
      #expect(Self.third() == ordinary.nextUp)
      fesetround(Self.nearest)
    }
  }

  @Test func aNewBodyStartsWithTheRoundingOfItsFirstResume() throws {
    try onNewThread { () throws in
      fesetround(Self.upward)
      var c = try Coroutine<Void, Int32, Int32> { y, _ in
        try y.yield(fegetround())
        return fegetround()
      }
      fesetround(Self.downward)
      #expect(try c.resume().yielded == Self.downward)
      fesetround(Self.nearest)
      #expect(try c.resume().returned == Self.downward)
      #expect(fegetround() == Self.nearest)
    }
  }

  @Test func itTravelsFromThreadToThread() throws {
    let held = try onNewThread { () throws in
      let c = try Coroutine<Void, Int32, Int32> { y, _ in
        fesetround(Self.upward)
        for _ in 0..<5 { try y.yield(fegetround()) }
        return fegetround()
      }
      return Held(c)
    }
    for _ in 0..<5 {
      try onNewThread { () throws in
        #expect(try held.value.resume().yielded == Self.upward)
        #expect(fegetround() == Self.nearest)
      }
    }
    try onNewThread { () throws in
      fesetround(Self.downward)
      #expect(try held.value.resume().returned == Self.upward)
      #expect(fegetround() == Self.downward)
    }
  }

  @Test func unwindingRunsWithTheBodysControlAndLeavesTheCallers() throws {
    let seen = Held<Int32>(-1)
    onNewThread {
      var g: Generator<Int>? = Generator { y in
        fesetround(Self.upward)
        defer { seen.value = fegetround() }
        try y.yield(1)
      }
      _ = g?.next()
      g = nil
      #expect(fegetround() == Self.nearest)
    }
    #expect(seen.value == Self.upward)
  }

  #if arch(x86_64)
    @Test func flushToZeroIsKeptForEachSide() throws {
      // Through the C library's environment: MXCSR is its last word. Bits 15 and 6.
      func setFlush(_ on: Bool) {
        var environment = fenv_t()
        // SAFETY: both calls fill or read a local.
        unsafe fegetenv(&environment)
        if on { environment.__mxcsr |= 0x8040 } else { environment.__mxcsr &= ~0x8040 }
        unsafe fesetenv(&environment)
      }
      onNewThread {
        let tiny = Self.blackHole(Double.leastNormalMagnitude)
        let g = Generator<Double> { y in
          setFlush(true)
          while true { try y.yield(Self.half(tiny)) }
        }
        for _ in 0..<3 {
          #expect(g.next() == 0)
          #expect(Self.half(tiny) > 0)
        }
      }
    }

    @inline(never) @_optimize(none)
    private static func half(_ value: Double) -> Double { value / blackHole(2) }

    @Test func bothControlWordsMakeTheRoundTrip() throws {
      // Situation: the x87 word came back as garbage.
      func words() -> [UInt32] {
        var environment = fenv_t()
        // SAFETY: fills a local.
        unsafe fegetenv(&environment)
        return [environment.__mxcsr & 0xFFC0, UInt32(environment.__control_word)]
      }
      onNewThread {
        let before = words()
        let rounds = count(1_000, sanitized: 100)
        let g = Generator<[UInt32]> { y in
          let own = words()
          for _ in 0..<rounds {
            try y.yield(words())
            #expect(words() == own)
          }
        }
        for _ in 0..<rounds {
          #expect(g.next() == before)
          #expect(words() == before)
        }
      }
    }

    @Test func extendedPrecisionValuesSurviveASwitch() throws {
      // The x87 register stack is empty at a switch, and values live over it are kept in memory.
      let g = Generator<Float80> { y in
        var sum: Float80 = 0
        for i in 1...100 {
          sum += 1 / Float80(i)
          try y.yield(sum)
        }
      }
      var sum: Float80 = 0
      for i in 1...100 {
        sum += 1 / Float80(i)
        #expect(g.next() == sum)
      }
    }
  #endif

  @Test func manyValuesInRegistersSurviveASwitch() throws {
    // Situation: wrong doubles under optimization, since the switch saved no vector registers.
    func work(_ seed: Double, _ pause: () throws -> Void) rethrows -> Double {
      var (a, b, c, d) = (seed, seed + 1, seed + 2, seed + 3)
      var (e, f, g, h) = (seed * 2, seed * 3, seed * 5, seed * 7)
      for i in 0..<100 {
        let x = Double(i)
        (a, b, c, d) = (b + x, c - a, d * 0.5 + a, a - x)
        (e, f, g, h) = (f * 0.5, g - e, h + x, e * 0.25)
        try pause()
      }
      return a + b + c + d + e + f + g + h
    }
    var generators: [Generator<Double>] = []
    for i in 0..<8 {
      generators.append(
        Generator { y in
          let result = try work(Double(i)) { try y.yield(.nan) }
          try y.yield(result)
        })
    }
    for _ in 0..<100 { for g in generators { #expect(g.next()?.isNaN == true) } }
    for (i, g) in generators.enumerated() { #expect(g.next() == work(Double(i)) {}) }
  }
}
