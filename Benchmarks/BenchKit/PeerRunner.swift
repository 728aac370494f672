/// Runs the programs of several runtimes in turns.
public struct PeerRunner {
  /// Starts the program of a runtime for a job, and returns its samples.
  public typealias Start = (PeerRuntime, PeerJob) throws -> [Double]

  let rounds: Int
  let start: Start
  let progress: (Progress) -> Void
  /// What failed, as `runtime row`: it is not tried again.
  public private(set) var omissions: [PeerOmission] = []
  private var samples: [String: [Double]] = [:]

  /// A runner for so many rounds.
  public init(
    rounds: Int, progress: @escaping (Progress) -> Void = { _ in }, start: @escaping Start
  ) {
    self.rounds = rounds
    self.progress = progress
    self.start = start
  }

  /// Runs each job once with each runtime that has it, one after the other, and all of that again
  /// in each round: what disturbs the machine for a while disturbs a bit of every figure, not
  /// all of one. Each round begins with another runtime.
  public mutating func run(_ jobs: [PeerJob], with runtimes: [PeerRuntime]) -> [PeerRow] {
    for round in 0..<rounds {
      for (index, job) in jobs.enumerated() {
        let done = Double(round * jobs.count + index) / Double(rounds * jobs.count)
        for runtime in PeerRunner.turns(of: runtimes, in: round)
        where runtime.jobs.contains(job.name) {
          progress(Progress(group: runtime.name, job: job.title, fraction: done))
          take(job, with: runtime)
        }
      }
    }
    return jobs.compactMap { job in
      let cells = runtimes.compactMap { runtime in
        PeerCell(runtime: runtime.name, samples: samples[key(runtime, job)] ?? [])
      }
      return cells.isEmpty ? nil : PeerRow(job: job, cells: cells)
    }
  }

  /// The runtimes in the order of a round.
  static func turns(of runtimes: [PeerRuntime], in round: Int) -> [PeerRuntime] {
    guard !runtimes.isEmpty else { return [] }
    let first = round % runtimes.count
    return Array(runtimes[first...] + runtimes[..<first])
  }

  private mutating func take(_ job: PeerJob, with runtime: PeerRuntime) {
    let key = key(runtime, job)
    guard !omissions.contains(where: { $0.what == key }) else { return }
    do {
      samples[key, default: []] += try start(runtime, job)
    } catch {
      // Also what it did before: a program that fails now and then has no figure to trust.
      samples[key] = nil
      omissions.append(PeerOmission(what: key, reason: "\(error)"))
    }
  }

  private func key(_ runtime: PeerRuntime, _ job: PeerJob) -> String {
    "\(runtime.name) \(job.title)"
  }
}
