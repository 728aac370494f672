// What the stress tests have in common.
//
// Each runs in an exit test: a process of its own, in which it may change limits, signals and
// processors, and in which nobody else starts threads or opens files, so that what is left at the
// end can be counted (LeakAccount).

import Glibc
import Testing
import Weft

@_exported import WeftTestSupport

/// All of them, one after the other: they are after the processors.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct StressTests {}

/// How long each goes on: WEFT_STRESS_SECONDS, or long enough for a look.
let stressTime = Duration.seconds(
  environment("WEFT_STRESS_SECONDS").flatMap { Double($0) } ?? 0.3)

/// In an exit test: runs a function on a thread that blocks no signals and is no Swift task's, as
/// the thread of a program would be. What it throws is an issue: thrown from here, it would end the
/// process before anybody heard of it. One that takes far too long is killed.
func asStress(
  at location: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable () throws -> Void
) {
  alarm(UInt32(60 + 4 * (stressTime / .seconds(1))))
  let outcome = Box<Result<Void, any Error>?>(nil)
  onThread {
    unblockSignals()
    let result = Result { try body() }
    outcome.value = result
  }
  do {
    try outcome.value?.get()
  } catch {
    Issue.record("\(error)", sourceLocation: location)
  }
}

/// Writes to standard error, which the parent of an exit test shows.
func complain(_ text: String) {
  var text = text + "\n"
  text.withUTF8 { bytes in
    // SAFETY: within the buffer.
    _ = unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count)
  }
}

/// Says that something does not hold.
struct Broken: Error, CustomStringConvertible {
  let description: String
}

/// Throws unless something holds.
func check(_ holds: Bool, _ what: @autoclosure () -> String) throws {
  if !holds { throw Broken(description: what()) }
}

/// Expects that Weft had nothing to say: a deadlock would be reported, and so would be an error
/// that nobody looked at. Nil where the process has failed already.
func expectQuiet(
  _ result: ExitTest.Result?, at location: SourceLocation = #_sourceLocation
) {
  let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  let lines = text.split(separator: "\n").filter { line in
    // A busy machine, or a sanitizer, keeps fibers from yielding.
    line.hasPrefix("weft:") && !line.hasPrefix("weft:   ") && !line.contains("has not yielded")
  }
  #expect(lines.isEmpty, "\(text)", sourceLocation: location)
}
