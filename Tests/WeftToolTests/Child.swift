// Child.swift - runs the built `weft`, on pipes or on a pseudo-terminal.
//
// Every wait is a poll(2) with a deadline; nothing sleeps.
import Foundation

@testable import WeftTool

/// What a run of the command left.
struct Outcome {
  var out: String
  var err: String
  /// The exit code; 128 plus the signal's number if a signal ended it, as shells count.
  var status: Int32

  var lines: [String] {
    out.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
}

enum ChildError: Error {
  case spawn(Int32)
  case timeout(String)
  case terminal
}

/// The binary that was built beside the tests.
enum WeftBinary {
  static let path: String = {
    #if os(Linux)
      let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    #else
      let own = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundlePath ?? ""
    #endif
    return URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("weft").path
  }()
}

/// How long any single wait may take. Far more than it needs, on a machine that is busy.
let waitMilliseconds = 15_000

/// Starts `weft` with these descriptors as its streams.
private func spawn(
  _ arguments: [String], environment: [String: String], streams: [Int32], terminal: String? = nil
) throws -> pid_t {
  // SAFETY: the structures are initialised by the calls that take them, and destroyed at the end.
  var actions = unsafe posix_spawn_file_actions_t()
  // SAFETY: as above.
  unsafe posix_spawn_file_actions_init(&actions)
  // SAFETY: as above.
  defer { unsafe posix_spawn_file_actions_destroy(&actions) }
  var attributes = posix_spawnattr_t()
  // SAFETY: as above.
  unsafe posix_spawnattr_init(&attributes)
  // SAFETY: as above.
  defer { unsafe posix_spawnattr_destroy(&attributes) }
  // Threads of a test run have signals blocked, which a child would inherit.
  var signals = sigset_t()
  // SAFETY: as above.
  unsafe sigemptyset(&signals)
  // SAFETY: as above.
  unsafe posix_spawnattr_setsigmask(&attributes, &signals)
  var flags = Int16(POSIX_SPAWN_SETSIGMASK)
  if let terminal {
    // A session of its own; the first terminal that it opens becomes its own as well, and with it
    // the one whose Ctrl-C it gets.
    #if os(Linux)
      flags |= 0x80
    #else
      flags |= 0x400
    #endif
    for descriptor: Int32 in 0...2 {
      // SAFETY: as above; the path is copied.
      unsafe posix_spawn_file_actions_addopen(&actions, descriptor, terminal, O_RDWR, 0)
    }
  } else {
    for (target, source) in streams.enumerated() {
      // SAFETY: as above.
      unsafe posix_spawn_file_actions_adddup2(&actions, source, Int32(target))
    }
  }
  // SAFETY: as above.
  unsafe posix_spawnattr_setflags(&attributes, flags)
  var process: pid_t = 0
  let words = [WeftBinary.path] + arguments
  let variables = environment.map { "\($0)=\($1)" }
  // SAFETY: the pointers are used within the closures only.
  let failure = unsafe withCStrings(words) { argv in
    // SAFETY: as above.
    unsafe withCStrings(variables) { envp in
      // SAFETY: both are null-terminated arrays of strings that live through the call.
      unsafe posix_spawn(&process, WeftBinary.path, &actions, &attributes, argv, envp)
    }
  }
  guard failure == 0 else { throw ChildError.spawn(failure) }
  return process
}

private func withCStrings<Result>(
  _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
  // SAFETY: the copies are freed after the call that uses them.
  var copies = unsafe strings.map { unsafe strdup($0) } + [nil]
  defer {
    for index in unsafe copies.indices {
      // SAFETY: as above.
      unsafe free(copies[index])
    }
  }
  // SAFETY: the buffer has at least the terminating null.
  return unsafe copies.withUnsafeMutableBufferPointer { unsafe body($0.baseAddress!) }
}

/// A pipe whose ends other children do not inherit.
private func makePipe() -> (read: Int32, write: Int32) {
  var ends: [Int32] = [0, 0]
  // SAFETY: pipe() fills two descriptors.
  _ = unsafe pipe(&ends)
  for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  return (ends[0], ends[1])
}

/// Waits until something can be read; false at the deadline.
private func isReadable(_ descriptor: Int32) -> Bool {
  var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
  // SAFETY: one structure, which lives through the call.
  return unsafe poll(&item, 1, Int32(waitMilliseconds)) == 1
}

/// Reads what is there; empty at the end.
private func readSome(_ descriptor: Int32) throws -> [UInt8] {
  guard isReadable(descriptor) else { throw ChildError.timeout("nothing to read") }
  var buffer = [UInt8](repeating: 0, count: 65_536)
  // SAFETY: read() fills at most the array's count.
  let count = unsafe read(descriptor, &buffer, buffer.count)
  return Array(buffer.prefix(max(0, count)))
}

/// The lines of a file whose size is not known beforehand, as those under /proc.
func fileLines(_ path: String) -> [Substring] {
  // SAFETY: the path is passed as a terminated string that lives through the call.
  let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  while case let more? = try? readSome(descriptor), !more.isEmpty { bytes += more }
  return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
}

private func waitFor(_ process: pid_t) -> Int32 {
  var status: Int32 = 0
  // SAFETY: `status` lives through the call.
  while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
  let signal = status & 0x7F
  return signal == 0 ? status >> 8 & 0xFF : 128 + signal
}

/// The environment of a child: nothing that the tests' own terminal might add.
let plainEnvironment = ["PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm-256color"]

/// Runs the command on pipes, gives it all of `input`, and waits for its end.
func weft(
  _ arguments: String..., input: String = "", environment: [String: String] = [:]
) throws -> Outcome {
  let (input_, out, err) = (makePipe(), makePipe(), makePipe())
  let process = try spawn(
    arguments, environment: plainEnvironment.merging(environment) { $1 },
    streams: [input_.read, out.write, err.write])
  for end in [input_.read, out.write, err.write] { close(end) }
  // Less than a pipe holds, so this cannot block.
  precondition(input.utf8.count < 4096)
  try? Output(descriptor: input_.write).write(input)
  close(input_.write)
  defer {
    close(out.read)
    close(err.read)
  }
  var outBytes: [UInt8] = []
  while case let bytes = try readSome(out.read), !bytes.isEmpty { outBytes += bytes }
  var errBytes: [UInt8] = []
  while case let bytes = try readSome(err.read), !bytes.isEmpty { errBytes += bytes }
  return Outcome(
    out: String(decoding: outBytes, as: UTF8.self), err: String(decoding: errBytes, as: UTF8.self),
    status: waitFor(process))
}

/// Runs the command with a standard output that nobody reads.
func weftWithClosedOutput(_ arguments: String...) throws -> Outcome {
  let (out, err) = (makePipe(), makePipe())
  // Before there is a child, which may be quick to write.
  close(out.read)
  // SAFETY: the path is passed as a terminated string that lives through the call.
  let null = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
  let process = try spawn(
    arguments, environment: plainEnvironment, streams: [null, out.write, err.write])
  for end in [out.write, err.write, null] { close(end) }
  defer { close(err.read) }
  var bytes: [UInt8] = []
  while case let more = try readSome(err.read), !more.isEmpty { bytes += more }
  return Outcome(out: "", err: String(decoding: bytes, as: UTF8.self), status: waitFor(process))
}

/// A picture without its colours and cursor movements.
func withoutEscapes(_ text: String) -> String {
  var result = String.UnicodeScalarView()
  var isEscape = false
  for scalar in text.unicodeScalars {
    if scalar == "\u{1B}" { isEscape = true }
    if !isEscape { result.append(scalar) }
    if isEscape, scalar.properties.isAlphabetic {
      isEscape = false
      // Home: a new picture begins.
      if scalar == "H" { result.append("\n") }
    }
  }
  return String(result)
}

/// The command on a pseudo-terminal.
final class TerminalChild {
  private let master: Int32
  /// Kept open, so that the terminal's settings can be read after the child has ended.
  private let slave: Int32
  private let process: pid_t
  private(set) var seen = ""

