// Regression guard: counts of instructions, which a copy of this program executes one by one.

import BenchKit
import BenchVariants
import Weft

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The argument by which a copy knows that its instructions are counted. Not for users.
let countArgument = "--serve-count"

/// What a copy of this program does for another, and its exit code; nil if this is no copy.
func serveChild() -> Int32? {
  let arguments = Array(CommandLine.arguments.dropFirst())
  switch arguments.first {
  case startArgument: return 0
  case startSchedulerArgument:
    Scheduler.run {}
    return 0
  case countArgument where arguments.count == 2:
    do {
      try countedOperations.first { $0.name == arguments[1] }?.run()
      return 0
    } catch {
      fail("\(arguments[1]): \(error)")
    }
  default: return nil
  }
}

extension Counts.Kind {
  /// This build.
  static var current: Counts.Kind {
    let machine = Machine.current
    return Counts.Kind(
      system: machine.system, architecture: machine.architecture, compiler: compilerName,
      build: machine.build)
  }
}

/// Swift says its version to `#if` only. Releases that only mend something share a name; the notes
/// tell them apart.
private var compilerName: String {
  #if compiler(>=6.6)
    "swift-after-6.5"
  #elseif compiler(>=6.5)
    "swift6.5"
  #elseif compiler(>=6.4)
    "swift6.4"
  #elseif compiler(>=6.3)
    "swift6.3"
  #else
    "swift6.2"
  #endif
}

private func notes() -> [String: String] {
  // SAFETY: both are text that stays.
  unsafe [
    "C library": String(cString: bench_c_library()),
    "C compiler": String(cString: bench_c_compiler()),
    "thread words": RuntimeInfo.current.threadWords.rawValue,
  ]
}

/// Past this an operation is taken as endless: the dearest takes some hundred thousand.
private let instructionsMax: UInt64 = 5_000_000

/// Instructions of one such operation.
private func instructions(of operation: CountedOperation) -> Double {
  var spans: [UInt64] = [0, 0]
  // SAFETY: the buffer has room for as many counts as there are spans.
  let outcome = unsafe spans.withUnsafeMutableBufferPointer { buffer in
    unsafe bench_count_instructions(
      countArgument, operation.name, instructionsMax, UInt32(buffer.count),
      buffer.baseAddress.unsafelyUnwrapped)
  }
  switch Int(outcome) {
  case BENCH_COUNT_DONE: break
  case BENCH_COUNT_REFUSED:
    fail("skipped: no process may trace another here (ptrace)", code: ExitCode.impossible)
  case BENCH_COUNT_ENDLESS:
    fail("\(operation.name) took more than \(instructionsMax) instructions")
  default: fail("\(operation.name) could not be counted")
  }
  guard spans[1] > spans[0] else { fail("\(operation.name): \(spans) instructions make no sense") }
  return Double(spans[1] - spans[0]) / Double(operation.count)
}

private func count(_ options: Options) -> Counts {
  var line = ProgressLine()
  let operations = countedOperations.filter { options.accepts($0.name) }
  var counts: [String: Double] = [:]
  for (index, operation) in operations.enumerated() {
    line.show(
      fraction: Double(index) / Double(operations.count), group: operation.name,
      job: operation.name)
    counts[operation.name] = instructions(of: operation)
  }
  line.clear()
  return Counts(kind: .current, notes: notes(), counts: counts)
}

/// The file that is meant: in a folder, that of this architecture and compiler.
private func baselineFile(_ path: String) -> String {
  var status = stat()
  // SAFETY: the text and the struct are there for the call.
  guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return path }
  return path + "/" + Counts.Kind.current.fileName
}

private func readCounts(_ path: String) -> Counts {
  do { return try Counts(json: try JSON(parsing: try readFile(path))) } catch let error as FileError
    where error.code == ENOENT
  {
    fail(
      "skipped: there is no baseline \(path). To make it: \(Counts.command)",
      code: ExitCode.impossible)
  } catch {
    fail(error is FileError ? "\(error)" : "\(path): \(error)")
  }
}

/// `--count`. Returns the exit code.
func countInstructions(_ options: Options) -> Int32 {
  guard countedOperations.contains(where: { options.accepts($0.name) }) else {
    let names = countedOperations.map(\.name).joined(separator: ", ")
    fail("no operation is called like that; there are \(names)", code: ExitCode.usage)
  }
  #if DEBUG
    Console.note("weft-bench: a debug build; the counts mean little\n")
  #endif
  // Before the counting: a bad file should be known at once.
  let baseline = options.baseline.map { readCounts(baselineFile($0)) }
  let counts = count(options)
  do {
    if let path = options.saveBaseline { try writeFile(baselineFile(path), counts.json.text) }
    guard let baseline else {
      Console.print(Tables.counts(counts))
      return 0
    }
    let comparison = try CountComparison(
      old: baseline, new: counts, thresholdPercent: options.thresholdPercent,
      filter: options.accepts)
    Console.print(Tables.counts(comparison))
    return comparison.isFine ? 0 : ExitCode.checkFailed
  } catch {
    fail("\(error)")
  }
}
