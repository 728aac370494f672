// Output, files and the terminal, by system calls: this program links no Foundation.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What went wrong with a file.
struct FileError: Error, CustomStringConvertible {
  let description: String
  var code: Int32 = 0
}

enum Console {
  /// Results go to standard output.
  static func print(_ text: String) { write(text, to: STDOUT_FILENO) }

  /// Everything else goes to standard error.
  static func note(_ text: String) { write(text, to: STDERR_FILENO) }

  /// Whether a progress line would be seen.
  static let showsProgress = isatty(STDERR_FILENO) != 0

  /// Ends quietly with an exit code where the reader of a pipe has left.
  private static func write(_ text: String, to descriptor: Int32) {
    do throws(FileError) { try writeAll(text, to: descriptor) } catch {
      exit(error.code == EPIPE ? 0 : 1)
    }
  }
}

/// Writes all of a text, however many pieces it takes.
func writeAll(_ text: String, to descriptor: Int32) throws(FileError) {
  let bytes = Array(text.utf8)
  var offset = 0
  while offset < bytes.count {
    // SAFETY: the pointer is used within the closure only, and `offset` is less than the count.
    let written = unsafe bytes.withUnsafeBytes { buffer in
      unsafe write(descriptor, buffer.baseAddress! + offset, buffer.count - offset)
    }
    if written < 0, errno == EINTR { continue }
    guard written > 0 else {
      let code = errno
      throw FileError(description: errorText(code), code: code)
    }
    offset += written
  }
}

/// Replaces a file's content.
func writeFile(_ path: String, _ text: String) throws {
  // SAFETY: the string lives as C text for the duration of the call.
  let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
  guard descriptor >= 0 else { throw FileError(description: "\(path): \(errorText(errno))") }
  defer { close(descriptor) }
  do { try writeAll(text, to: descriptor) } catch {
    throw FileError(description: "\(path): \(error)")
  }
}

/// The whole text of a file.
func readFile(_ path: String) throws -> String {
  // SAFETY: the string lives as C text for the duration of the call.
  let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else {
    let code = errno
    throw FileError(description: "\(path): \(errorText(code))", code: code)
  }
  defer { close(descriptor) }
  var content: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    // SAFETY: the pointer is used within the closure only, for as many bytes as there are.
    let count = unsafe chunk.withUnsafeMutableBytes { buffer in
      unsafe read(descriptor, buffer.baseAddress!, buffer.count)
    }
    if count < 0, errno == EINTR { continue }
    guard count >= 0 else { throw FileError(description: "\(path): \(errorText(errno))") }
    if count == 0 { return String(decoding: content, as: UTF8.self) }
    content += chunk[..<count]
  }
}

/// The text of a system error.
private func errorText(_ code: Int32) -> String {
  // SAFETY: strerror returns C text that stays until the next call on this thread.
  unsafe String(cString: strerror(code))
}

/// One line that says how far the run is, drawn over itself and only on a terminal.
struct ProgressLine {
  private var lastPercent = -1
  private var lastGroup = ""

  mutating func show(fraction: Double, group: String, job: String) {
    let percent = Int(fraction * 100)
    guard Console.showsProgress, percent != lastPercent || group != lastGroup else { return }
    (lastPercent, lastGroup) = (percent, group)
    let filled = percent / 5
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 20 - filled)
    Console.note("\r\u{1B}[K[\(bar)] \(percent) %  \(job)")
  }

  func clear() {
    if Console.showsProgress { Console.note("\r\u{1B}[K") }
  }
}
