// Supports claims: what Swift itself offers to produce elements one by one, in the same run.

import BenchKit
import BenchVariants

/// Counts up, written by hand as an iterator.
private struct Counter: Sequence, IteratorProtocol {
  let end: Int
  var position = 0

  mutating func next() -> Int? {
    guard position < end else { return nil }
    defer { position += 1 }
    return Int(bench_opaque(UInt64(position)))
  }
}

/// An iterator behind an existential, in a place where the optimiser does not see what it is.
@inline(never)
private func hidden(_ iterator: Counter) -> any IteratorProtocol<Int> { iterator }

@inline(never)
private func sum(_ iterator: inout any IteratorProtocol<Int>) -> Int {
  var total = 0
  while let element = iterator.next() { total += element }
  return total
}

private let lineStart = "a line of text, number: "
private let digits = (0..<10).map { "\($0)" }

/// The length of every string that makeLine(_:) makes.
let lineLength = 25

/// A string that is too long to be stored inline: one allocation, a copy, and little else, so that
/// the cost of handing it over is not lost in the cost of making it.
@inline(never)
func makeLine(_ number: Int) -> String {
  lineStart + digits[number % 10]
}

/// Jobs for iterators written by hand.
let iteratorJobs: [Job] = [
  Job(
    "iterator.struct", "A hand-written iterator, a struct that the optimiser sees through.",
    unit: "ns/element", excludes: "nothing", purpose: .claim
  ) { count in
    var total = 0
    for element in Counter(end: count) { total += element }
    try check(total, is: triangle(count))
  },
  Job(
    "iterator.existential", "The same iterator through any IteratorProtocol.",
    unit: "ns/element", excludes: "nothing", purpose: .claim
  ) { count in
    var iterator = hidden(Counter(end: count))
    try check(sum(&iterator), is: triangle(count))
  },
  Job(
    "string.make", "Making and dropping the String that generator.string hands over.",
    unit: "ns/element", excludes: "nothing", purpose: .claim
  ) { count in
    var total = 0
    for number in 0..<count { total += makeLine(number).utf8.count }
    try check(total, is: count * lineLength)
  },
]
