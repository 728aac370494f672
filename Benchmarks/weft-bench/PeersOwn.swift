// Weft's own side of the table beside other runtimes: this program, started like theirs.

import BenchKit

/// The argument by which a copy of this program knows that it is one of the peers. After it come a
/// job, the number of workers and that of samples; and --quick, for jobs of the peers' size.
/// Not for users.
let peerArgument = "--serve-peer"

enum OwnPeer {
  /// Where the jobs of the table are among those of weft-bench. Fibers yield at different places
  /// in the code, the harder case. Leaves and fibers are as many as --quick has of them.
  private static let names = [
    "pool.yield.two": "pool.yield.two.different",
    "pool.yield.thousand": "pool.yield.thousand.different",
    "pool.fanout": "pool.fanout.dropped",
  ]

  /// Those that weft-bench itself does with other numbers.
  private static let extraJobs: [Job] =
    ["p50", "p99"].flatMap { figure in
      (1...2).map { workers in
        Job(
          "pool.sleepers.\(figure).w\(workers)", "10,000 fibers sleep.", unit: "µs",
          excludes: "nothing", purpose: .claim,
          method: .gauge(samples: 1) {
            let figures = try sleepingFibers(10_000, workers: workers)
            guard let value = figures[figure] else { throw CheckFailure("no \(figure)") }
            return value
          })
      }
    }

  /// All jobs of the table.
  static var jobNames: Set<String> { Set(PeerJob.all.map(\.name)) }

  /// Prints a line for each sample, as a peer's program does, and returns the exit code.
  static func run(_ arguments: [String]) -> Int32 {
    guard arguments.count >= 3, let workers = Int(arguments[1]), let count = Int(arguments[2]),
      let row = PeerJob.all.first(where: { $0.name == arguments[0] && $0.workers == workers }),
      let job = job(of: row)
    else { fail("this is no job beside peers: \(arguments)", code: ExitCode.usage) }
    do {
      let factor = row.unit == "B each" ? Double(pageBytes) : 1
      for sample in try samples(of: job, count) {
        Console.print("\(sample * factor) \(row.unit)\n")
      }
      return 0
    } catch {
      fail("\(job.name): \(error)")
    }
  }

  private static func job(of row: PeerJob) -> Job? {
    let name = names[row.name] ?? row.name
    let full = [name, "\(name).w\(row.workers)"]
    return (extraJobs + suite.flatMap(\.jobs)).first { full.contains($0.name) }
  }

  /// Like the other programs: samples of 20 ms at least, after trials that warm up. Work of a
  /// fixed size runs once before; what is measured once in a process is measured once.
  private static func samples(of job: Job, _ count: Int) throws -> [Double] {
    switch job.method {
    case .timed(let measure):
      var size = 1000
      while try measure(size) < 20e6 { size *= 2 }
      return try (0..<count).map { _ in
        try measure(size) / (Double(size) * job.perIteration)
      }
    case .gauge(_, let measure):
      guard job.unit.hasPrefix("ns") else { return [try measure()] }
      _ = try measure()
      return try (0..<count).map { _ in try measure() }
    }
  }
}
