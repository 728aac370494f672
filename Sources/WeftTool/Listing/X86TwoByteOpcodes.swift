// X86TwoByteOpcodes.swift - the opcodes that begin with 0F.

extension X86Reader {
  mutating func readTwoByte(at address: UInt64) -> Instruction? {
    guard let opcode = byte() else { return nil }
    let condition = X86Reader.conditions[Int(opcode & 15)]
    switch opcode {
    case 0x05: return instruction("syscall")
    case 0x0B: return instruction("ud2", flow: .end)
    case 0x1E: return readLandingPad()
    case 0x1F:
      guard let operand = operand(operandSize) else { return nil }
      return instruction("nop" + X86Reader.suffix(operandSize), [operand.text])
    case 0x40...0x4F: return registerPair("cmov" + condition, operandSize, toRegister: true)
    case 0x80...0x8F: return branch("j" + condition, 4, .conditional, at: address)
    case 0x90...0x9F:
      guard let operand = operand(1) else { return nil }
      return instruction("set" + condition, [operand.text])
    case 0xAF: return registerPair("imul", operandSize, toRegister: true)
    case 0xB6, 0xB7, 0xBE, 0xBF: return readExtension(opcode)
    case 0x10, 0x11, 0x28, 0x29, 0x57, 0x6F, 0x7F, 0xEF: return readVector(opcode)
    default: return nil
    }
  }

  /// endbr64: where indirect branches may land.
  private mutating func readLandingPad() -> Instruction? {
    guard repeatPrefix == 0xF3, byte() == 0xFA else { return nil }
    return instruction("endbr64")
  }

  /// movzbl, movswq and their like.
  private mutating func readExtension(_ opcode: UInt8) -> Instruction? {
    let source = opcode & 1 == 0 ? 1 : 2
    let size = operandSize
    guard let operand = operand(source) else { return nil }
    let name =
      (opcode < 0xB8 ? "movz" : "movs") + X86Reader.suffix(source) + X86Reader.suffix(size)
    return instruction(name, [operand.text, register(operand.reg, size)])
  }

  /// The moves and the exclusive or that compilers copy and clear memory with.
  private mutating func readVector(_ opcode: UInt8) -> Instruction? {
    let prefix = repeatPrefix != 0 ? repeatPrefix : hasOperandPrefix ? 0x66 : 0
    let names: [UInt16: String] = [
      0x0010: "movups", 0x0011: "movups", 0x6610: "movupd", 0x6611: "movupd", 0xF310: "movss",
      0xF311: "movss", 0xF210: "movsd", 0xF211: "movsd", 0x0028: "movaps", 0x0029: "movaps",
      0x6628: "movapd", 0x6629: "movapd", 0x0057: "xorps", 0x6657: "xorpd", 0x666F: "movdqa",
      0x667F: "movdqa", 0xF36F: "movdqu", 0xF37F: "movdqu", 0x66EF: "pxor",
    ]
    guard let name = names[UInt16(prefix) << 8 | UInt16(opcode)],
      let operand = operand(8, prefix: "xmm")
    else { return nil }
    let register = "%xmm\(operand.reg)"
    let isStore = [0x11, 0x29, 0x7F].contains(opcode)
    return instruction(name, isStore ? [register, operand.text] : [operand.text, register])
  }
}
