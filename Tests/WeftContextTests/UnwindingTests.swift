import Testing
import Weft
import WeftTestSupport

/// Swift has no unwinding of its own: a suspended body is left by throwing at it (hazard 7).
@Suite struct UnwindingTests {
  @Test func defersAndDeinitsRunFromTheInsideOut() throws {
    final class Noting {
      let name: String
      let log: Held<[String]>
      init(_ name: String, _ log: Held<[String]>) { (self.name, self.log) = (name, log) }
      deinit { log.value.append("deinit \(name)") }
    }
    let log = Held<[String]>([])
    @inline(never) func inner(_ y: inout Generator<Int>.Yielder) throws {
      let object = Noting("inner", log)
      defer { log.value.append("defer inner") }
      try withExtendedLifetime(object) { try y.yield(1) }
      log.value.append("never")
    }
    do {
      let g = Generator<Int> { y in
        let object = Noting("outer", log)
        defer { log.value.append("defer outer") }
        try withExtendedLifetime(object) { try inner(&y) }
      }
      _ = g.next()
      #expect(log.value == [])
    }
    #expect(log.value == ["defer inner", "deinit inner", "defer outer", "deinit outer"])
  }

  @Test func cancelUnwindsNowAndIsIdempotent() throws {
    let counter = LiveCounter()
    var c = try Coroutine<Void, Counted, Void> { y, _ in
      let local = counter.make()
      while true {
        try y.yield(counter.make())
        withExtendedLifetime(local) {}
      }
    }
    _ = try c.resume()
    _ = try c.resume()
    #expect(counter.live == 1)
    c.cancel()
    #expect(counter.live == 0)
    #expect(c.isFinished == true)
    c.cancel()
    c.cancel()
    #expect(throws: CoroutineError.finished) { _ = try c.resume() }
  }

  @Test func aCoroutineThatNeverStartedReleasesItsClosure() throws {
    let counter = LiveCounter()
    func make() throws -> Coroutine<Int, Int, Int> {
      try { [object = counter.make()] in
        try Coroutine { y, first in
          try withExtendedLifetime(object) { try y.yield(first) }
        }
      }()
    }
    do {
      let c = try make()
      #expect(counter.live == 1)
      _ = consume c
    }
    #expect(counter.live == 0)
    var d = try make()
    #expect(counter.live == 1)
    d.cancel()
    #expect(counter.live == 0)
    #expect(d.isFinished == true)
  }

  @Test func whatTheBodyReturnsOrThrowsWhileItUnwindsIsReleased() throws {
    struct Loaded: Error { let object: Counted }
    let counter = LiveCounter()
    var returning = try Coroutine<Void, Int, Counted> { y, _ in
      do { try y.yield(1) } catch {}
      return counter.make()
    }
    _ = try returning.resume()
    returning.cancel()
    #expect(counter.live == 0)
    var throwing = try Coroutine<Void, Int, Counted> { y, _ in
      do { try y.yield(1) } catch { throw Loaded(object: counter.make()) }
      return counter.make()
    }
    _ = try throwing.resume()
    throwing.cancel()
    #expect(counter.live == 0)
    do {
      let g = Generator<Int> { y in
        do { try y.yield(1) } catch { throw Loaded(object: counter.make()) }
      }
      _ = g.next()
    }
    #expect(counter.live == 0)
  }

  @Test func aBodyThatYieldsAgainIsAskedAgain() throws {
    let counter = LiveCounter()
    let seen = Held(0)
    var c = try Coroutine<Void, Counted, Void> { y, _ in
      for _ in 0..<1_000 {
        do { try y.yield(counter.make()) } catch { seen.value += 1 }
      }
    }
    _ = try c.resume()
    c.cancel()
    #expect(seen.value == 1_000)
    #expect(counter.live == 0)
    seen.value = 0
    do {
      let g = Generator<Counted> { y in
        for _ in 0..<999 {
          do { try y.yield(counter.make()) } catch { seen.value += 1 }
        }
        try y.yield(counter.make())
      }
      _ = g.next()
    }
    #expect(seen.value == 999)
    #expect(counter.live == 0)
  }

