// Weft beside other runtimes: builds their programs, runs them and this one in turns.

import BenchKit

/// One run of --peers.
struct Peers {
  /// For a build, and for one start of a program.
  private static let buildSeconds = 300
  private static let runSeconds = 60
  /// Samples that one start of a program takes.
  private static let samples = 3

  private let options: Options
  private let places: PeerPlaces
  private let jobs: [PeerJob]

  init(_ options: Options) {
    self.options = options
    // Beside this file, and beside this program, which the package's scratch folder has.
    places = PeerPlaces(
      sources: parent(parent(#filePath)) + "/Peers", output: parent(Processes.ownPath) + "/peers")
    jobs = PeerJob.all.filter { options.accepts($0.title) }
  }

  /// Does all of it, and returns the exit code.
  func run() -> Int32 {
    guard !jobs.isEmpty else {
      fail("no row is called like that; --peers LIST --list names them", code: ExitCode.usage)
    }
    if options.list {
      Console.print(Tables.list(jobs))
      return 0
    }
    do {
      let report = try measure()
      show(report)
      try write(report)
      return report.runtimes.count > 1 ? 0 : ExitCode.failure
    } catch {
      fail("\(error)")
    }
  }

  private func measure() throws -> PeerReport {
    _ = try Processes.run(["mkdir", "-p", places.output], seconds: 10)
    var omissions: [PeerOmission] = []
    var runtimes = [PeerRuntime(name: PeerRow.weft, version: version, jobs: OwnPeer.jobNames)]
    for recipe in PeerRecipe.all where options.peers.contains(recipe.name) {
      do { runtimes.append(try prepare(recipe)) } catch {
        omissions.append(PeerOmission(what: recipe.name, reason: "\(error)"))
      }
    }
    Console.note(Tables.omissions(omissions))
    var line = ProgressLine()
    var runner = PeerRunner(rounds: options.peerRounds) { progress in
      line.show(
        fraction: progress.fraction, group: progress.group,
        job: "\(progress.job) \(progress.group)")
    } start: { runtime, job in
      try start(runtime, job)
    }
    let rows = runtimes.count > 1 ? runner.run(jobs, with: runtimes) : []
    line.clear()
    return PeerReport(
      version: version, machine: .current, rounds: options.peerRounds, runtimes: runtimes,
      rows: rows, omissions: omissions + runner.omissions)
  }

  /// Builds a peer, and asks it what it can do.
  private func prepare(_ recipe: PeerRecipe) throws -> PeerRuntime {
    if let reason = recipe.missing(isInstalled: Processes.isInstalled) {
      throw PeerError(reason)
    }
    let versionText = try Processes.run(recipe.version, seconds: 60, withErrors: true).text
    if let reason = recipe.unsuitable(versionText: versionText) { throw PeerError(reason) }
    Console.note("weft-bench: building \(recipe.name)\n")
    for command in recipe.build(places) {
      let built = try Processes.run(command, seconds: Peers.buildSeconds, withErrors: true)
      guard built.code == 0 else {
        throw PeerError(
          "not built: \(PeerRecipe.failureLine(built.text)); it needs \(recipe.needs)")
      }
    }
    let list = try Processes.run(recipe.command(places, 1) + ["--list"], seconds: 60)
    guard list.code == 0 else { throw PeerError("its list of jobs: exit code \(list.code)") }
    return PeerRuntime(
      name: recipe.name, version: PeerRecipe.versionLine(versionText),
      jobs: PeerProtocol.list(list.text))
  }

  private func start(_ runtime: PeerRuntime, _ job: PeerJob) throws -> [Double] {
    let recipe = PeerRecipe.all.first { $0.name == runtime.name }
    let program = recipe?.command(places, job.workers) ?? [Processes.ownPath, peerArgument]
    let words = ["\(job.name)", "\(job.workers)", "\(Peers.samples)"]
    // Weft's jobs of a fixed size are as large as the peers' with --quick.
    let command = program + words + (recipe == nil ? ["--quick"] : [])
    let finished = try Processes.run(
      command, seconds: Peers.runSeconds, isPinned: job.workers == 1 && recipe?.isPinned == true)
    guard finished.code == 0 else { throw PeerError("exit code \(finished.code)") }
    return try PeerProtocol.samples(finished.text, of: job)
  }

  private func show(_ report: PeerReport) {
    if options.json {
      Console.print(report.json.text)
      return
    }
    let machine = report.machine
    Console.print(
      "\(machine.processor), \(machine.processors) processors, \(machine.system) "
        + "\(machine.architecture), \(report.rounds) rounds of \(Peers.samples) samples\n\n")
    Console.print(Tables.peers(report))
  }

  private func write(_ report: PeerReport) throws {
    if let path = options.save { try writeFile(path, report.json.text) }
    if let path = options.chart {
      let chart = Chart(report.chartable)
      try writeFile(path, path.hasSuffix(".html") ? chart.html : chart.svg)
    }
  }
}

/// The folder that a path is in.
private func parent(_ path: String) -> String {
  guard let slash = path.lastIndex(of: "/") else { return "." }
  return String(path[..<slash])
}
