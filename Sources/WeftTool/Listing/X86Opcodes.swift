// X86Opcodes.swift - the opcodes of one byte.

extension X86Reader {
  static let conditions = [
    "o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g",
  ]
  private static let arithmetic = ["add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"]
  private static let shifts = ["rol", "ror", "rcl", "rcr", "shl", "shr", "shl", "sar"]
  private static let unary = ["test", "test", "not", "neg", "mul", "imul", "div", "idiv"]

  mutating func readOneByte(_ opcode: UInt8, at address: UInt64) -> Instruction? {
    let size = opcode & 1 == 0 ? 1 : operandSize
    switch opcode {
    case 0x00...0x3F where opcode & 7 < 6: return readArithmetic(opcode)
    case 0x50...0x57: return instruction("push", [register(opcodeRegister(opcode), 8)])
    case 0x58...0x5F: return instruction("pop", [register(opcodeRegister(opcode), 8)])
    case 0x63:
      guard isWide, let operand = operand(4) else { return nil }
      return instruction("movslq", [operand.text, register(operand.reg, 8)])
    case 0x68, 0x6A:
      return immediate(opcode == 0x68 ? 4 : 1, extendedTo: 8).map { instruction("push", [$0]) }
    case 0x69, 0x6B: return readMultiply(opcode)
    case 0x70...0x7F:
      return branch("j" + X86Reader.conditions[Int(opcode & 15)], 1, .conditional, at: address)
    case 0x80, 0x81, 0x83: return readImmediateGroup(opcode)
    case 0x84, 0x85: return registerPair("test", size, toRegister: false)
    case 0x86, 0x87: return registerPair("xchg", size, toRegister: false)
    case 0x88, 0x89: return registerPair("mov", size, toRegister: false)
    case 0x8A, 0x8B: return registerPair("mov", size, toRegister: true)
    case 0x8D:
      guard let operand = operand(operandSize), !operand.isRegister else { return nil }
      return instruction("lea", [operand.text, register(operand.reg, operandSize)])
    case 0x90: return readNop()
    case 0x98: return instruction(isWide ? "cltq" : hasOperandPrefix ? "cbtw" : "cwtl")
    case 0x99: return instruction(isWide ? "cqto" : hasOperandPrefix ? "cwtd" : "cltd")
    case 0xA8, 0xA9:
      return immediate(min(size, 4), extendedTo: size).map {
        instruction("test", [$0, register(0, size)])
      }
    case 0xB0...0xBF: return readMoveImmediate(opcode)
    case 0xC0, 0xC1, 0xD0...0xD3: return readShift(opcode, size)
    case 0xC3: return instruction("ret", flow: .end)
    case 0xC6, 0xC7: return readStoreImmediate(size)
    case 0xC9: return instruction("leave")
    case 0xCC: return instruction("int3")
    case 0xE8: return branch("call", 4, .call, at: address)
    case 0xE9: return branch("jmp", 4, .jump, at: address)
    case 0xEB: return branch("jmp", 1, .jump, at: address)
    case 0xF6, 0xF7: return readUnary(size)
    case 0xFE, 0xFF: return readIncrementGroup(opcode, size)
    default: return nil
    }
  }

  /// `op %reg,rm` or `op rm,%reg`.
  mutating func registerPair(_ mnemonic: String, _ size: Int, toRegister: Bool) -> Instruction? {
    guard let operand = operand(size) else { return nil }
    let reg = register(operand.reg, size)
    return instruction(mnemonic, toRegister ? [operand.text, reg] : [reg, operand.text])
  }

  private mutating func readArithmetic(_ opcode: UInt8) -> Instruction? {
    let mnemonic = X86Reader.arithmetic[Int(opcode >> 3)]
    let size = opcode & 1 == 0 ? 1 : operandSize
    if opcode & 7 < 4 {
      return registerPair(mnemonic, size, toRegister: opcode & 2 != 0)
    }
    return immediate(min(size, 4), extendedTo: size).map {
      instruction(mnemonic, [$0, register(0, size)])
    }
  }

