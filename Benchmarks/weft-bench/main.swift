import BenchKit

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Exit codes, as the help lists them.
enum ExitCode {
  static let failure: Int32 = 1
  static let checkFailed: Int32 = 2
  static let usage: Int32 = 64
  /// Nothing could be checked, which is no success.
  static let impossible: Int32 = 77
}

func fail(_ message: String, code: Int32 = ExitCode.failure) -> Never {
  Console.note("weft-bench: \(message)\n")
  exit(code)
}

func parseOptions() -> Options {
  do { return try Options(Array(CommandLine.arguments.dropFirst())) } catch {
    fail("\(error). See --help.", code: ExitCode.usage)
  }
}

/// Reads the older report first, so that a bad file is known before a minute of measuring.
func readBaseline(_ path: String) -> Report {
  do { return try Report(json: try JSON(parsing: try readFile(path))) } catch {
    fail(error is FileError ? "\(error)" : "\(path): \(error)")
  }
}

/// Whether a job is to run.
func isWanted(_ name: String, _ options: Options) -> Bool {
  let isTooSlow = options.quick && options.filters.isEmpty && slowJobs.contains(name)
  return options.accepts(name) && !isTooSlow
}

func measure(_ options: Options) -> Report {
  var line = ProgressLine()
  var runner = Runner(settings: options.settings) { progress in
    line.show(fraction: progress.fraction, group: progress.group, job: progress.job)
  }
  do {
    let (jobs, relations) = try runner.run(suite) { isWanted($0, options) }
    line.clear()
    for (name, reason) in runner.skipped {
      Console.note("weft-bench: \(name) was left out: \(reason)\n")
    }
    return Report(
      version: version, machine: .current, settings: options.settings, jobs: jobs,
      relations: relations)
  } catch {
    line.clear()
    fail("\(error)")
  }
}

func show(_ report: Report, _ options: Options) {
  if options.json {
    Console.print(report.json.text)
    return
  }
  let machine = report.machine
  Console.print(
    "\(machine.processor), \(machine.processors) processors, \(machine.system) "
      + "\(machine.architecture), \(machine.build) build\n\n")
  Console.print(Tables.figures(report.jobs))
  if !report.relations.isEmpty { Console.print("\n" + Tables.relations(report.relations)) }
}

func writeFiles(_ report: Report, _ options: Options) {
  do {
    if let path = options.save { try writeFile(path, report.json.text) }
    if let path = options.chart {
      let chart = Chart(report)
      try writeFile(path, path.hasSuffix(".html") ? chart.html : chart.svg)
    }
  } catch {
    fail("\(error)")
  }
}

/// Prints the comparison and returns the exit code. With --json it goes to standard error, so
/// that standard output stays one JSON value.
func compare(_ report: Report, with baseline: Report, _ options: Options) -> Int32 {
  do {
    let comparison = try Comparison(old: baseline, new: report) { isWanted($0, options) }
    let text = Tables.comparison(comparison, thresholdPercent: options.thresholdPercent)
    if options.json { Console.note(text) } else { Console.print("\n" + text) }
    let past = comparison.past(thresholdPercent: options.thresholdPercent)
    return past.isEmpty ? 0 : ExitCode.checkFailed
  } catch {
    fail("\(error)")
  }
}

func run() -> Int32 {
  // A closed pipe then shows as an error of write(), which Console takes as the end.
  signal(SIGPIPE, SIG_IGN)
  if CommandLine.arguments.dropFirst() == [serveArgument] {
    OneProcessor.serve()
    return 0
  }
  if CommandLine.arguments.dropFirst().first == peerArgument {
    return OwnPeer.run(Array(CommandLine.arguments.dropFirst(2)))
  }
  if let code = serveChild() { return code }
  let options = parseOptions()
  if options.help {
    Console.print(help)
    return 0
  }
  if options.version {
    Console.print("weft-bench \(version)\n")
    return 0
  }
  if !options.peers.isEmpty { return Peers(options).run() }
  if options.count { return countInstructions(options) }
  guard suite.contains(where: { $0.jobs.contains { options.accepts($0.name) } }) else {
    fail("no job is called like that; --list names them", code: ExitCode.usage)
  }
  if options.list {
    Console.print(Tables.list(suite, filter: options.accepts))
    return 0
  }
  #if DEBUG
    Console.note("weft-bench: a debug build; the figures mean little\n")
  #endif
  let baseline = options.compare.map(readBaseline)
  let report = measure(options)
  show(report, options)
  writeFiles(report, options)
  var code: Int32 = 0
  if let baseline { code = compare(report, with: baseline, options) }
  if options.strict, report.relations.contains(where: { $0.verdict == .missed }) {
    Console.note("weft-bench: a goal was missed\n")
    code = ExitCode.checkFailed
  }
  return code
}

exit(run())
