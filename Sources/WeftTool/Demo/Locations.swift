// Locations.swift - finds the loop counter and the partial sum on a stack, by behaviour.
//
// Nothing here knows which register the compiler chose. The program is run once, up to every
// switch inside its loop; a register (or a word of the routine's own frame, where the compiler
// keeps variables in memory) that held 0, 1, 2, 3, ... at those moments is the counter, and one
// that held 0, 1, 3, 6, ... is the sum.
import CWeftDemo

/// Where the variables of the adding routine are while it is suspended.
struct Locations: Equatable {
  /// A word of the suspended routine's stack.
  enum Spot: Equatable {
    /// Index among the saved registers.
    case register(Int)
    /// Bytes above the saved stack pointer.
    case frame(UInt64)
  }

  var counter: Spot?
  var sum: Spot?
  /// The line of the switch inside the loop. Elsewhere the variables may be dead.
  var loopLine = 0

  static let none = Locations()

  /// Runs a program of the same code to find out. Leaves no program open.
  static func find(in program: Program) throws -> Locations {
    guard program.hasSum else { return .none }
    // One coroutine that adds ten numbers is enough, and quick however big the real sum is.
    let probe: Program = program == .sum ? .sum : .deal(upto: 10, coroutines: 1)
    let first: Int64 = program == .sum ? 0 : 1
    try Machine.open(probe)
    let stops = collectStops(probe)
    guard let loopLine = mostFrequentLine(stops) else { return .none }
    let inLoop = stops.filter { $0.line == loopLine }
    let counts = inLoop.indices.map { first + Int64($0) }
    var sums: [Int64] = []
    for count in counts { sums.append((sums.last ?? 0) + count) }
    return Locations(
      counter: spot(holding: counts, in: inLoop), sum: spot(holding: sums, in: inLoop),
      loopLine: loopLine)
  }

  /// The image with the variables that were found in it.
  func completed(_ image: SideImage) -> SideImage {
    guard image.hasBegun, image.line == loopLine, loopLine > 0 else { return image }
    var image = image
    image.counter = value(at: counter, in: image)
    image.sum = value(at: sum, in: image)
    return image
  }

  private func value(at spot: Spot?, in image: SideImage) -> FoundValue? {
    switch spot {
    case nil: return nil
    case .register(let index):
      let register = image.registers[index]
      return FoundValue(
        value: Int64(bitPattern: register.word.value), place: .register(register.name))
    case .frame(let offset):
      let word = StackReader.word(image.side, at: image.stackPointer + offset)
      return FoundValue(value: Int64(bitPattern: word.value), place: .memory(word.address))
    }
  }

  /// The adding side at one of its switches.
  private struct Stop {
    var line: Int
    var registers: [Int64]
    var frame: [UInt64: Int64]
  }

  private static func collectStops(_ program: Program) -> [Stop] {
    var stops: [Stop] = []
    var side: Int32 = 0
    while weft_demo_resume(side) != 0, stops.count < 100 {
      if side == 1 {
        let image = StackReader.image(of: 1, in: program)
        var frame: [UInt64: Int64] = [:]
        var address = image.returnWord.address + 8
        while address < image.top {
          let value = StackReader.word(1, at: address).value
          frame[address - image.stackPointer] = Int64(bitPattern: value)
          address += 8
        }
        let registers = image.registers.map { Int64(bitPattern: $0.word.value) }
        stops.append(Stop(line: image.line, registers: registers, frame: frame))
      }
      side = weft_demo_place_of(side).to
    }
    return stops
  }

  private static func mostFrequentLine(_ stops: [Stop]) -> Int? {
    Dictionary(grouping: stops, by: \.line).max { $0.value.count < $1.value.count }?.key
  }

  private static func spot(holding series: [Int64], in stops: [Stop]) -> Spot? {
    guard let first = stops.first else { return nil }
    let registers = first.registers.indices.filter { index in
      stops.map { $0.registers[index] } == series
    }
    if let index = registers.first { return .register(index) }
    let offsets = first.frame.keys.sorted().filter { offset in
      stops.map { $0.frame[offset] } == series
    }
    return offsets.first.map { .frame($0) }
  }
}
