// Starting other programs and reading what they print.

import BenchKit
import BenchVariants

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What a program that has ended leaves.
struct Finished {
  /// Its exit code, or 128 and the signal that ended it, as a shell counts.
  let code: Int
  /// All that it printed.
  let text: String
}

enum Processes {
  /// Whether a program is on the path.
  static func isInstalled(_ program: String) -> Bool {
    // SAFETY: getenv returns C text, or nil, which is copied before anything sets a variable.
    let path = unsafe getenv("PATH").map { unsafe String(cString: $0) } ?? ""
    return path.split(separator: ":").contains { folder in
      // SAFETY: the string lives as C text for the duration of the call.
      unsafe access("\(folder)/\(program)", X_OK) == 0
    }
  }

  /// Where this program is.
  static var ownPath: String {
    // SAFETY: realpath returns C text that is to be freed, or nil.
    guard let path = unsafe realpath("/proc/self/exe", nil) else { return CommandLine.arguments[0] }
    defer { unsafe free(path) }
    return unsafe String(cString: path)
  }

  /// Runs a program to its end, for so many seconds at most.
  ///
  /// - Parameters:
  ///   - withErrors: whether what it prints to standard error is to be part of the text.
  ///   - isPinned: whether it may use one processor only.
  static func run(
    _ arguments: [String], seconds: Int, withErrors: Bool = false, isPinned: Bool = false
  ) throws -> Finished {
    let (process, output) = try start(arguments, withErrors: withErrors, isPinned: isPinned)
    defer { close(output) }
    let text = readAll(output, until: .now + .seconds(seconds))
    // What it has started itself ends when it finds nobody to print to.
    if text == nil { kill(process, SIGKILL) }
    let code = wait(for: process)
    guard let text else { throw PeerError("it ran for more than \(seconds) s") }
    return Finished(code: code, text: text)
  }

  private static func start(
    _ arguments: [String], withErrors: Bool, isPinned: Bool
  ) throws -> (process: pid_t, output: Int32) {
    var (process, output): (Int32, Int32) = (-1, -1)
    // SAFETY: copies that are freed below, after the only use.
    let words = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    // SAFETY: the list ends with nil, and both numbers are there for the call.
    let isStarted = unsafe bench_run_program(words, withErrors, isPinned, &process, &output)
    guard isStarted else {
      throw PeerError("\(arguments[0]) can't be started" + (isPinned ? " on one processor" : ""))
    }
    return (process, output)
  }

  /// All text up to the end, or nil if that does not come in time.
  private static func readAll(_ output: Int32, until end: SuspendingClock.Instant) -> String? {
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      let left = SuspendingClock.now.duration(to: end)
      guard left > .zero else { return nil }
      var event = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      // SAFETY: one event is there for the call.
      guard unsafe poll(&event, 1, Int32(left / .milliseconds(1)) + 1) > 0 else { continue }
      // SAFETY: the pointer is used within the closure only, for as many bytes as there are.
      let count = unsafe chunk.withUnsafeMutableBytes { buffer in
        unsafe read(output, buffer.baseAddress!, buffer.count)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return String(decoding: content, as: UTF8.self) }
      content += chunk[..<count]
    }
  }

  private static func wait(for process: pid_t) -> Int {
    var status: Int32 = 0
    // SAFETY: the number is there for the call.
    while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7F
    return Int(signal == 0 ? status >> 8 & 0xFF : 128 + signal)
  }
}
