import Synchronization
import WeftRuntime

/// A channel that receives from several: what comes from one of them in its order, all of them as
/// they come.
///
/// ```swift
/// let a = Channel<Int>(capacity: 4)
/// let b = Channel<Int>(capacity: 4)
/// for (i, channel) in [a, b].enumerated() {
///   Fiber { try channel.send(i); channel.close() }
/// }
/// for element in merge([a, b]) { print(element) }
/// ```
///
/// It is closed when all of them are. Whoever wants no more closes it: then nothing more is taken
/// from the others, but for one element of each that was under way, which is released.
///
/// - **Suspension:** never; a fiber for each channel forwards.
/// - **Cancellation:** the end of the scheduler ends the fibers.
/// - **Thread safety:** any fiber, any thread.
/// - Parameters:
///   - channels: what to receive from. None: the result is closed.
///   - capacity: of the channel that this makes.
public func merge<Element: Sendable>(
  _ channels: [Channel<Element>], capacity: Int = 0
) -> Channel<Element> {
  let merged = Channel<Element>(capacity: capacity)
  closing(merged, after: channels.count) { index in
    let channel = channels[index]
    while let element = try channel.receive() { try merged.send(element) }
  }
  return merged
}

/// Runs so many fibers that send to a channel, and closes it after the last.
private func closing<Element>(
  _ output: Channel<Element>, after count: Int, _ body: @escaping @Sendable (Int) throws -> Void
) {
  if count == 0 { output.close() }
  let left = Countdown(count)
  for index in 0..<count {
    Fiber(name: "pipeline") {
      // A closed output or a cancellation ends it, as the end of the input does.
      try? body(index)
      if left.isLast { output.close() }
    }
  }
}

private final class Countdown: Sendable {
  private let left: Atomic<Int>
  init(_ count: Int) { left = Atomic(count) }
  /// Counts down; true for the one who comes to zero.
  var isLast: Bool {
    // ORDERING: acquire-release: the last one's close comes after what the others sent.
    left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
  }
}

private func checkFibers(_ fibers: Int, _ name: StaticString) {
  if fibers < 1 { fatalError("weft: \(name)(fibers: \(fibers)): there must be at least 1") }
}

extension Channel where Element: Sendable {
  /// A channel of what a function makes of each element, with so many fibers at work.
  ///
  /// ```swift
  /// let numbers = Channel<Int>(capacity: 8)
  /// let squares = numbers.map(fibers: 4) { $0 * $0 }
  /// Fiber { for i in 0..<100 { try numbers.send(i) }; numbers.close() }
  /// for square in squares { print(square) }
  /// ```
  ///
  /// It is closed when this one is closed and empty. Whoever wants no more closes it, and then
  /// nothing more is taken from this one; what was under way is released.
  ///
  /// - **Suspension:** never; fibers of its own do the work.
  /// - **Cancellation:** the end of the scheduler ends the fibers.
  /// - Parameters:
  ///   - fibers: how many elements are worked on at once; at least 1.
  ///   - ordered: whether results come in the order of their elements; else as they are ready.
  ///   - capacity: of the channel that this makes.
  ///   - transform: what makes a result of an element. May park.
  /// - Complexity: ordered, a fiber for each element; else none.
  public func map<Result: Sendable>(
    fibers: Int, ordered: Bool = true, capacity: Int = 0,
    _ transform: @escaping @Sendable (Element) -> Result
  ) -> Channel<Result> {
    checkFibers(fibers, "map")
    return compactMap(fibers: fibers, ordered: ordered, capacity: capacity) { transform($0) }
  }

  /// A channel of the elements that satisfy a predicate, with so many fibers at work.
  ///
  /// As `map(fibers:ordered:capacity:_:)` otherwise.
  ///
  /// - Parameters:
  ///   - fibers: how many elements are worked on at once; at least 1.
  ///   - ordered: whether elements keep their order.
  ///   - capacity: of the channel that this makes.
  ///   - isIncluded: which elements stay. May park.
  public func filter(
    fibers: Int, ordered: Bool = true, capacity: Int = 0,
    _ isIncluded: @escaping @Sendable (Element) -> Bool
  ) -> Channel<Element> {
    checkFibers(fibers, "filter")
    return compactMap(fibers: fibers, ordered: ordered, capacity: capacity) {
      isIncluded($0) ? $0 : nil
    }
  }

  /// The same where a result may be none.
  private func compactMap<Result: Sendable>(
    fibers: Int, ordered: Bool, capacity: Int,
    _ transform: @escaping @Sendable (Element) -> Result?
  ) -> Channel<Result> {
    let output = Channel<Result>(capacity: capacity)
    if !ordered || fibers == 1 {
      closing(output, after: fibers) { _ in
        while let element = try self.receive() {
          if let result = transform(element) { try output.send(result) }
        }
      }
      return output
    }
    // The fibers that work, in the order of their elements. The one that is waited for is in no
    // channel any more, and the one that is sent is not in it yet.
    let working = Channel<Fiber<Result?, Never>>(capacity: Swift.max(0, fibers - 2))
    Fiber(name: "pipeline") {
      defer { working.close() }
      while let element = try? self.receive() {
        do {
          try working.send(Fiber { transform(element) })
        } catch {
          return
        }
      }
    }
    Fiber(name: "pipeline") {
      defer {
        output.close()
        working.close()
      }
      while let fiber = try? working.receive() {
        guard let result = fiber.join() else { continue }
        do { try output.send(result) } catch { return }
      }
    }
    return output
  }

  /// A channel of arrays of so many elements; the last may be shorter.
  ///
  /// ```swift
  /// let numbers = Channel<Int>(capacity: 8)
  /// Fiber { for i in 0..<10 { try numbers.send(i) }; numbers.close() }
  /// for chunk in numbers.chunked(into: 4) { print(chunk) }  // [0, 1, 2, 3] …
  /// ```
  ///
  /// - **Suspension:** never; a fiber of its own collects.
  /// - Parameters:
  ///   - count: how many elements make a chunk; at least 1.
  ///   - within: a chunk that has elements is sent after so long even if it is not full.
  ///   - capacity: of the channel that this makes.
  public func chunked(
    into count: Int, within: Duration? = nil, capacity: Int = 0
  ) -> Channel<[Element]> {
    if count < 1 { fatalError("weft: chunked(into: \(count)): there must be at least 1") }
    let output = Channel<[Element]>(capacity: capacity)
    closing(output, after: 1) { _ in
      while let first = try self.receive() {
        var chunk = [first]
        let end = within.map { Fiber.now + $0 }
        while chunk.count < count {
          do {
            guard let next = try self.receive(until: end) else { break }
            chunk.append(next)
          } catch is DeadlineExceeded {
            break
          }
        }
        try output.send(chunk)
      }
    }
    return output
  }

  private func receive(until end: ContinuousClock.Instant?) throws -> Element? {
    guard let end else { return try receive() }
    let left = Fiber.now.duration(to: end)
    return try left > .zero ? receive(within: left) : receiveIfAvailable().orThrow()
  }
}

extension Optional {
  fileprivate func orThrow() throws -> Wrapped {
    guard let self else { throw DeadlineExceeded() }
    return self
  }
}
