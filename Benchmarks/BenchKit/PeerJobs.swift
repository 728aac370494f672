// What is measured beside other runtimes, and the protocol of the programs that do it.

/// A job that programs of several runtimes can do: a row of the table.
public struct PeerJob: Equatable, Sendable {
  /// Its name, as the programs know it.
  public let name: String
  /// How many workers the runtime may use.
  public let workers: Int
  /// The name of the row: with the workers where there is a row for each number of them.
  public let title: String
  /// What one is counted in.
  public let unit: String
  /// What it does, in one sentence.
  public let summary: String

  /// A job. `rows` are the numbers of workers for which there is a row.
  init(_ name: String, workers: Int, rows: [Int], unit: String, _ summary: String) {
    self.name = name
    self.workers = workers
    self.unit = unit
    self.summary = summary
    title = rows.count > 1 ? "\(name).w\(workers)" : name
  }

  /// All of them, in the order of the table.
  public static let all: [PeerJob] =
    rows(
      "coroutine.int", [1], "ns/round trip",
      "A coroutine: one resume and one yield, a value each way.")
    + rows("generator.int", [1], "ns/element", "A generator hands over numbers one by one.")
    + rows("pool.yield.two", [1, 2], "ns/yield", "Two tasks yield in turns.")
    + rows("pool.yield.thousand", [1, 2], "ns/yield", "A thousand tasks yield in turns.")
    + rows("pool.spawn.join", [1, 2], "ns each", "Start a task and wait for it, one by one.")
    + rows("pool.fanout", [1, 2], "ns each", "Start 100,000 tasks, then wait for all.")
    + rows(
      "pool.skynet", [1, 2], "ns/task",
      "A tree of tasks, ten children each, 100,000 leaves, whose numbers are added up.")
    + rows(
      "sync.rendezvous", [1, 2], "ns/round trip",
      "A number to another task and back, each time from hand to hand.")
    + rows(
      "sync.channel.1to1", [1, 2], "ns/element",
      "Through a channel with room for 128, one sends and one receives.")
    + rows(
      "sync.channel.4to4", [1, 2], "ns/element", "The same, four send and four receive.")
    + rows(
      "sync.select.4", [1, 2], "ns/element",
      "Wait for one of four unbuffered channels, to which another task sends in turn.")
    + rows(
      "sync.select.4.buffered", [1, 2], "ns/element",
      "The same with room for one in each, and a task that sends to each.")
    + rows("sync.mutex.alone", [1], "ns", "Lock, add, unlock, by one task.")
    + rows("sync.mutex.four", [1, 2], "ns", "The same by four tasks on one lock.")
    + rows(
      "pool.memory.parked", [1], "B each",
      "Resident memory of each of 100,000 parked tasks (10,000 kernel threads).")
    + rows(
      "pool.sleepers.p50", [2], "µs",
      "10,000 tasks sleep for 10 to 1,000 ms each: how late half of them wake at most.")
    + rows("pool.sleepers.p99", [2], "µs", "The same: how late 99 of 100 wake at most.")

  private static func rows(
    _ name: String, _ workers: [Int], _ unit: String, _ summary: String
  ) -> [PeerJob] {
    workers.map { PeerJob(name, workers: $0, rows: workers, unit: unit, summary) }
  }
}

/// An answer of a peer's program that makes no sense.
public struct PeerError: Error, Equatable, CustomStringConvertible, Sendable {
  /// What went wrong, in a few words.
  public let description: String

  /// An error with a few words for the user.
  public init(_ description: String) { self.description = description }
}

/// How the programs answer. All know `program JOB WORKERS REPEAT`, which prints a `value unit`
/// line for each sample, and `program --list`, which prints the names of their jobs.
public enum PeerProtocol {
  /// The samples in an answer, which must be in the unit of the job.
  public static func samples(_ text: String, of job: PeerJob) throws(PeerError) -> [Double] {
    var samples: [Double] = []
    for line in text.split(whereSeparator: \.isNewline) {
      let parts = line.split(separator: " ", maxSplits: 1)
      guard parts.count == 2, let value = Double(parts[0]), value.isFinite, value >= 0 else {
        throw PeerError("'\(line)' is no value with a unit")
      }
      guard parts[1] == job.unit else {
        throw PeerError("it counts in '\(parts[1])', not in '\(job.unit)'")
      }
      samples.append(value)
    }
    guard !samples.isEmpty else { throw PeerError("it printed nothing") }
    return samples
  }

  /// The names in a list of jobs.
  public static func list(_ text: String) -> Set<String> {
    Set(text.split(whereSeparator: \.isNewline).map(String.init))
  }
}
