import Glibc
import Weft

/// Starts this program anew with one more environment variable, unless it was started with it.
///
/// For exit tests of what a runtime reads before `main`: the new image finds the arguments and the
/// environment that the test library gave to the old one, and so runs the same test. What it writes
/// before it comes here again is dropped: the library marks the beginning of each stream, once.
public func restartOnce(with name: String, _ value: String) {
  var entries = strings(fileBytes("/proc/self/environ"))
  let wanted = "\(name)=\(value)"
  if entries.contains(wanted) {
    for stream in 1...2 {
      guard let kept = environmentNumber("WEFT_TEST_STREAM_\(stream)") else { continue }
      dup2(Int32(kept), Int32(stream))
    }
    return
  }
  entries.removeAll { $0.hasPrefix("\(name)=") }
  entries.append(wanted)
  // SAFETY: the path lives as long as the call.
  let nowhere = unsafe open("/dev/null", O_WRONLY)
  for stream in 1...2 {
    entries.append("WEFT_TEST_STREAM_\(stream)=\(dup(Int32(stream)))")
    dup2(nowhere, Int32(stream))
  }
  let arguments = strings(fileBytes("/proc/self/cmdline"))
  // SAFETY: both arrays end in null; the strings live until the image is replaced.
  unsafe withCStrings(arguments) { arguments in
    unsafe withCStrings(entries) { entries in
      _ = unsafe execve("/proc/self/exe", arguments, entries)
    }
  }
  fatalError("the program could not be started anew: errno \(errno)")
}

private func strings(_ bytes: [UInt8]) -> [String] {
  bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
    .map { String(decoding: $0, as: UTF8.self) }
}

private func withCStrings(
  _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Void
) {
  // SAFETY: each copy is freed below, after the call.
  var pointers = unsafe strings.map { unsafe strdup($0) } + [nil]
  unsafe body(&pointers)
  unsafe pointers.forEach { unsafe free($0) }
}

/// A number from the environment, for runs that are longer or that repeat a seed.
public func environmentNumber(_ name: String) -> UInt64? {
  // SAFETY: the string is copied at once.
  guard let text = unsafe getenv(name) else { return nil }
  return UInt64(unsafe String(cString: text))
}

/// The sanitizer that is built in: "address" or "thread".
public let sanitizer = RuntimeInfo.current.sanitizer

/// How many of something: fewer where a sanitizer makes each expensive. Thread sanitizer knows
/// some 8,000 fibers at a time.
public func count(_ plain: Int, sanitized: Int) -> Int { sanitizer == nil ? plain : sanitized }
