// Supports claims: what a row beside other runtimes can't be less than. Parts of what a fiber or a
// select costs that are Swift's, and not the scheduler's.

import BenchKit
import BenchVariants

private final class Referenced: Sendable {}

/// Not inlined: the closure leaves, so that what it captures is an object on the heap.
@inline(never)
private func closure(over number: Int) -> () -> Int { { number } }

private func makeClosures(_ count: Int) throws {
  var sum = 0
  for number in 0..<count { sum += closure(over: number)() }
  try check(sum, is: count * (count - 1) / 2)
}

private func countReferences(_ count: Int) {
  let object = Referenced()
  // SAFETY: as many releases as retains, of an object that lives until after them.
  unsafe bench_retain_and_release(Unmanaged.passUnretained(object).toOpaque(), UInt64(count))
  withExtendedLifetime(object) {}
}

let boundGroup = Group(
  "bound",
  jobs: [
    Job(
      "bound.closure", "A closure that captures a number: made, called, dropped.",
      unit: "ns each", excludes: "nothing", purpose: .claim, body: makeClosures),
    Job(
      "bound.reference", "One more reference to an object, and one less.",
      unit: "ns each", excludes: "nothing", purpose: .claim, body: countReferences),
  ])