  init(
    _ arguments: String..., columns: UInt16 = 80, rows: UInt16 = 24,
    environment: [String: String] = [:]
  ) throws {
    var window = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    var (first, second): (Int32, Int32) = (0, 0)
    var name = [CChar](repeating: 0, count: 1024)
    // SAFETY: everything lives through the call; the name of a terminal is far shorter.
    guard unsafe openpty(&first, &second, &name, nil, &window) == 0 else {
      throw ChildError.terminal
    }
    (master, slave) = (first, second)
    for end in [first, second] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let path = String(
      decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    process = try spawn(
      arguments, environment: plainEnvironment.merging(environment) { $1 }, streams: [],
      terminal: path)
  }

  deinit {
    close(slave)
    close(master)
  }

  var settings: [UInt32] {
    var settings = termios()
    // SAFETY: the structure lives through the call.
    _ = unsafe tcgetattr(slave, &settings)
    return [settings.c_iflag, settings.c_oflag, settings.c_lflag].map { UInt32($0) }
  }

  func send(_ keys: String) throws {
    try Output(descriptor: master).write(keys)
  }

  func resize(columns: UInt16, rows: UInt16) {
    var window = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    // SAFETY: the structure lives through the call.
    _ = unsafe ioctl(master, UInt(TIOCSWINSZ), &window)
  }

  func sendSignal(_ number: Int32) { kill(process, number) }

  /// Waits until it waits for a key. The thread sanitizer keeps a signal back until the next call
  /// that it knows: one that came right before that wait would not be seen for as long as it takes.
  func settle() {
    #if os(Linux)
      let deadline = ContinuousClock().now + .milliseconds(waitMilliseconds)
      while !isAsleep, ContinuousClock().now < deadline { usleep(200) }
    #endif
  }

  /// Whether its first thread sleeps, as the kernel says: the first letter behind its name.
  private var isAsleep: Bool {
    let status = fileLines("/proc/\(process)/stat").first ?? ""
    guard let name = status.lastIndex(of: ")") else { return false }
    return status[name...].dropFirst(2).first == "S"
  }

  /// Reads until a text has come since the last call, and gives all that has come since, without
  /// its escape sequences.
  @discardableResult
  func expect(_ text: String) throws -> String {
    var bytes: [UInt8] = []
    while true {
      let fresh = String(decoding: bytes, as: UTF8.self)
      let plain = withoutEscapes(fresh)
      if plain.contains(text) {
        seen += fresh
        return plain
      }
      guard isReadable(master) else {
        throw ChildError.timeout("no '\(text)' after \(plain.suffix(99))")
      }
      let more = try readSome(master)
      if more.isEmpty { throw ChildError.timeout("ended without '\(text)'") }
      bytes += more
    }
  }

  /// Waits for the end and gives the exit code.
  func finish() -> Int32 {
    var status: Int32 = 0
    let clock = ContinuousClock()
    let deadline = clock.now + .milliseconds(waitMilliseconds)
    // SAFETY: `status` lives through the call.
    while unsafe waitpid(process, &status, WNOHANG) == 0 {
      if clock.now > deadline { kill(process, SIGKILL) }
      // A process cannot end while its output has no room.
      var item = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
      // SAFETY: one structure, which lives through the call.
      if unsafe poll(&item, 1, 20) == 1, let more = try? readSome(master) {
        seen += String(decoding: more, as: UTF8.self)
      }
    }
    var item = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
    // SAFETY: as above.
    while unsafe poll(&item, 1, 0) == 1, let more = try? readSome(master), !more.isEmpty {
      seen += String(decoding: more, as: UTF8.self)
    }
    let signal = status & 0x7F
    return signal == 0 ? status >> 8 & 0xFF : 128 + signal
  }
}
