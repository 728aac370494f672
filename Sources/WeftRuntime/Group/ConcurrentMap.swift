import CWeft

extension Sequence where Element: Sendable {
  /// Transforms the elements in fibers, several at once, and returns the results in order.
  ///
  /// ```swift
  /// let squares = try (1...5).concurrentMap(limit: 2) { $0 * $0 }
  /// print(squares)  // [1, 4, 9, 16, 25]
  /// ```
  ///
  /// An element is taken from the sequence only when fewer than `limit` are under way.
  ///
  /// - **Suspension:** parks until all have ended; on a plain thread, blocks it. May resume on
  ///   another kernel thread.
  /// - **Cancellation:** when the fiber is cancelled, or a deadline around the call passes, so are
  ///   those under way, and `CancellationError` is thrown once they have ended.
  /// - **Thread safety:** any fiber, any thread. The sequence is used by the caller alone.
  /// - Parameters:
  ///   - limit: how many are under way at once. By default four for each active worker, so that
  ///     some may wait.
  ///   - transform: what to do with an element.
  /// - Returns: the results, in the order of the elements.
  /// - Throws: the first error in time, when the others have been cancelled and have ended.
  /// - Precondition: the limit is 1 at least.
  /// - Complexity: a group, and a fiber for each element.
  @inlinable
  public func concurrentMap<R: Sendable>(
    limit: Int? = nil, _ transform: @escaping @Sendable (Element) throws -> R
  ) throws -> [R] {
    let limit = checkedLimit(limit, "concurrentMap")
    try throwIfCancelled()
    return try withFiberGroup(of: (Int, R).self) { group in
      var results: [R?] = []
      results.reserveCapacity(underestimatedCount)
      var left = limit
      var iterator = makeIterator()
      while true {
        if left == 0 {
          // None is left where the cancellation ended them all, which is no error of the group.
          guard let (index, result) = try group.next() else { throw CancellationError() }
          results[index] = result
          left += 1
        }
        guard let element = iterator.next() else { break }
        let index = results.count
        results.append(nil)
        left -= 1
        group.spawn { (index, try transform(element)) }
      }
      while let (index, result) = try group.next() { results[index] = result }
      return try results.map { result in
        guard let result else { throw CancellationError() }
        return result
      }
    }
  }

  /// Calls a function with each element in fibers, several at once, and returns when all have
  /// ended.
  ///
  /// ```swift
  /// try ["a", "b", "c"].concurrentForEach { print($0) }
  /// ```
  ///
  /// As `concurrentMap`, which says all else.
  ///
  /// - Parameters:
  ///   - limit: how many are under way at once. By default four for each active worker.
  ///   - body: what to do with an element.
  /// - Throws: the first error in time, when the others have been cancelled and have ended.
  /// - Precondition: the limit is 1 at least.
  @inlinable
  public func concurrentForEach(
    limit: Int? = nil, _ body: @escaping @Sendable (Element) throws -> Void
  ) throws {
    let limit = checkedLimit(limit, "concurrentForEach")
    try throwIfCancelled()
    try withFiberGroup(of: Void.self) { group in
      var left = limit
      var iterator = makeIterator()
      while true {
        if left == 0 {
          if try group.next() == nil { throw CancellationError() }
          left += 1
        }
        guard let element = iterator.next() else { break }
        left -= 1
        group.spawn { try body(element) }
      }
      while try group.next() != nil {}
    }
  }
}

@usableFromInline
func checkedLimit(_ limit: Int?, _ operation: StaticString) -> Int {
  guard let limit else { return defaultLimit() }
  if limit < 1 {
    fatalError("weft: \(operation) was called with a limit of \(limit). Let one run at least.")
  }
  return limit
}

private func defaultLimit() -> Int {
  // SAFETY: the worker is this thread's, used at once.
  let core = unsafe weft_worker_current().map { unsafe schedulerCore(of: $0) }
  return max(1, (core ?? Seam.core ?? Scheduler.shared.core).active) * 4
}
