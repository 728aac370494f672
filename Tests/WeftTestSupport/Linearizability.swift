import Synchronization

// Whether what threads and fibers saw could have come from one of them acting after the other.
//
// Each operation is written down with two ticks of one clock: when it was called and when it
// returned. A history is linearizable if its operations can be put into one order that a plain
// sequential model allows, where one that returned before another was called comes first.
//
// The search is Wing and Gong's, with Lowe's memory: pick an operation that no other precedes, let
// the model take it, go on with the rest; which set of operations led to which state was tried
// already is remembered.

/// What a primitive does when nothing happens at the same time.
public protocol SequentialModel: Hashable {
  /// What is asked of it.
  associatedtype Op: Sendable
  /// What that answers.
  associatedtype Result: Sendable

  /// The model after an operation that answered `result`; nil if it could not, in this state.
  ///
  /// An operation that waits is one that is not possible in some states. `result` is nil for one
  /// that had not returned when the history ended: it may answer anything.
  func after(_ op: Op, result: Result?) -> Self?
}

/// What happened, and when.
public struct History<Op: Sendable, Result: Sendable>: Sendable, CustomStringConvertible {
  /// One operation.
  public struct Event: Sendable {
    /// Who called.
    public var actor: Int
    /// What was called.
    public var op: Op
    /// What it returned; nil if it has not.
    public var result: Result?
    /// When it was called, on the clock of the history.
    public var start: UInt64
    /// When it returned; the end of time if it has not.
    public var end: UInt64

    /// Makes one.
    public init(
      actor: Int = 0, _ op: Op, _ result: Result?, start: UInt64, end: UInt64 = .max
    ) {
      self.actor = actor
      self.op = op
      self.result = result
      self.start = start
      self.end = end
    }
  }

  /// At most 64, in any order.
  public var events: [Event]

  /// Makes one.
  public init(_ events: [Event] = []) { self.events = events }

  /// Whether some order of the operations explains what they returned.
  ///
  /// - Complexity: exponential in how many ran at the same time: for small histories.
  public func isLinearizable<Model: SequentialModel>(from model: Model) -> Bool
  where Model.Op == Op, Model.Result == Result {
    precondition(events.count <= 64, "a history of more than 64 operations")
    var search = Search<Model>(events: events.sorted { $0.start < $1.start })
    return search.succeeds(model, left: events.isEmpty ? 0 : .max >> UInt64(64 - events.count))
  }

  private struct Search<Model: SequentialModel> where Model.Op == Op, Model.Result == Result {
    struct Place: Hashable {
      let left: UInt64
      let model: Model
    }
    let events: [Event]
    var failed: Set<Place> = []

    /// Whether the operations whose bits are set in `left` can follow.
    mutating func succeeds(_ model: Model, left: UInt64) -> Bool {
      // One that never returned need not have happened.
      if indices(left).allSatisfy({ events[$0].end == .max }) { return true }
      let place = Place(left: left, model: model)
      if failed.contains(place) { return false }
      // Whoever was called before all that are left have returned may be the next.
      let firstEnd = indices(left).map { events[$0].end }.min() ?? .max
      for index in indices(left) where events[index].start < firstEnd {
        if let next = model.after(events[index].op, result: events[index].result),
          succeeds(next, left: left & ~(1 << UInt64(index)))
        {
          return true
        }
      }
      failed.insert(place)
      return false
    }

    private func indices(_ set: UInt64) -> [Int] {
      events.indices.filter { set & 1 << UInt64($0) != 0 }
    }
  }

  /// One line for each operation, in the order in which they were called.
  public var description: String {
    events.sorted { $0.start < $1.start }.map { event in
      let end = event.end == .max ? "…" : "\(event.end)"
      let result = event.result.map { "\($0)" } ?? "not returned"
      return "  \(event.start)–\(end) actor \(event.actor): \(event.op) -> \(result)"
    }.joined(separator: "\n")
  }
}

/// Writes a history down while it happens.
public final class HistoryRecorder<Op: Sendable, Result: Sendable>: Sendable {
  private let clock = Atomic<UInt64>(0)
  private let events = Box<[History<Op, Result>.Event]>([])

  /// Starts an empty history.
  public init() {}

  /// Carries out an operation, and notes it with what it returned.
  @discardableResult
  public func record(actor: Int, _ op: Op, _ body: () -> Result) -> Result {
    let start = call()
    let result = body()
    note(actor: actor, op, result, start: start)
    return result
  }

  /// The tick of a call, for an operation that does not end where a function returns.
  public func call() -> UInt64 {
    // One order for all, so that "returned before the other was called" means just that.
    clock.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
  }

  /// Notes an operation that returns now.
  public func note(actor: Int, _ op: Op, _ result: Result, start: UInt64) {
    let end = call()
    events.change { $0.append(.init(actor: actor, op, result, start: start, end: end)) }
  }

  /// What was noted so far.
  public var history: History<Op, Result> { History(events.value) }
}
