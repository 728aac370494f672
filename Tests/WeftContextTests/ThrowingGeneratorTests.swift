import Testing
import Weft
import WeftTestSupport

@Suite struct ThrowingGeneratorTests {
  @Test func anErrorComesOutOnceAfterTheElements() throws {
    let g = ThrowingGenerator<Int> { y in
      try y.yield(1)
      try y.yield(2)
      throw Oops(code: 3)
    }
    #expect(try g.next() == 1)
    #expect(try g.next() == 2)
    #expect(throws: Oops(code: 3)) { try g.next() }
    for _ in 0..<3 { #expect(try g.next() == nil) }
  }

  @Test func withoutAnErrorItEndsWithNil() throws {
    let g = ThrowingGenerator<String> { y in try y.yield("a") }
    #expect(try g.next() == "a")
    #expect(try g.next() == nil)
    #expect(try g.next() == nil)
  }

  @Test func anErrorBeforeTheFirstElement() throws {
    let g = ThrowingGenerator<Int> { _ in throw Oops() }
    #expect(throws: Oops()) { try g.next() }
    #expect(try g.next() == nil)
  }

  @Test func itsOwnCancellationErrorComesOut() throws {
    let g = ThrowingGenerator<Int> { _ in throw CancellationError() }
    #expect(throws: CancellationError.self) { try g.next() }
    #expect(try g.next() == nil)
  }

  @Test func aStackThatCannotBeIsThrownAtEachTry() throws {
    let counter = LiveCounter()
    do {
      let g = { [object = counter.make()] in
        ThrowingGenerator<Int>(stackSize: .bytes(1)) { y in
          try withExtendedLifetime(object) { try y.yield(1) }
        }
      }()
      for _ in 0..<3 {
        let error = #expect(throws: StackError.self) { try g.next() }
        #expect(error?.code == .sizeOutOfRange)
      }
      #expect(counter.live == 1)
    }
    #expect(counter.live == 0)
  }

  @Test func errorsAreReleased() throws {
    struct Loaded: Error { let object: Counted }
    let counter = LiveCounter()
    let g = ThrowingGenerator<Int> { y in
      try y.yield(1)
      throw Loaded(object: counter.make())
    }
    _ = try g.next()
    #expect(throws: Loaded.self) { try g.next() }
    #expect(counter.live == 0)
  }

  @Test func theHelpersOfAGeneratorServeBoth() throws {
    func pair(_ y: inout Generator<Int>.Yielder) throws {
      try y.yield(1)
      try y(2)
    }
    let throwing = ThrowingGenerator<Int> { y in try pair(&y) }
    #expect(Array(Generator<Int> { y in try pair(&y) }) == [1, 2])
    #expect(try [throwing.next(), throwing.next(), throwing.next()] == [1, 2, nil])
  }

  @Test func droppedWhileSuspendedItUnwinds() throws {
    let counter = LiveCounter()
    do {
      let g = ThrowingGenerator<Counted> { y in
        let local = counter.make()
        try y.yield(counter.make())
        withExtendedLifetime(local) {}
      }
      _ = try g.next()
      #expect(counter.live == 1)
    }
    #expect(counter.live == 0)
  }
}
