import CWeft
import WeftRuntime

// A flight is the run for one key, and all who asked for it.
//
//     run(key), none under way: into the table, askers = 1, its fiber starts
//        │
//        ▼                 run(key): askers + 1
//     in the table ◀──────────────────────────────┐
//        │  │   └─────────────────────────────────┘
//        │  └── an asker is cancelled: askers - 1; 0: out of the table, the fiber is cancelled
//        ▼
//     the fiber ends: out of the table, then the promise is settled, and all askers go on
//
// So who asks joins a run that has not ended and that nobody has given up, or starts another.

/// Makes requests for the same thing at the same time one.
///
/// ```swift
/// let lookups = SingleFlight<String, Int>()
/// for _ in 0..<10 {
///   Fiber {
///     // Where ten ask at the same time, one looks it up for all.
///     let length = try lookups.run("key") {
///       try Fiber.sleep(for: .milliseconds(5))
///       return 3
///     }
///     print(length)
///   }
/// }
/// ```
///
/// The run is a fiber of its own, which belongs to all who asked: the cancellation of one does not
/// fail the others, and when the last one has left, the run is cancelled. Its error reaches all.
/// Nothing is kept after it has ended: the next request runs anew.
///
/// - **Suspension:** `run` parks the fiber, which may resume on another kernel thread; a plain
///   thread is blocked.
/// - **Cancellation:** ends the wait of the one that is cancelled; of the last, the run too.
/// - **Thread safety:** any fiber, any thread.
/// - **Complexity:** a look into a table under a `FiberMutex`; a run is a fiber more.
public final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let flights = FiberMutex<[Key: Flight]>([:])

  /// Makes one without a run.
  public init() {}

  /// The run for one key.
  @safe
  // SAFETY: what changes is guarded by the mutex of the table.
  private final class Flight: @unchecked Sendable {
    let promise = Promise<Value>()
    var askers = 1
    /// There before the first asker can leave.
    var fiber: Fiber<Void, Never>?
    /// That fiber, as a number; 0 before it runs.
    var runner: UInt64 = 0
  }

  /// The value for a key: of the run that is under way for it, or of a new one.
  ///
  /// A new run takes place in a fiber of the caller's scheduler, or, for a plain thread, of
  /// `Scheduler.shared`, and ends with it.
  ///
  /// - **Suspension:** parks until the run has ended.
  /// - **Cancellation:** the caller leaves. If it was the last one, the run is cancelled.
  /// - Parameters:
  ///   - key: requests with the same key are the same. Its `==` and `hash(into:)` must not ask
  ///     here.
  ///   - body: makes the value; released unused if there is a run under way. To ask for the same
  ///     key inside it would be to wait for oneself: that stops the process with a message.
  /// - Throws: what the run threw; `CancellationError`.
  public func run(
    _ key: Key, _ body: sending @escaping () throws -> Value
  ) throws -> Value {
    try throwIfCancelled()
    let (flight, isNew) = join(key)
    if isNew { start(flight, key, body) }
    do {
      return try flight.promise.wait(for: .singleFlight, until: .max)
    } catch {
      // The run's error; if that has none yet, our own.
      if !flight.promise.isSettled { leave(flight, key) }
      throw error
    }
  }

  private func join(_ key: Key) -> (flight: Flight, isNew: Bool) {
    flights.withLock { flights in
      guard let flight = flights[key] else {
        let flight = Flight()
        flights[key] = flight
        return (flight, true)
      }
      if flight.runner == weft_owner_current() {
        refuse(
          "\(describeCaller()) asked a SingleFlight for \(key) inside the run that makes it, and "
            + "would wait for itself.")
      }
      flight.askers += 1
      return (flight, false)
    }
  }

  private func start(
    _ flight: Flight, _ key: Key, _ body: sending @escaping () throws -> Value
  ) {
    let fiber = Fiber<Void, Never> {
      self.flights.withLock { _ in flight.runner = weft_owner_current() }
      let result = Result { try body() }
      self.remove(flight, key)
      // Nobody else settles it.
      try? flight.promise.settle(result)
    }
    flights.withLock { _ in flight.fiber = fiber }
  }

  private func leave(_ flight: Flight, _ key: Key) {
    let abandoned = flights.withLock { flights -> Fiber<Void, Never>? in
      flight.askers -= 1
      if flight.askers > 0 { return nil }
      if flights[key] === flight { flights[key] = nil }
      return flight.fiber
    }
    abandoned?.cancel()
  }

  private func remove(_ flight: Flight, _ key: Key) {
    flights.withLock { flights in
      if flights[key] === flight { flights[key] = nil }
    }
  }
}

extension SingleFlight {
  /// How many wait for the run for a key; for tests.
  func askers(of key: Key) -> Int { flights.withLock { $0[key]?.askers ?? 0 } }
}
