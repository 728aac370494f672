// X86Operands.swift - registers, memory operands and immediate values of x86-64.

/// The names of the general registers.
enum X86Register {
  private static let names64 = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
  ]
  private static let low8 = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"]
  private static let high8 = ["al", "cl", "dl", "bl", "ah", "ch", "dh", "bh"]

  static func name(_ number: Int, size: Int, hasRex: Bool = true) -> String {
    let full = names64[number]
    switch size {
    case 8: return full
    case 4: return number < 8 ? "e" + full.dropFirst() : full + "d"
    case 2: return number < 8 ? String(full.dropFirst()) : full + "w"
    default: return number < 8 ? (hasRex ? low8 : high8)[number] : full + "b"
    }
  }

  /// All names of the register whose 64-bit name is given.
  static func aliases(of name: String) -> [String] {
    guard let number = names64.firstIndex(of: name) else { return [name] }
    return [8, 4, 2, 1].map { self.name(number, size: $0) }
  }
}

/// A decoded ModRM byte.
struct X86Operand {
  /// The reg field, extended by REX.R.
  var reg: Int
  var text: String
  var isRegister: Bool
  /// The rm field of a register operand, extended by REX.B.
  var rm: Int
}

extension X86Reader {
  func register(_ number: Int, _ size: Int) -> String {
    "%" + X86Register.name(number, size: size, hasRex: hasRex)
  }

  /// A register number from the low bits of an opcode.
  func opcodeRegister(_ opcode: UInt8) -> Int {
    Int(opcode & 7) | (rex & 1 != 0 ? 8 : 0)
  }

  /// The ModRM byte with all that belongs to it. `size` is that of a register operand.
  mutating func operand(_ size: Int, prefix: String? = nil) -> X86Operand? {
    guard let modrm = byte() else { return nil }
    let reg = Int(modrm >> 3 & 7) | (rex & 4 != 0 ? 8 : 0)
    if modrm >> 6 == 3 {
      let rm = Int(modrm & 7) | (rex & 1 != 0 ? 8 : 0)
      let text = prefix.map { "%\($0)\(rm)" } ?? register(rm, size)
      return X86Operand(reg: reg, text: text, isRegister: true, rm: rm)
    }
    guard let text = memory(modrm) else { return nil }
    return X86Operand(reg: reg, text: segment + text, isRegister: false, rm: 0)
  }

  private mutating func memory(_ modrm: UInt8) -> String? {
    let mode = modrm >> 6
    if mode == 0, modrm & 7 == 5 {
      guard let offset = signed(4) else { return nil }
      ripOffset = offset
      return X86Reader.offset(offset) + "(%rip)"
    }
    var inside = "%" + X86Register.name(opcodeRegister(modrm), size: 8)
    var hasBase = true
    if modrm & 7 == 4 {
      guard let sib = byte() else { return nil }
      hasBase = !(mode == 0 && sib & 7 == 5)
      inside = scaled(sib, hasBase: hasBase)
    }
    let size = mode == 1 ? 1 : mode == 2 || !hasBase ? 4 : 0
    guard size > 0 else { return "(\(inside))" }
    guard let offset = signed(size) else { return nil }
    return inside.isEmpty ? X86Reader.offset(offset) : X86Reader.offset(offset) + "(\(inside))"
  }

  private func scaled(_ sib: UInt8, hasBase: Bool) -> String {
    let base = hasBase ? "%" + X86Register.name(opcodeRegister(sib), size: 8) : ""
    let index = Int(sib >> 3 & 7) | (rex & 2 != 0 ? 8 : 0)
    // Number 4 would be rsp, which cannot be an index: there is none.
    guard index != 4 else { return base }
    return "\(base),%\(X86Register.name(index, size: 8)),\(1 << (sib >> 6))"
  }

  static func offset(_ value: Int64) -> String {
    value < 0 ? "-0x" + hex(value.magnitude) : "0x" + hex(UInt64(value))
  }

  /// An immediate value, printed as the operand that it is extended to.
  mutating func immediate(_ size: Int, extendedTo operandSize: Int) -> String? {
    guard let value = signed(size) else { return nil }
    let pattern = UInt64(bitPattern: value)
    let kept = operandSize == 8 ? pattern : pattern & (1 << UInt64(8 * operandSize) - 1)
    return "$0x" + hex(kept)
  }

  static func suffix(_ size: Int) -> String {
    switch size {
    case 8: "q"
    case 4: "l"
    case 2: "w"
    default: "b"
    }
  }
}
