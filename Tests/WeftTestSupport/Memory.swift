import Glibc

/// Memory of this process that is in RAM, in bytes.
public func residentBytes() -> Int {
  // The second number is resident pages.
  let fields = fileText("/proc/self/statm").split(separator: " ")
  return Int(fields[1])! * Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// Address space of this process, in bytes.
public func addressSpaceBytes() -> Int {
  let fields = fileText("/proc/self/statm").split(separator: " ")
  return Int(fields[0])! * Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// Memory that this machine could still give, in bytes; 0 where it does not say.
public func availableBytes() -> Int {
  for line in fileText("/proc/meminfo").split(separator: "\n")
  where line.hasPrefix("MemAvailable:") {
    return (Int(line.split(separator: " ")[1]) ?? 0) << 10
  }
  return 0
}

/// How many mappings this process has.
public func mappingCount() -> Int {
  fileBytes("/proc/self/maps").count { $0 == UInt8(ascii: "\n") }
}

/// The whole of a small file, empty where there is none.
public func fileText(_ path: String) -> String {
  String(decoding: fileBytes(path), as: UTF8.self)
}

/// The whole of a file, empty where there is none.
public func fileBytes(_ path: String) -> [UInt8] {
  var bytes: [UInt8] = []
  // SAFETY: the path lives as long as the call.
  let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return bytes }
  defer { close(descriptor) }
  while true {
    // SAFETY: read() fills no more than the room that is stated, and says how much.
    let chunk = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
      count = unsafe max(0, read(descriptor, buffer.baseAddress, buffer.count))
    }
    if chunk.isEmpty { return bytes }
    bytes += chunk
  }
}
