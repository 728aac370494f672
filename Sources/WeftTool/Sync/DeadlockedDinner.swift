// DeadlockedDinner.swift - the dinner that ends in a deadlock, in a process of its own.
import CWeftDemo

/// What was seen of it. Weft ends a process in which nothing can happen any more, with a report on
/// standard error, so the demo runs itself once more, as a child, and reads that.
struct DeadlockedDinner: Equatable {
  static let patienceMilliseconds: Int32 = 10_000
  /// Far more than the report of the largest table.
  private static let reportBytesMax = 65_536

  /// A fiber that the report names, and what it waits for.
  struct Waiting: Equatable {
    var name: String
    var reason: String
  }

  /// The exit code; nil if the child had to be killed.
  var status: Int?
  var report: String

  static func watch(_ plan: DiningDemo.Plan, workers: Int?) throws -> DeadlockedDinner {
    var arguments = [
      "weft", "demo", "dining", "--rule", "left", "--philosophers", "\(plan.philosophers)",
    ]
    if let workers { arguments += ["--workers", "\(workers)"] }
    var bytes = [CChar](repeating: 0, count: reportBytesMax)
    var size = bytes.count
    var status: Int32 = 0
    // SAFETY: copies, freed after the call that uses them.
    let words = unsafe arguments.map { unsafe strdup($0) }
    defer { unsafe words.forEach { unsafe free($0) } }
    // SAFETY: an array that ends with nil; buffer and size belong together.
    let failure = unsafe weft_host_run_again(
      words.map { unsafe UnsafePointer($0) } + [nil], &bytes, &size, patienceMilliseconds, &status)
    if failure != 0, failure != ETIMEDOUT {
      throw ToolError.failure("cannot run this program once more: \(errorText(failure))")
    }
    return DeadlockedDinner(
      status: failure == 0 ? Int(status) : nil,
      report: String(decoding: bytes.prefix(size).map { UInt8(bitPattern: $0) }, as: UTF8.self))
  }

  /// The first line, without the name of the library.
  var title: String? {
    report.split(separator: "\n").first { $0.hasPrefix("weft: deadlock") }
      .map { String($0.dropFirst("weft: ".count)) }
  }

  /// The philosophers of `fiber #3 "philosopher 1" (made at ...) waits for ...`, by their seats:
  /// the report has them as they came.
  var waiting: [Waiting] {
    let found = report.split(separator: "\n").compactMap { line -> (Int, Waiting)? in
      guard let name = line.split(separator: "\"").dropFirst().first,
        let seat = Int(name.drop { !$0.isNumber }), name.hasPrefix("philosopher"),
        let reason = line.firstRange(of: " waits for ")
      else { return nil }
      return (seat, Waiting(name: String(name), reason: String(line[reason.upperBound...])))
    }
    return found.sorted { $0.0 < $1.0 }.map { $1 }
  }

  func lines(columns: Int) -> [String] {
    wrapped(
      "Each takes the left fork first. Run in a process of its own, Weft ended it:", to: columns)
      + [""] + wrapped(title ?? "(no report)", to: columns)
      + waiting.map { "  \($0.name) waits for \($0.reason)" } + [""]
      + wrapped(
        "By two other rules nobody waits for ever. How often each has eaten:", to: columns)
  }

  var member: JSON.Member {
    JSON.Member(
      key: "deadlock",
      value: [
        "status": .optional(status),
        "waiting": .array(
          waiting.map { ["name": .string($0.name), "for": .string($0.reason)] }),
      ])
  }

  /// What is wrong, if it did not end as it should.
  func problem(_ plan: DiningDemo.Plan) -> String? {
    guard let status else {
      return "taking the left fork first, they did not end within "
        + "\(DeadlockedDinner.patienceMilliseconds / 1000) s, with or without a deadlock"
    }
    if status == 2, title != nil, waiting.count == plan.philosophers { return nil }
    return "taking the left fork first ended with exit code \(status) and no report that names "
      + "\(plan.philosophers) philosophers"
  }
}
