import BenchKit

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension Machine {
  /// The machine and the build at hand.
  static var current: Machine {
    #if os(Linux)
      let system = "linux"
    #elseif os(macOS)
      let system = "macos"
    #else
      let system = "other"
    #endif
    #if arch(x86_64)
      let architecture = "x86_64"
    #elseif arch(arm64)
      let architecture = "aarch64"
    #else
      let architecture = "other"
    #endif
    #if DEBUG
      let build = "debug"
    #else
      let build = "release"
    #endif
    return Machine(
      system: system, architecture: architecture, processor: processorName(),
      processors: sysconf(Int32(_SC_NPROCESSORS_ONLN)), build: build)
  }
}

/// PLATFORM: x86-64 Linux names the model in /proc/cpuinfo and tells it apart by family and model
/// number where a virtual machine hides the name; aarch64 Linux has numbers only.
private func processorName() -> String {
  guard let text = try? readFile("/proc/cpuinfo") else { return "unknown" }
  var fields: [String: String] = [:]
  for line in text.split(separator: "\n") {
    let parts = line.split(separator: ":", maxSplits: 1)
    guard parts.count == 2 else { continue }
    let name = trimmed(parts[0])
    if fields[name] == nil { fields[name] = trimmed(parts[1]) }
  }
  let model = fields["model name"] ?? fields["CPU part"] ?? "unknown"
  guard let family = fields["cpu family"], let number = fields["model"] else { return model }
  return "\(model) (family \(family), model \(number))"
}

private func trimmed(_ text: Substring) -> String {
  var text = text
  while let last = text.last, last.isWhitespace { text.removeLast() }
  return String(text.drop(while: \.isWhitespace))
}

/// The size of a page.
let pageBytes = sysconf(Int32(_SC_PAGESIZE))

/// How many bytes of this process are in memory.
///
/// PLATFORM: Linux; elsewhere nil, and the jobs that need it are left out.
func residentBytes() -> Int? {
  guard let text = try? readFile("/proc/self/statm") else { return nil }
  let fields = text.split(separator: " ")
  guard fields.count > 1, let pages = Int(fields[1]) else { return nil }
  return pages * pageBytes
}

/// How many bytes programs can still get without swapping.
///
/// PLATFORM: Linux; elsewhere nil.
func availableBytes() -> Int? {
  guard let text = try? readFile("/proc/meminfo") else { return nil }
  for line in text.split(separator: "\n") where line.hasPrefix("MemAvailable:") {
    guard let kibibytes = Int(line.split(separator: " ")[1]) else { return nil }
    return kibibytes << 10
  }
  return nil
}
