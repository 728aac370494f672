// PoolSum.swift - the bodies of `weft demo pool`: a main fiber, and fibers that add.
//
// They are functions of what they do to the scheduler, so that the demo runs them as fibers and the
// stepper, one step at a time, as coroutines.

/// Who adds what.
struct PoolPlan: Equatable {
  var upto: Int64
  var fibers: Int

  /// N(N+1)/2, without overflow on the way: one of the two factors is even.
  var expected: Int64 {
    upto.isMultiple(of: 2) ? upto / 2 * (upto + 1) : (upto + 1) / 2 * upto
  }

  /// The numbers of a fiber, counted from 1: they are dealt round.
  func share(_ fiber: Int) -> StrideThrough<Int64> {
    stride(from: Int64(fiber), through: upto, by: fibers)
  }
}

enum PoolSum {
  /// The main fiber: starts the others and adds up what they come to.
  static func main<Handle, E: Error>(
    _ plan: PoolPlan, spawn: (Int) throws(E) -> Handle, join: (Handle) throws(E) -> Int64
  ) throws(E) -> Int64 {
    var handles: [Handle] = []
    handles.reserveCapacity(plan.fibers)
    for fiber in 1...plan.fibers { handles.append(try spawn(fiber)) }
    var total: Int64 = 0
    for handle in handles { total += try join(handle) }
    return total
  }

  /// A fiber: adds its share, and lets others run between two additions.
  static func add<E: Error>(
    _ share: StrideThrough<Int64>, between: (_ sum: Int64) throws(E) -> Void
  ) throws(E) -> Int64 {
    var sum: Int64 = 0
    var isFirst = true
    for number in share {
      if !isFirst { try between(sum) }
      isFirst = false
      sum += number
    }
    return sum
  }
}
