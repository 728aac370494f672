// CodeReader.swift - the instructions of a running function, from its real bytes.
import CWeftDemo

/// A function of the demos, decoded.
struct DecodedFunction: Equatable {
  var name: String
  var instructions: [Instruction]

  var start: UInt64 { instructions.first?.address ?? 0 }
  var end: UInt64 { instructions.last?.end ?? 0 }

  func contains(_ address: UInt64) -> Bool { address >= start && address < end }

  /// Decodes from `start` to the function's end: that is the instruction after which nothing goes
  /// on and behind which no branch has led. A running program does not know its functions' sizes.
  static func decode(
    name: String, start: UInt64, with decoder: any Decoder.Type,
    bytes: (UInt64) -> [UInt8]
  ) -> DecodedFunction {
    var instructions: [Instruction] = []
    var address = start
    var furthest = start
    while address - start < bytesMax {
      let code = bytes(address)
      guard !code.isEmpty else { break }
      let instruction = decoder.decode(code[...], at: address)
      instructions.append(instruction)
      address = instruction.end
      if [.jump, .conditional].contains(instruction.flow), let target = instruction.target,
        target < start + bytesMax
      {
        furthest = max(furthest, target)
      }
      if [.end, .jump].contains(instruction.flow), furthest < address { break }
    }
    return DecodedFunction(name: name, instructions: instructions)
  }

  /// More than any function here has, so that a wrong end cannot run away.
  static let bytesMax: UInt64 = 2048
}

/// Reads the functions of the program that is open.
enum CodeReader {
  static var decoder: any Decoder.Type {
    #if arch(x86_64)
      X86Decoder.self
    #else
      ArmDecoder.self
    #endif
  }

  static var architecture: String {
    #if arch(x86_64)
      "x86-64"
    #else
      "aarch64"
    #endif
  }

  /// Nil if there is no function of that name.
  static func function(_ name: String, in program: Program) -> DecodedFunction? {
    // SAFETY: the name is passed as a terminated string that lives through the call.
    let start = unsafe weft_demo_function(name, program.code)
    guard start != 0 else { return nil }
    return DecodedFunction.decode(name: name, start: UInt64(start), with: decoder) { address in
      var bytes = [UInt8](repeating: 0, count: 16)
      // SAFETY: the function writes at most the count that it is given, which is the array's.
      let count = unsafe weft_demo_code(UInt(address), &bytes, bytes.count)
      return Array(bytes.prefix(count))
    }
  }
}
