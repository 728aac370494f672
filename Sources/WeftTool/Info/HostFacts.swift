// HostFacts.swift - what this machine and this process are given.
import CWeftDemo

/// One line of `weft info`.
struct Fact: Equatable {
  /// The key in JSON; the label is made from it.
  var key: String
  var label: String
  var value: JSON
  /// The value for people, where that is not the JSON's text.
  var text: String?
  /// What the number means for a program.
  var note: String?

  var shownText: String {
    if let text { return text }
    switch value {
    case .string(let text): return text
    case .int(let number): return grouped(Int(number))
    case .null: return "unknown"
    default: return value.text
    }
  }
}

/// A heading with its facts.
struct FactGroup: Equatable {
  var key: String
  var title: String
  var facts: [Fact]
}

/// Asks the operating system.
enum HostFacts {
  static var groups: [FactGroup] { [system, cores, limits] }

  private static var system: FactGroup {
    let names = unameFields()
    return FactGroup(
      key: "system", title: "System",
      facts: [
        Fact(key: "architecture", label: "architecture", value: .string(CodeReader.architecture)),
        Fact(key: "operatingSystem", label: "operating system", value: .string(names.system)),
        Fact(key: "kernel", label: "kernel", value: .string(names.release)),
        Fact(
          key: "pageBytes", label: "page", value: .int(Int64(pageBytes)),
          text: "\(grouped(pageBytes)) bytes"),
        Fact(
          key: "build", label: "build", value: .string(isDebugBuild ? "debug" : "release"),
          note: isDebugBuild ? "the demos show more in release" : nil),
      ])
  }

  private static var cores: FactGroup {
    FactGroup(
      key: "cores", title: "Cores",
      facts: [
        Fact(
          key: "configured", label: "configured",
          value: .int(Int64(sysconf(Int32(_SC_NPROCESSORS_CONF))))),
        Fact(
          key: "online", label: "online", value: .int(Int64(sysconf(Int32(_SC_NPROCESSORS_ONLN))))),
        Fact(
          key: "usable", label: "usable", value: .int(Int(weft_host_usable_cores())),
          note: "those that this process may run on"),
      ])
  }

  private static var limits: FactGroup {
    let maps = kernelNumber("/proc/sys/vm/max_map_count")
    let overcommit = kernelNumber("/proc/sys/vm/overcommit_memory")
    let meanings = ["heuristic", "always", "never"]
    let overcommitText = overcommit.flatMap { meanings.indices.contains($0) ? meanings[$0] : nil }
    return FactGroup(
      key: "limits", title: "Limits",
      facts: [
        Fact(
          key: "mapCountMax", label: "vm.max_map_count", value: .optional(maps),
          note: maps.map { "about \(grouped($0 / 2)) stacks if each has a mapping for its guard" }),
        Fact(
          key: "overcommit", label: "overcommit", value: .optional(overcommitText),
          note: overcommit == 2 ? "address space counts as memory: use small stacks" : nil),
        limit("openFiles", "open files", resourceLimit(openFiles)),
        limit("mainStackBytes", "main thread's stack", resourceLimit(mainStack), unit: "bytes"),
        limit("addressSpaceBytes", "address space", resourceLimit(addressSpace), unit: "bytes"),
      ])
  }

  private static func limit(
    _ key: String, _ label: String, _ value: Int?, unit: String = ""
  ) -> Fact {
    guard let value else { return Fact(key: key, label: label, value: .null, text: "unlimited") }
    let text = unit.isEmpty ? grouped(value) : "\(grouped(value)) \(unit)"
    return Fact(key: key, label: label, value: .int(value), text: text)
  }

  // MARK: - Asking

  static var isDebugBuild: Bool {
    var result = false
    // An assertion's condition is evaluated in debug builds only.
    assert(
      {
        result = true
        return true
      }())
    return result
  }

  static var pageBytes: Int { sysconf(Int32(_SC_PAGESIZE)) }

  private static func unameFields() -> (system: String, release: String) {
    var names = utsname()
    // SAFETY: uname() fills the structure that it is given, which lives through the call.
    guard unsafe uname(&names) == 0 else { return ("unknown", "unknown") }
    func text<Field>(_ field: Field) -> String {
      // SAFETY: the fields are arrays of characters, trivially copied, that uname() terminated;
      // the bytes are looked at within the closure only.
      unsafe withUnsafeBytes(of: field) { bytes in
        // SAFETY: as above.
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
    }
    return (text(names.sysname), text(names.release))
  }

  /// The number in a file of the kernel's, nil if there is none.
  private static func kernelNumber(_ path: String) -> Int? {
    // SAFETY: the path is passed as a terminated string that lives through the call.
    let descriptor = unsafe open(path, O_RDONLY)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 64)
    // SAFETY: read() fills at most the count that it is given, which is the array's.
    let count = unsafe read(descriptor, &buffer, buffer.count)
    guard count > 0 else { return nil }
    let text = String(decoding: buffer.prefix(count), as: UTF8.self)
    return Int(text.prefix { $0.isNumber })
  }

  #if canImport(Glibc)
    private static let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    private static let mainStack = __rlimit_resource_t(RLIMIT_STACK.rawValue)
    private static let addressSpace = __rlimit_resource_t(RLIMIT_AS.rawValue)
    private static func resourceLimit(_ resource: __rlimit_resource_t) -> Int? {
      var limit = rlimit()
      // SAFETY: the call fills the structure that it is given, which lives through it.
      guard unsafe getrlimit(resource, &limit) == 0 else { return nil }
      return Int(exactly: limit.rlim_cur)
    }
  #else
    private static let openFiles = RLIMIT_NOFILE
    private static let mainStack = RLIMIT_STACK
    private static let addressSpace = RLIMIT_AS
    private static func resourceLimit(_ resource: Int32) -> Int? {
      var limit = rlimit()
      // SAFETY: the call fills the structure that it is given, which lives through it.
      guard unsafe getrlimit(resource, &limit) == 0 else { return nil }
      return limit.rlim_cur == RLIM_INFINITY ? nil : Int(exactly: limit.rlim_cur)
    }
  #endif
}