  @Test func aBodyThatNeverEndsIsStoppedAndNamed() async {
    let coroutine = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      var c = try Coroutine<Void, Int, Void>(name: "stubborn") { y, _ in
        while true { do { try y.yield(1) } catch {} }
      }
      _ = try c.resume()
      c.cancel()
    }
    #expect(
      errorText(coroutine).contains(
        "\"stubborn\" (created at WeftContextTests/UnwindingTests.swift:"))
    #expect(errorText(coroutine).contains("1,000 times"))
    let generator = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let g = Generator<Int>(name: "mulish") { y in
        while true { do { try y.yield(1) } catch {} }
      }
      _ = g.next()
    }
    #expect(errorText(generator).contains("\"mulish\" (created at"))
  }

  @Test func cancelFromInsideStopsTheProcessAndIsNamed() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let held = Held<Coroutine<Void, Int, Void>?>(nil)
      held.value = try Coroutine(name: "suicidal") { y, _ in held.value?.cancel() }
      _ = try held.value?.resume()
    }
    #expect(errorText(result).contains("cancelled or dropped by its own body"))
    #expect(errorText(result).contains("\"suicidal\" (created at"))
  }

  @Test func dropFromInsideStopsTheProcess() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let held = Held<Coroutine<Void, Int, Void>?>(nil)
      held.value = try Coroutine { y, _ in held.value = nil }
      _ = try held.value?.resume()
    }
    #expect(errorText(result).contains("cancelled or dropped by its own body"))
  }

  @Test func aDeferMayUseOtherCoroutines() throws {
    let counter = LiveCounter()
    let sum = Held(0)
    do {
      let g = Generator<Int> { y in
        let local = counter.make()
        defer {
          withExtendedLifetime(local) {}
          sum.value = Generator<Int> { y in for i in 1...4 { try y.yield(i) } }.reduce(0, +)
        }
        try y.yield(1)
      }
      _ = g.next()
    }
    #expect(sum.value == 10)
    #expect(counter.live == 0)
  }

  @Test func nestedGeneratorsAreDroppedTogether() {
    let counter = LiveCounter()
    func nest(_ level: Int) -> Generator<Int> {
      Generator { y in
        let local = counter.make()
        if level == 0 {
          while true { try y.yield(0) }
        }
        for element in nest(level - 1) { try y.yield(element + 1) }
        withExtendedLifetime(local) {}
      }
    }
    do {
      let g = nest(100)
      #expect(g.next() == 100)
      #expect(g.next() == 100)
      #expect(counter.live == 101)
    }
    #expect(counter.live == 0)
  }

  @Test func aPendingElementIsReleasedWithItsGenerator() throws {
    // The body yields once more while it unwinds: nobody takes that element. The optimizer once
    // read the element that is thrown away here after that.
    let counter = LiveCounter()
    do {
      var c = try Coroutine<Void, Counted, Void> { y, _ in
        do { try y.yield(counter.make()) } catch { try y.yield(counter.make()) }
      }
      _ = try c.resume()
    }
    #expect(counter.live == 0)
    do {
      let g = ThrowingGenerator<Counted> { y in
        do { try y.yield(counter.make()) } catch { try y.yield(counter.make()) }
      }
      _ = try g.next()
    }
    #expect(counter.live == 0)
    do {
      let g = Generator<Counted> { y in
        do { try y.yield(counter.make()) } catch { try y.yield(counter.make()) }
      }
      _ = g.next()
    }
    #expect(counter.live == 0)
  }

  @Test func whatTheLastCallGaveIsReadBeforeTheDropOverwritesIt() throws {
    // Nothing uses the generator after its last next(), so that it may be dropped at once. Its body
    // yields once more as it unwinds, into the same slot.
    func first(_ counter: LiveCounter) -> [Counted] {
      let g = Generator<[Counted]> { y in
        do { try y.yield([counter.make()]) } catch { try y.yield([]) }
      }
      return g.next()!
    }
    func firstThrowing(_ counter: LiveCounter) throws -> [Counted] {
      let g = ThrowingGenerator<[Counted]> { y in
        do { try y.yield([counter.make()]) } catch { try y.yield([]) }
      }
      return try g.next()!
    }
    func firstOfCoroutine(_ counter: LiveCounter) throws -> [Counted] {
      var c = try Coroutine<Void, [Counted], Void> { y, _ in
        do { try y.yield([counter.make()]) } catch { try y.yield([]) }
      }
      return try c.resume().yielded!
    }
    for make in [first, firstThrowing, firstOfCoroutine] {
      let counter = LiveCounter()
      do {
        let list = try make(counter)
        #expect(list.count == 1)
        #expect(counter.live == 1)
        withExtendedLifetime(list) {}
      }
      #expect(counter.live == 0)
      do { _ = try make(counter) }
      #expect(counter.live == 0)
    }
  }

  @Test func aCaughtErrorMayBeHeldOverAYield() throws {
    // Situation: a catch that spans a switch freed another coroutine's exception.
    let counter = LiveCounter()
    struct Loaded: Error { let object: Counted }
    var coroutines: [Generator<Int>] = []
    for i in 0..<50 {
      coroutines.append(
        Generator { y in
          do { throw Loaded(object: counter.make()) } catch {
            try y.yield(i)
            do { throw Loaded(object: counter.make()) } catch { try y.yield(i + 1) }
            try y.yield((error as? Loaded) == nil ? -1 : i + 2)
          }
        })
    }
    for step in 0..<3 {
      for (i, g) in coroutines.enumerated() { #expect(g.next() == i + step) }
    }
    #expect(counter.live == 50)
    for g in coroutines.prefix(25) { #expect(g.next() == nil) }
    #expect(counter.live == 25)
    coroutines = []
    #expect(counter.live == 0)
  }

  @Test func errorsCrossManySwitches() throws {
    func nest(_ level: Int) -> ThrowingGenerator<Int> {
      ThrowingGenerator { y in
        if level == 0 {
          try y.yield(0)
          throw Oops(code: 1)
        }
        let inner = nest(level - 1)
        do {
          while let value = try inner.next() { try y.yield(value + 1) }
        } catch let oops as Oops {
          throw Oops(code: oops.code + 1)
        }
      }
    }
    let g = nest(50)
    #expect(try g.next() == 50)
    #expect(throws: Oops(code: 51)) { try g.next() }
    #expect(try g.next() == nil)
  }

  @Test func droppedUnderAnotherTaskLocalABodyMayYieldWhileItUnwinds() {
    // The check of open bindings must compare with who unwinds, not with the last who resumed.
    enum Local { @TaskLocal static var value = 0 }
    onNewThread {
      var g: Generator<Int>? = Generator { y in
        do { try y.yield(1) } catch { try y.yield(Local.value) }
      }
      #expect(g?.next() == 1)
      Local.$value.withValue(7) { g = nil }
      #expect(g == nil)
    }
  }
}
