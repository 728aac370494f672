// GeneratorDemos.swift - `weft demo generator`, `tree` and `primes`: the library at work.
import Weft

/// Fibonacci numbers from an endless loop.
enum FibonacciDemo {
  /// One more would not fit 64 bits with a sign.
  static let countMax: Int64 = 93

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let given = try invocation.number("count", in: 0...countMax, why: "it would overflow 64 bits")
    return try result(count: Int(given ?? 10)).finish(invocation)
  }

  static func result(count: Int) -> LibraryResult {
    // An endless loop, but lazy: it gets no further than somebody asks.
    let numbers = Generator<Int64> { y in
      var (a, b): (Int64, Int64) = (0, 1)
      while true {
        try y.yield(a)
        (a, b) = (b, a &+ b)
      }
    }
    return LibraryResult(
      name: "generator", elements: Array(numbers.prefix(count)), expected: expected(count),
      details: [],
      remark: "\(counted(count, "element", "elements")) of an endless loop, a switch there and "
        + "back for each.",
      isOnePerLine: true)
  }

  /// By doubling: F(2k) = F(k)(2F(k+1) - F(k)), F(2k+1) = F(k+1)^2 + F(k)^2.
  private static func expected(_ count: Int) -> [Int64] {
    (0..<count).map { index in
      var (a, b): (Int64, Int64) = (0, 1)
      for bit in (0..<7).reversed() {
        (a, b) = (a &* (2 &* b &- a), a &* a &+ b &* b)
        if index >> bit & 1 == 1 { (a, b) = (b, a &+ b) }
      }
      return a
    }
  }
}

/// A tree walked in order by a plain recursion that yields.
enum TreeDemo {
  /// A binary search tree.
  indirect enum Tree {
    case leaf
    case node(Tree, Int64, Tree)

    func inserting(_ value: Int64) -> Tree {
      guard case .node(let left, let here, let right) = self else {
        return .node(.leaf, value, .leaf)
      }
      return value < here
        ? .node(left.inserting(value), here, right) : .node(left, here, right.inserting(value))
    }

    var depth: Int {
      guard case .node(let left, _, let right) = self else { return 0 }
      return 1 + max(left.depth, right.depth)
    }
  }

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let given = try invocation.number("count", in: 0...100_000, why: "a tree to look at is smaller")
    return try result(count: Int(given ?? 12), glyphs: invocation.console.glyphs).finish(invocation)
  }

  /// The recursion knows nothing of iterators: it yields from whatever depth it is at.
  static func walk(_ tree: Tree, _ y: inout Generator<Int64>.Yielder) throws {
    guard case .node(let left, let value, let right) = tree else { return }
    try walk(left, &y)
    try y.yield(value)
    try walk(right, &y)
  }

  static func result(count: Int, glyphs: Glyphs) -> LibraryResult {
    let tree = shuffled(count).reduce(Tree.leaf) { $0.inserting($1) }
    let depth = tree.depth
    let elements = Array(Generator<Int64> { y in try walk(tree, &y) })
    return LibraryResult(
      name: "tree", elements: elements, expected: (0..<count).map { Int64($0 + 1) },
      details: [JSON.Member(key: "depth", value: .int(depth))],
      remark: "In order, by a recursion that yields from up to "
        + "\(counted(depth, "call", "calls")) deep.",
      picture: count <= 40 ? picture(tree, glyphs) : [])
  }

  /// 1 to `count` in an order that is scrambled, but the same every time.
  private static func shuffled(_ count: Int) -> [Int64] {
    var values = (0..<count).map { Int64($0 + 1) }
    var state: UInt64 = 109
    for index in values.indices.reversed() where index > 0 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      values.swapAt(index, Int((state >> 33) % UInt64(index + 1)))
    }
    return values
  }

  /// The tree lying on its side: the root at the left, small numbers at the top.
  private static func picture(_ tree: Tree, _ glyphs: Glyphs) -> [StyledLine] {
    var lines: [StyledLine] = []
    func draw(_ tree: Tree, _ depth: Int) {
      guard case .node(let left, let value, let right) = tree else { return }
      draw(left, depth + 1)
      let indent = String(repeating: "   ", count: depth)
      lines.append(
        StyledLine("  " + indent, .dim)
          + StyledLine(depth == 0 ? "" : glyphs.horizontal + " ", .dim)
          + StyledLine("\(value)", .value))
      draw(right, depth + 1)
    }
    draw(tree, 0)
    return lines.isEmpty ? [] : lines + [""]
  }
}

/// The sieve as a chain of generators, each of which drops the multiples of one prime.
enum PrimesDemo {
  /// Every prime is one more generator in the chain.
  static let uptoMax: Int64 = 20_000

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let given = try invocation.number(
      "upto", in: 0...uptoMax, why: "every prime is one more generator in the chain")
    return try result(upto: given ?? 50).finish(invocation)
  }

  static func result(upto: Int64) -> LibraryResult {
    var primes: [Int64] = []
    var source = Generator<Int64> { y in
      var number: Int64 = 2
      while number <= upto {
        try y.yield(number)
        number += 1
      }
    }
    while let prime = source.next() {
      primes.append(prime)
      source = without(multiplesOf: prime, source)
    }
    return LibraryResult(
      name: "primes", elements: primes, expected: expected(upto),
      details: [
        JSON.Member(key: "upto", value: .int(upto)),
        JSON.Member(key: "generators", value: .int(primes.count + 1)),
      ],
      remark: "\(counted(primes.count, "prime", "primes")), by a chain of "
        + "\(counted(primes.count + 1, "generator", "generators")).")
  }

  private static func without(
    multiplesOf prime: Int64, _ source: Generator<Int64>
  ) -> Generator<Int64> {
    Generator<Int64> { y in
      while let number = source.next() {
        if number % prime != 0 { try y.yield(number) }
      }
    }
  }

  /// By trial division.
  static func expected(_ upto: Int64) -> [Int64] {
    guard upto >= 2 else { return [] }
    return (2...upto).filter { number in
      var divisor: Int64 = 2
      while divisor * divisor <= number {
        if number % divisor == 0 { return false }
        divisor += 1
      }
      return true
    }
  }
}
