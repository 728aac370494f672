// Machine.swift - runs a C program switch by switch and reads its stacks.
import CWeftDemo

/// A program that stands still at a switch.
///
/// There is one at a time in a process, since the C programs keep their stack pointers in global
/// variables.
final class Machine {
  let program: Program
  let switches: Int
  private let locations: Locations
  private(set) var step = 0
  private var from = 0
  private var to: Int?

  /// Most switches that can be stepped through. Going back replays from the start, and more than
  /// this nobody would press Enter for.
  static let switchesMax = 10_000

  init(_ program: Program) throws {
    self.program = program
    locations = try Locations.find(in: program)
    switches = try Machine.countSwitches(program)
    try restart()
  }

  deinit { weft_demo_close() }

  static func open(_ program: Program) throws {
    var failure: Int32 = 0
    if case .deal(let upto, let coroutines) = program {
      failure = weft_demo_open(program.code, upto, Int32(coroutines))
    } else {
      failure = weft_demo_open(program.code, 0, 0)
    }
    guard failure == 0 else {
      throw ToolError.failure(
        "cannot map a stack: \(errorText(failure))",
        remedy: failure == ENOMEM ? "Use fewer coroutines, or raise vm.max_map_count." : nil)
    }
  }

  private static func countSwitches(_ program: Program) throws -> Int {
    try open(program)
    var count = 0
    var side: Int32 = 0
    while weft_demo_resume(side) != 0 {
      count += 1
      side = weft_demo_place_of(side).to
    }
    return count
  }

  /// Back to the first switch, from main.
  func restart() throws {
    try Machine.open(program)
    step = 0
    from = 0
    to = 0
    advance()
  }

  /// To the next switch, or to the end. Does nothing there.
  func advance() {
    guard let side = to else { return }
    step += 1
    from = side
    to = weft_demo_resume(Int32(side)) != 0 ? Int(weft_demo_place_of(Int32(side)).to) : nil
  }

  /// To a step, by replaying the program: it does the same every time.
  func go(to target: Int) throws {
    if target < step { try restart() }
    while step < target, to != nil { advance() }
  }

  var isAtEnd: Bool { to == nil }

  func snapshot() -> Snapshot {
    // SAFETY: the text is terminated and lives until the program goes on.
    let text = unsafe String(cString: weft_demo_output())
    return Snapshot(
      step: step, switches: switches, from: from, to: to,
      shown: shownSides.map { locations.completed(StackReader.image(of: $0, in: program)) },
      main: from == 0 || to == 0 ? StackReader.image(of: 0, in: program) : nil,
      output: text.split(separator: "\n").map(String.init))
  }

  /// The two routines, or the two coroutines that the switch is between.
  private var shownSides: [Int] {
    let count = Int(weft_demo_sides()) - 1
    guard count > 2 else { return Array(1...count) }
    var pair = [from, to ?? 0].filter { $0 > 0 }
    if pair.isEmpty { pair = [1] }
    if pair.count == 1 { pair.append(pair[0] % count + 1) }
    return pair.sorted()
  }
}

/// Reads the stack of a side that is suspended.
enum StackReader {
  static let registerNames: [String] = {
    var names: [String] = []
    // SAFETY: the function gives a constant, terminated string or null, for any index.
    while let name = unsafe weft_demo_saved_name(Int32(names.count)) {
      // SAFETY: as above.
      unsafe names.append(String(cString: name))
    }
    return names
  }()

  /// As the architecture calls it.
  static var stackPointerName: String { registerNames.contains("rbp") ? "rsp" : "sp" }

  static func word(_ side: Int, at address: UInt64) -> StackWord {
    StackWord(address: address, value: weft_demo_word(Int32(side), UInt(address)))
  }

  static func code(_ address: UInt64) -> CodeAddress {
    var offset: UInt = 0
    // SAFETY: `offset` lives through the call; the result is a constant string or null.
    guard let name = unsafe weft_demo_symbol(UInt(address), &offset) else {
      return CodeAddress(address: address, function: nil, offset: 0)
    }
    // SAFETY: as above.
    return unsafe CodeAddress(
      address: address, function: String(cString: name), offset: UInt64(offset))
  }

  static func image(of side: Int, in program: Program) -> SideImage {
    let stack = weft_demo_stack_of(Int32(side))
    let pointer = UInt64(weft_demo_saved_sp(Int32(side)))
    let place = weft_demo_place_of(Int32(side))
    let registers = registerNames.enumerated().map { index, name in
      SavedRegister(name: name, word: word(side, at: pointer + 8 * UInt64(index)))
    }
    let returnWord = word(side, at: pointer + 8 * UInt64(weft_demo_return_word()))
    return SideImage(
      side: side, name: program.sideName(side),
      guardStart: UInt64(stack.guard), limit: UInt64(stack.limit), top: UInt64(stack.top),
      stackPointer: pointer, registers: registers, returnWord: returnWord,
      returnsTo: code(returnWord.value), hasBegun: place.begun != 0, line: Int(place.line))
  }
}