  private mutating func readMultiply(_ opcode: UInt8) -> Instruction? {
    let size = operandSize
    guard let operand = operand(size),
      let value = immediate(opcode == 0x6B ? 1 : min(size, 4), extendedTo: size)
    else { return nil }
    return instruction("imul", [value, operand.text, register(operand.reg, size)])
  }

  private mutating func readImmediateGroup(_ opcode: UInt8) -> Instruction? {
    let size = opcode == 0x80 ? 1 : operandSize
    guard let operand = operand(size),
      let value = immediate(opcode == 0x81 ? min(size, 4) : 1, extendedTo: size)
    else { return nil }
    return withSize(X86Reader.arithmetic[operand.reg & 7], operand, size, [value])
  }

  /// An instruction whose operand may be memory, so that only a suffix tells its size.
  private func withSize(
    _ mnemonic: String, _ operand: X86Operand, _ size: Int, _ sources: [String] = []
  ) -> Instruction {
    let suffix = operand.isRegister ? "" : X86Reader.suffix(size)
    return instruction(mnemonic + suffix, sources + [operand.text])
  }

  private func readNop() -> Instruction? {
    if repeatPrefix == 0xF3 { return instruction("pause") }
    if rex & 1 != 0 { return nil }
    return hasOperandPrefix ? instruction("xchg", ["%ax", "%ax"]) : instruction("nop")
  }

  private mutating func readMoveImmediate(_ opcode: UInt8) -> Instruction? {
    let size = opcode < 0xB8 ? 1 : operandSize
    let name = size == 8 ? "movabs" : "mov"
    return immediate(size, extendedTo: size).map {
      instruction(name, [$0, register(opcodeRegister(opcode), size)])
    }
  }

  private mutating func readShift(_ opcode: UInt8, _ size: Int) -> Instruction? {
    guard let operand = operand(size) else { return nil }
    let mnemonic = X86Reader.shifts[operand.reg & 7]
    switch opcode {
    case 0xC0, 0xC1:
      return immediate(1, extendedTo: 1).map { withSize(mnemonic, operand, size, [$0]) }
    case 0xD0, 0xD1: return withSize(mnemonic, operand, size, ["$1"])
    default: return withSize(mnemonic, operand, size, ["%cl"])
    }
  }

  private mutating func readStoreImmediate(_ size: Int) -> Instruction? {
    guard let operand = operand(size), operand.reg & 7 == 0,
      let value = immediate(min(size, 4), extendedTo: size)
    else { return nil }
    return withSize("mov", operand, size, [value])
  }

  private mutating func readUnary(_ size: Int) -> Instruction? {
    guard let operand = operand(size) else { return nil }
    let mnemonic = X86Reader.unary[operand.reg & 7]
    if operand.reg & 7 < 2 {
      return immediate(min(size, 4), extendedTo: size).map {
        withSize(mnemonic, operand, size, [$0])
      }
    }
    return withSize(mnemonic, operand, size)
  }

  private mutating func readIncrementGroup(_ opcode: UInt8, _ size: Int) -> Instruction? {
    let start = self
    guard let operand = operand(size) else { return nil }
    switch operand.reg & 7 {
    case 0: return withSize("inc", operand, size)
    case 1: return withSize("dec", operand, size)
    case 2, 4, 6:
      // These are 64 bits wide whatever the prefixes say.
      guard opcode == 0xFF else { return nil }
      self = start
      guard let wide = self.operand(8) else { return nil }
      switch operand.reg & 7 {
      case 2: return instruction("call", ["*" + wide.text], flow: .call)
      case 4: return instruction("jmp", ["*" + wide.text], flow: .end)
      default: return instruction("push", [wide.text])
      }
    default: return nil
    }
  }
}
