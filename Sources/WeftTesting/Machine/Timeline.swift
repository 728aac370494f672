import CWeft
import WeftRuntime

/// What happened in a run, a line an event, with a column for each thread:
///
///        time  thread 0                      thread 2
///           0  fiber 1 "main" starts
///           0  fiber 1 "main" waits: join
///           0                                fiber 2 starts
struct Timeline {
  private struct Event {
    let time: UInt64
    let thread: Int
    let text: String
  }

  private var events: [Event] = []
  /// More are counted only.
  private static let eventsMost = 4_000
  private var dropped = 0
  /// Whom each thread ran last.
  private var running: [Int: UInt64] = [:]

  /// Whatever comes after is the end of a run that has failed.
  private var hasEnded = false

  mutating func end(_ machine: Machine, _ text: String) {
    add(machine, text)
    hasEnded = true
  }

  mutating func add(_ machine: Machine, _ text: String) {
    if hasEnded { return }
    let time = machine.clock - machine.reference.nanoseconds
    if events.count == Timeline.eventsMost {
      dropped += 1
    } else {
      events.append(Event(time: time, thread: machine.current?.number ?? 0, text: text))
    }
  }

  mutating func add(
    _ machine: Machine, _ what: UInt32, _ fiber: UnsafeMutablePointer<weft_fiber>
  ) {
    // SAFETY: the fiber is the running one's, or held by whoever tells.
    if hasEnded { return }
    let thread = machine.current.number
    let id = unsafe weft_fiber_id(fiber)
    let name = unsafe simulatedName(fiber)
    let text: String
    switch what {
    case UInt32(WEFT_NOTE_PARK): text = "waits for \(unsafe simulatedReason(fiber))"
    case UInt32(WEFT_NOTE_JOIN): text = "waits for \(ParkReason.join)"
    case UInt32(WEFT_NOTE_YIELD): text = "lets others run"
    case UInt32(WEFT_NOTE_END): text = "ends"
    case UInt32(WEFT_NOTE_LEAVE): text = "goes to another worker"
    case UInt32(WEFT_NOTE_WAKE): text = "is made runnable"
    case UInt32(WEFT_NOTE_RUN):
      if running[thread] == id { return }
      running[thread] = id
      text = "runs"
    default: return
    }
    if what != UInt32(WEFT_NOTE_RUN) && what != UInt32(WEFT_NOTE_WAKE) { running[thread] = nil }
    add(machine, "\(name) \(text)")
  }

  /// The last events, as text.
  func text(last count: Int = 60) -> String {
    let shown = events.suffix(count)
    let threads = Set(shown.map(\.thread)).sorted()
    let width = 2 + (shown.map(\.text.count).max() ?? 0)
    let timeWidth = max(12, 2 + (shown.map { Timeline.time($0.time).count }.max() ?? 0))
    func pad(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    var lines = [
      "  " + pad("time", timeWidth)
        + threads.map { pad("thread \($0)", width) }.joined().trimmedEnd
    ]
    let left = dropped + events.count - shown.count
    if left > 0 { lines.append("  ... \(left) events before") }
    for event in shown {
      let column = threads.firstIndex(of: event.thread) ?? 0
      lines.append(
        "  " + pad(Timeline.time(event.time), timeWidth)
          + String(repeating: " ", count: column * width) + event.text)
    }
    return lines.joined(separator: "\n")
  }

  /// `1.5 ms`.
  private static func time(_ nanoseconds: UInt64) -> String {
    for (unit, size) in [("s", 1_000_000_000.0), ("ms", 1_000_000), ("us", 1_000)]
    where Double(nanoseconds) >= size {
      return "\((Double(nanoseconds) / size * 1_000).rounded() / 1_000) \(unit)"
    }
    return "\(nanoseconds)"
  }
}

extension String {
  fileprivate var trimmedEnd: String {
    var text = Substring(self)
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
