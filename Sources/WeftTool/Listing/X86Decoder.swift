// X86Decoder.swift - the x86-64 instructions that compilers make loops and switches of.
//
// Not a whole disassembler: an instruction outside of this subset comes out as one `.byte`, and
// decoding goes on behind it. The syntax is AT&T's, as objdump prints it.

/// Decodes x86-64.
enum X86Decoder: Decoder {
  static func decode(_ bytes: ArraySlice<UInt8>, at address: UInt64) -> Instruction {
    var reader = X86Reader(bytes)
    if var instruction = reader.readInstruction(at: address) {
      instruction.address = address
      instruction.bytes = Array(bytes.prefix(reader.count))
      return instruction
    }
    let first = bytes.first ?? 0
    return Instruction(
      address: address, bytes: Array(bytes.prefix(1)), mnemonic: ".byte",
      operands: ["0x" + hex(UInt64(first), digits: 2)], flow: .unknown)
  }
}

/// Reads the parts of one instruction. Every read gives nil at the end of the bytes.
struct X86Reader {
  private let bytes: ArraySlice<UInt8>
  private(set) var count = 0
  var rex: UInt8 = 0
  var hasOperandPrefix = false
  /// Thread-local variables are addressed by a segment.
  var segment = ""
  /// F2 or F3.
  var repeatPrefix: UInt8 = 0
  /// Address of what a rip-relative operand refers to, counted from the instruction's end.
  var ripOffset: Int64?

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  var isWide: Bool { rex & 8 != 0 }
  var hasRex: Bool { rex != 0 }

  /// Bytes of a full-sized operand.
  var operandSize: Int { isWide ? 8 : hasOperandPrefix ? 2 : 4 }

  mutating func byte() -> UInt8? {
    guard count < bytes.count, count < 15 else { return nil }
    defer { count += 1 }
    return bytes[bytes.startIndex + count]
  }

  /// A little-endian integer with a sign.
  mutating func signed(_ size: Int) -> Int64? {
    var value: UInt64 = 0
    for index in 0..<size {
      guard let next = byte() else { return nil }
      value |= UInt64(next) << UInt64(8 * index)
    }
    let shift = UInt64(64 - 8 * size)
    return Int64(bitPattern: value << shift) >> Int64(shift)
  }

  mutating func readInstruction(at address: UInt64) -> Instruction? {
    guard let opcode = readPrefixes() else { return nil }
    let decoded = opcode == 0x0F ? readTwoByte(at: address) : readOneByte(opcode, at: address)
    guard var instruction = decoded else { return nil }
    if let ripOffset {
      instruction.target = address &+ UInt64(count) &+ UInt64(bitPattern: ripOffset)
    }
    return instruction
  }

  /// Takes the prefixes and gives the first byte of the opcode.
  private mutating func readPrefixes() -> UInt8? {
    while let next = byte() {
      switch next {
      case 0x66: hasOperandPrefix = true
      case 0xF2, 0xF3: repeatPrefix = next
      case 0x64: segment = "%fs:"
      case 0x65: segment = "%gs:"
      case 0x2E: break  // a segment that long mode ignores; compilers pad with it
      case 0x40...0x4F:
        rex = next
        return byte()
      default: return next
      }
    }
    return nil
  }

  func instruction(
    _ mnemonic: String, _ operands: [String] = [], flow: Instruction.Flow = .straight,
    target: UInt64? = nil
  ) -> Instruction {
    Instruction(
      address: 0, bytes: [], mnemonic: mnemonic, operands: operands, flow: flow, target: target)
  }

  /// An instruction that goes `size` bytes' worth of displacement away.
  mutating func branch(
    _ mnemonic: String, _ size: Int, _ flow: Instruction.Flow, at address: UInt64
  ) -> Instruction? {
    guard let offset = signed(size) else { return nil }
    let target = address &+ UInt64(count) &+ UInt64(bitPattern: offset)
    return instruction(mnemonic, ["0x" + hex(target)], flow: flow, target: target)
  }
}
