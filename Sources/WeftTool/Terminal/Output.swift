// Output.swift - writing to a file descriptor, with a closed pipe told apart from a failure.

/// Why text could not be written.
enum OutputError: Error, Equatable {
  /// Nobody reads any more. The tool ends quietly.
  case closed
  /// Anything else, such as a full disk.
  case failed(errno: Int32)
}

/// A file descriptor that text goes to, unbuffered: whoever calls gives whole pictures or lines.
struct Output {
  let descriptor: Int32

  static let standard = Output(descriptor: STDOUT_FILENO)
  static let error = Output(descriptor: STDERR_FILENO)

  var isTerminal: Bool { isatty(descriptor) == 1 }

  func write(_ text: String) throws(OutputError) {
    var text = text
    let failure: Int32 = text.withUTF8 { bytes in
      // SAFETY: `bytes` is valid within this closure, and the loop stays inside it.
      unsafe Output.writeAll(bytes, to: descriptor)
    }
    if failure == EPIPE { throw .closed }
    if failure != 0 { throw .failed(errno: failure) }
  }

  func line(_ text: String = "") throws(OutputError) {
    try write(text + "\n")
  }

  private static func writeAll(_ bytes: UnsafeBufferPointer<UInt8>, to descriptor: Int32) -> Int32 {
    var done = 0
    while done < bytes.count {
      // SAFETY: `done` is less than the count, so the range lies inside the buffer.
      let rest = unsafe UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[done...])
      // SAFETY: base address and count are those of the live buffer `rest`.
      let count = unsafe systemWrite(descriptor, rest.baseAddress, rest.count)
      if count >= 0 {
        done += count
      } else if errno != EINTR {
        return errno
      }
    }
    return 0
  }

  private static func systemWrite(
    _ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int
  ) -> Int {
    #if canImport(Glibc)
      // SAFETY: the caller passes a live buffer.
      return unsafe Glibc.write(descriptor, start, count)
    #else
      // SAFETY: the caller passes a live buffer.
      return unsafe Darwin.write(descriptor, start, count)
    #endif
  }
}
