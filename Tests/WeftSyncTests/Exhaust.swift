import Testing
import Weft

// Driving a primitive on one worker through every sequence of a few events. An operation runs until
// it has to wait; after each event what has become of all of them is compared with what is meant.

/// How far an operation has come.
enum Progress: Equatable { case waits, holds, done, cancelled, refused }

/// What is meant: a queue of those who wait, and a bit more.
protocol Meaning {
  associatedtype Event: Hashable
  static var events: [Event] { get }
  init()
  var progress: [Progress] { get set }
  /// Whether the event makes sense now.
  func allows(_ event: Event) -> Bool
  mutating func happen(_ event: Event)
  /// A number that has to be the same on both sides.
  var tally: Int { get }
}

extension Meaning {
  var tally: Int { 0 }

  /// One that waits is cancelled, and nobody else is concerned.
  mutating func cancel(_ operation: Int) {
    if operation < progress.count, progress[operation] == .waits {
      progress[operation] = .cancelled
    }
  }
}

/// The real thing.
protocol Thing {
  associatedtype Event
  init(_ operations: Operations)
  func happen(_ event: Event)
  /// Lets everything end, so that nothing is left for the next history.
  func finish()
  /// As the meaning's.
  var tally: Int { get }
}

extension Thing {
  var tally: Int { 0 }
}

/// A fiber for each operation. All on one worker.
final class Operations {
  // SAFETY: one worker runs all fibers, which switch only where they wait.
  final class Notes: @unchecked Sendable { var progress: [Progress] = [] }
  let notes = Notes()
  private(set) var fibers: [Fiber<Void, Never>] = []
  private(set) var gates: [Channel<Int>] = []

  /// Starts an operation. It may say that it holds something, and wait for its gate.
  func start(
    _ body: @escaping @Sendable (_ hold: () -> Void) throws -> Progress
  ) {
    let (notes, gate, number) = (notes, Channel<Int>(), notes.progress.count)
    notes.progress.append(.waits)
    gates.append(gate)
    fibers.append(
      Fiber {
        do {
          notes.progress[number] = try body {
            notes.progress[number] = .holds
            withCancellationShield { _ = try? gate.receive() }
          }
        } catch {
          notes.progress[number] = .cancelled
        }
      })
  }

  func release(_ number: Int) { gates[number].close() }

  func cancel(_ number: Int) { if number < fibers.count { fibers[number].cancel() } }

  func finish() {
    for gate in gates { gate.close() }
    for fiber in fibers { fiber.cancel() }
    for fiber in fibers { fiber.join() }
  }
}

func exhaust<M: Meaning, T: Thing>(
  _ meaning: M.Type, _ thing: T.Type, length: Int
) throws where M.Event == T.Event {
  let count = M.events.count
  var total = 1
  for _ in 0..<length { total *= count }
  try onWorkers(1) {
    for number in 0..<total {
      var meant = M()
      let operations = Operations()
      let real = T(operations)
      var rest = number
      var history: [M.Event] = []
      for _ in 0..<length {
        let event = M.events[rest % count]
        rest /= count
        // Longer histories that only repeat a shorter one are skipped.
        guard meant.allows(event) else { break }
        history.append(event)
        meant.happen(event)
        real.happen(event)
        for _ in 0..<6 { Fiber.yield() }
        if operations.notes.progress != meant.progress || real.tally != meant.tally {
          Issue.record(
            """
            \(history): \(operations.notes.progress), \(real.tally), \
            meant \(meant.progress), \(meant.tally)
            """)
          real.finish()
          operations.finish()
          return
        }
      }
      real.finish()
      operations.finish()
    }
  }
}

/// Shorter where each step is slow.
func historyLength(_ full: Int) -> Int {
  isSanitized ? full - 2 : scaled(100_000) < 100_000 ? full - 1 : full
}
