import Testing
import Weft
import WeftTestSupport

indirect enum Tree: Sendable {
  case leaf
  case node(Tree, Int, Tree)

  /// A balanced tree with the numbers of the range.
  init(_ range: Range<Int>) {
    guard !range.isEmpty else {
      self = .leaf
      return
    }
    let middle = range.lowerBound + range.count / 2
    self = .node(
      Tree(range.lowerBound..<middle), middle, Tree(middle + 1..<range.upperBound))
  }
}

@Suite struct GeneratorTests {
  @Test func anEndlessBodyGivesAsManyAsAreAskedFor() {
    let fib = Generator<Int> { y in
      var (a, b) = (0, 1)
      while true {
        try y.yield(a)
        (a, b) = (b, a + b)
      }
    }
    #expect(Array(fib.prefix(10)) == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
  }

  @Test func theBodyStartsAtTheFirstNext() {
    let started = Held(false)
    let g = Generator<Int> { y in
      started.value = true
      try y.yield(1)
    }
    #expect(!started.value)
    #expect(g.next() == 1)
    #expect(started.value)
  }

  @Test func afterTheEndNextKeepsReturningNil() {
    let g = Generator<Int> { y in try y.yield(1) }
    #expect(g.next() == 1)
    for _ in 0..<5 { #expect(g.next() == nil) }
  }

  @Test func anEmptyBodyIsAnEmptySequence() {
    #expect(Array(Generator<String> { _ in }) == [])
  }

  @Test func itIsSinglePass() {
    let g = Generator<Int> { y in for i in 0..<6 { try y.yield(i) } }
    for value in g where value == 2 { break }
    #expect(Array(g) == [3, 4, 5])
    #expect(Array(g) == [])
  }

  @Test func theYielderIsCallable() {
    let g = Generator<Int> { y in
      try y(1)
      try y(2)
    }
    #expect(Array(g) == [1, 2])
  }

  @Test func sequenceAlgorithmsWork() {
    func numbers() -> Generator<Int> { Generator { y in for i in 1...6 { try y.yield(i) } } }
    #expect(numbers().reduce(0, +) == 21)
    #expect(numbers().lazy.filter { $0.isMultiple(of: 2) }.map { $0 * $0 }.prefix(2).max() == 16)
    #expect(zip(numbers(), numbers().dropFirst()).map { $0 * $1 } == [2, 6, 12, 20, 30])
    let erased: any Sequence<Int> = numbers()
    #expect(erased.contains(3))
  }

  @Test func recursionWalksATree() {
    func walk(_ tree: Tree, _ y: inout Generator<Int>.Yielder) throws {
      guard case .node(let left, let value, let right) = tree else { return }
      try walk(left, &y)
      try y.yield(value)
      try walk(right, &y)
    }
    let tree = Tree(0..<2_000)
    #expect(Array(Generator<Int> { y in try walk(tree, &y) }) == Array(0..<2_000))
  }

  @Test func recursionThroughGeneratorsWalksATree() {
    // Each node has a generator of its own, whose body runs those of its children.
    func walk(_ tree: Tree) -> Generator<Int> {
      Generator { y in
        guard case .node(let left, let value, let right) = tree else { return }
        for element in walk(left) { try y.yield(element) }
        try y.yield(value)
        for element in walk(right) { try y.yield(element) }
      }
    }
    #expect(Array(walk(Tree(0..<500))) == Array(0..<500))
  }

  @Test func aGeneratorOfGenerators() {
    let g = Generator<Generator<Int>> { y in
      for i in 0..<4 {
        try y.yield(Generator { y in for j in 0..<i { try y.yield(10 * i + j) } })
      }
    }
    #expect(g.flatMap { Array($0) } == [10, 20, 21, 30, 31, 32])
  }

  @Test func itsOwnCancellationErrorEndsItQuietly() {
    let g = Generator<Int> { y in
      try y.yield(1)
      throw CancellationError()
    }
    #expect(Array(g) == [1])
  }

  @Test func elementsAreReleasedOnce() {
    let counter = LiveCounter()
    let g = Generator<Counted> { y in
      for _ in 0..<100 { try y.yield(counter.make()) }
    }
    for element in g { withExtendedLifetime(element) { #expect(counter.live == 1) } }
    #expect(counter.live == 0)
  }

  @Test func theClosureIsReleasedAtTheEndThoughTheGeneratorLives() {
    let counter = LiveCounter()
    let g = { [object = counter.make()] in
      Generator<Int> { y in try withExtendedLifetime(object) { try y.yield(1) } }
    }()
    #expect(Array(g) == [1])
    #expect(counter.live == 0)
    #expect(g.next() == nil)
  }

  @Test func aGeneratorThatNeverStartedReleasesItsClosure() {
    let counter = LiveCounter()
    do {
      let g = { [object = counter.make()] in
        Generator<Int> { y in try withExtendedLifetime(object) { try y.yield(1) } }
      }()
      #expect(counter.live == 1)
      #expect(g.stackBytesUsed == nil)
    }
    #expect(counter.live == 0)
  }

  @Test func itMovesBetweenThreads() throws {
    let g = Generator<Int> { y in for i in 0..<6 { try y.yield(i) } }
    let held = Held(g)
    for i in 0..<6 { onNewThread { #expect(held.value.next() == i) } }
    #expect(g.next() == nil)
  }

  @Test func theStackUsedIsReportedWhileItIsSuspended() throws {
    let g = Generator<Int> { y in try y.yield(1) }
    _ = g.next()
    #expect(try #require(g.stackBytesUsed) >= 4_096)
    _ = g.next()
    #expect(g.stackBytesUsed == nil)
  }

  @Test func anErrorOfTheBodyStopsTheProcessAndIsNamed() async throws {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let g = Generator<Int>(name: "numbers") { y in
        try y.yield(1)
        throw Oops(code: 42)
      }
      while g.next() != nil {}
    }
    let text = errorText(result)
    #expect(text.contains("\"numbers\" (created at WeftContextTests/GeneratorTests.swift:"))
    #expect(text.contains("Oops(code: 42)"))
    #expect(text.contains("ThrowingGenerator"))
  }

  @Test func nextFromItsOwnBodyStopsTheProcess() async throws {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let held = Held<Generator<Int>?>(nil)
      held.value = Generator { y in
        _ = held.value?.next()
        try y.yield(1)
      }
      _ = held.value?.next()
    }
    #expect(errorText(result).contains("next() was called by the generator's own body"))
  }

  @Test func aSizeThatCannotBeStopsTheProcessByName() async throws {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      _ = Generator<Int>(stackSize: .bytes(1)) { y in try y.yield(1) }.next()
    }
    #expect(errorText(result).contains("sizes from 16 KiB to 64 GiB are possible"))
  }
}

/// What an exit test's process wrote to standard error.
func errorText(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}
