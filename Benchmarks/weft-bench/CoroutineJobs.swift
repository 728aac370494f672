// Supports claims: what resuming, yielding and producing elements costs a user of the library, from
// another module and through generic types.

import BenchKit
import BenchVariants
import Weft

private func elementJob(
  _ name: String, _ summary: String, purpose: Purpose = .claim,
  body: @escaping @Sendable (Int) throws -> Void
) -> Job {
  Job(
    name, summary, unit: "ns/element", excludes: "creation, spread over the sample",
    purpose: purpose, body: body)
}

private func total(_ elements: Generator<Int>) -> Int {
  var total = 0
  for element in elements { total += element }
  return total
}

private func counter(_ count: Int) -> Generator<Int> {
  Generator { y in
    for number in 0..<count { try y.yield(number) }
  }
}

// Helpers between the body and its yield. They may not be inlined: that is what is measured.

@inline(never)
private func yieldFirst(_ number: Int, _ y: inout Generator<Int>.Yielder) throws {
  try yieldSecond(number, &y)
  bench_black_hole(1)
}

@inline(never)
private func yieldSecond(_ number: Int, _ y: inout Generator<Int>.Yielder) throws {
  try yieldThird(number, &y)
  bench_black_hole(2)
}

@inline(never)
private func yieldThird(_ number: Int, _ y: inout Generator<Int>.Yielder) throws {
  try y.yield(number)
  bench_black_hole(3)
}

/// Walks the numbers of a range as a balanced tree, in order: a yield at every depth.
private func walk(_ range: Range<Int>, _ y: inout Generator<Int>.Yielder) throws {
  guard !range.isEmpty else { return }
  let middle = range.lowerBound + range.count / 2
  try walk(range.lowerBound..<middle, &y)
  try y.yield(middle)
  try walk(middle + 1..<range.upperBound, &y)
}

/// An existential that the optimiser does not see through.
@inline(never)
private func hidden(_ generator: Generator<Int>) -> any IteratorProtocol<Int> { generator }

@inline(never)
private func total(_ iterator: inout any IteratorProtocol<Int>) -> Int {
  var total = 0
  while let element = iterator.next() { total += element }
  return total
}

/// Jobs for coroutines and generators.
let coroutineJobs: [Job] = [
  Job(
    "coroutine.int", "Coroutine<Int, Int, Int>: one resume and one yield, a value each way.",
    unit: "ns/round trip", excludes: "creation, spread over the sample", purpose: .regression
  ) { count in
    var coroutine = try Coroutine<Int, Int, Int> { y, first in
      var input = first
      while input >= 0 { input = try y.yield(input) }
      return input
    }
    var sum = 0
    for number in 0..<count {
      if case .yielded(let output) = try coroutine.resume(number) { sum += output }
    }
    try check(sum, is: triangle(count))
  },
  elementJob("generator.int", "Generator<Int> in a for loop.", purpose: .regression) { count in
    try check(total(counter(count)), is: triangle(count))
  },
  elementJob(
    "generator.string", "Generator<String>, each element a new string on the heap.",
    purpose: .regression
  ) { count in
    let lines = Generator<String> { y in
      for number in 0..<count { try y.yield(makeLine(number)) }
    }
    var sum = 0
    for line in lines { sum += line.utf8.count }
    try check(sum, is: count * lineLength)
  },
  elementJob("generator.throwing", "ThrowingGenerator<Int>.") { count in
    let numbers = ThrowingGenerator<Int> { y in
      for number in 0..<count { try y.yield(number) }
    }
    var sum = 0
    while let number = try numbers.next() { sum += number }
    try check(sum, is: triangle(count))
  },
  elementJob("generator.deep", "Generator<Int> that yields from helpers three calls deep.") {
    count in
    let numbers = Generator<Int> { y in
      for number in 0..<count { try yieldFirst(number, &y) }
    }
    try check(total(numbers), is: triangle(count))
  },
  elementJob("generator.tree", "Generator<Int> that walks a balanced tree by recursion.") { count in
    let numbers = Generator<Int> { y in try walk(0..<count, &y) }
    try check(total(numbers), is: triangle(count))
  },
  elementJob("generator.existential", "Generator<Int> through any IteratorProtocol.") { count in
    var iterator = hidden(counter(count))
    try check(total(&iterator), is: triangle(count))
  },
  Job(
    "generator.two", "Two generators in turns: the jumps go to different places each time.",
    unit: "ns/element", excludes: "creation, spread over the sample", purpose: .claim,
    perIteration: 2
  ) { count in
    let (ups, others) = (counter(count), counter(count))
    var sum = 0
    while let up = ups.next(), let other = others.next() { sum += up + other }
    try check(sum, is: 2 * triangle(count))
  },
  Job(
    "generator.thousand",
    "A thousand in turns, from an array: caches, and counted references.",
    unit: "ns/element", excludes: "creation", purpose: .claim, method: .timed(thousandInTurns)),
]

private func thousandInTurns(_ count: Int) throws -> Double {
  // Whole rounds, at least one, so that the figure does not depend on where it stops.
  let rounds = count / 1000 + 1
  let generators = (0..<1000).map { _ in counter(rounds + 1) }
  for generator in generators { _ = generator.next() }
  var sum = 0
  let elapsed = Stopwatch.nanoseconds {
    for _ in 0..<rounds {
      for generator in generators { sum += generator.next() ?? 0 }
    }
  }
  try check(sum, is: 1000 * triangle(rounds + 1))
  return elapsed * Double(count) / Double(rounds * 1000)
}
