// Supports claims: Swift's tasks on one processor, to compare with one worker.
//
// The width of the pool that runs tasks is fixed when a process starts, by the processors that it
// may use. So this program starts a copy of itself that may use only one, and has that do the
// work, a line for each request: a job and a count. While it works this process waits.

import BenchKit
import BenchVariants
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The argument by which the copy knows that it is one. Not for users.
let serveArgument = "--serve-one-processor"

/// The copy of this program that may use one processor only.
enum OneProcessor {
  private struct Pipes {
    let requests: Int32
    let answers: Int32
  }

  private static let pipes = Mutex<Pipes?>(nil)

  /// Lets the copy run a peer so often, and returns the nanoseconds that took.
  static func nanoseconds(_ peer: String, _ count: Int) throws -> Double {
    try pipes.withLock { pipes in
      let open = try pipes ?? start()
      pipes = open
      try writeAll("\(peer) \(count)\n", to: open.requests)
      guard let answer = try readLine(from: open.answers) else {
        throw CheckFailure("the process on one processor has ended")
      }
      guard let elapsed = Double(answer) else { throw CheckFailure(answer) }
      return elapsed
    }
  }

  /// Answers requests until there are no more: what the copy does.
  static func serve() {
    while let request = try? readLine(from: STDIN_FILENO) {
      let words = request.split(separator: " ")
      guard words.count == 2, let peer = taskPeers[String(words[0])], let count = Int(words[1])
      else { return }
      let answer: String
      do { answer = "\(try peer(count))" } catch { answer = "\(error)" }
      Console.print(answer + "\n")
    }
  }

  private static func start() throws -> Pipes {
    var (requests, answers): (Int32, Int32) = (-1, -1)
    // SAFETY: the string and both numbers are there for the call.
    guard unsafe bench_start_on_one_processor(serveArgument, &requests, &answers) else {
      throw Skipped("no process limited to one processor can be had here")
    }
    return Pipes(requests: requests, answers: answers)
  }
}

/// The next line of a descriptor, or nil at its end.
private func readLine(from descriptor: Int32) throws -> String? {
  var line: [UInt8] = []
  var byte: UInt8 = 0
  while true {
    // SAFETY: room for the one byte that is asked for.
    let count = unsafe read(descriptor, &byte, 1)
    if count < 0, errno == EINTR { continue }
    guard count == 1 else { return nil }
    if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
    line.append(byte)
  }
}
