// ArmDecoder.swift - the aarch64 instructions that compilers make loops and switches of.
//
// As with x86-64 this is a subset; a word outside of it is printed as what it is.

/// Decodes aarch64. Every instruction is a word of four bytes.
enum ArmDecoder: Decoder {
  static func decode(_ bytes: ArraySlice<UInt8>, at address: UInt64) -> Instruction {
    let word = bytes.prefix(4).enumerated().reduce(UInt32(0)) { result, pair in
      result | UInt32(pair.element) << UInt32(8 * pair.offset)
    }
    var instruction =
      bytes.count < 4 ? nil : decoded(word, address)
    if instruction == nil {
      instruction = Instruction(
        address: address, bytes: [], mnemonic: ".word",
        operands: ["0x" + hex(UInt64(word), digits: 8)], flow: .unknown)
    }
    instruction?.bytes = Array(bytes.prefix(4))
    // The line above has given it a value in every case.
    return instruction ?? Instruction(address: address, bytes: [], mnemonic: ".word")
  }

  private static func decoded(_ word: UInt32, _ address: UInt64) -> Instruction? {
    fixed(word, address) ?? branch(word, address) ?? pair(word, address)
      ?? single(word, address) ?? arithmetic(word, address) ?? move(word, address)
  }

  /// The bits from `low` on, `count` of them.
  static func field(_ word: UInt32, _ low: UInt32, _ count: UInt32) -> UInt32 {
    word >> low & (1 << count - 1)
  }

  /// The same with a sign.
  static func signedField(_ word: UInt32, _ low: UInt32, _ count: UInt32) -> Int64 {
    let shift = Int64(64 - count)
    return Int64(bitPattern: UInt64(field(word, low, count)) << UInt64(shift)) >> shift
  }

  static func make(
    _ address: UInt64, _ mnemonic: String, _ operands: [String] = [],
    flow: Instruction.Flow = .straight, target: UInt64? = nil
  ) -> Instruction {
    Instruction(
      address: address, bytes: [], mnemonic: mnemonic, operands: operands, flow: flow,
      target: target)
  }

  static func register(_ number: UInt32, wide: Bool = true, stack: Bool = false) -> String {
    if number == 31 { return stack ? (wide ? "sp" : "wsp") : wide ? "xzr" : "wzr" }
    return (wide ? "x" : "w") + String(number)
  }

  private static func fixed(_ word: UInt32, _ address: UInt64) -> Instruction? {
    switch word {
    case 0xD65F_03C0: return make(address, "ret", flow: .end)
    case 0xD503_201F: return make(address, "nop")
    case _ where word & 0xFFFF_F01F == 0xD503_201F:
      return make(address, "hint", ["#\(field(word, 5, 7))"])
    case _ where word & 0xFFE0_001F == 0xD420_0000:
      return make(address, "brk", ["#\(field(word, 5, 16))"], flow: .end)
    case _ where word & 0xFFFF_FC1F == 0xD61F_0000:
      return make(address, "br", [register(field(word, 5, 5))], flow: .end)
    case _ where word & 0xFFFF_FC1F == 0xD63F_0000:
      return make(address, "blr", [register(field(word, 5, 5))], flow: .call)
    default: return nil
    }
  }

  private static let conditions = [
    "eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv",
  ]

  private static func branch(_ word: UInt32, _ address: UInt64) -> Instruction? {
    func target(_ low: UInt32, _ count: UInt32) -> UInt64 {
      address &+ UInt64(bitPattern: signedField(word, low, count) * 4)
    }
    func to(_ mnemonic: String, _ flow: Instruction.Flow, _ goal: UInt64, _ first: [String] = [])
      -> Instruction
    {
      make(address, mnemonic, first + ["0x" + hex(goal)], flow: flow, target: goal)
    }
    if word >> 26 == 0b000101 { return to("b", .jump, target(0, 26)) }
    if word >> 26 == 0b100101 { return to("bl", .call, target(0, 26)) }
    if word & 0xFF00_0010 == 0x5400_0000 {
      return to("b." + conditions[Int(word & 15)], .conditional, target(5, 19))
    }
    if word & 0x7E00_0000 == 0x3400_0000 {
      let name = field(word, 24, 1) == 0 ? "cbz" : "cbnz"
      let reg = register(field(word, 0, 5), wide: word >> 31 == 1)
      return to(name, .conditional, target(5, 19), [reg])
    }
    return nil
  }
}
