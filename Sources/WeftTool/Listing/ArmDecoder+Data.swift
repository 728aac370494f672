// ArmDecoder+Data.swift - aarch64: loads, stores, arithmetic and moves.

extension ArmDecoder {
  /// ldp and stp, of general and of 64-bit vector registers.
  static func pair(_ word: UInt32, _ address: UInt64) -> Instruction? {
    let kind =
      word & 0xFE00_0000 == 0xA800_0000 ? "x" : word & 0xFE00_0000 == 0x6C00_0000 ? "d" : ""
    let mode = field(word, 23, 2)
    guard !kind.isEmpty, mode != 0 else { return nil }
    let name = field(word, 22, 1) == 0 ? "stp" : "ldp"
    func one(_ number: UInt32) -> String {
      kind == "d" ? "d\(number)" : register(number)
    }
    let place = memory(field(word, 5, 5), signedField(word, 15, 7) * 8, mode: mode)
    return make(address, name, [one(field(word, 0, 5)), one(field(word, 10, 5)), place])
  }

  /// `[base, #offset]`; mode 1 changes the base afterwards, mode 3 before.
  private static func memory(_ base: UInt32, _ offset: Int64, mode: UInt32) -> String {
    let name = register(base, stack: true)
    switch mode {
    case 1: return "[\(name)], #\(offset)"
    case 3: return "[\(name), #\(offset)]!"
    default: return offset == 0 ? "[\(name)]" : "[\(name), #\(offset)]"
    }
  }

  /// ldr and str with an offset, of one general register; adr and adrp.
  static func single(_ word: UInt32, _ address: UInt64) -> Instruction? {
    let reg = field(word, 0, 5)
    let base = field(word, 5, 5)
    if word & 0xBF80_0000 == 0xB900_0000 {
      let wide = word >> 30 == 3
      let offset = Int64(field(word, 10, 12)) * (wide ? 8 : 4)
      let name = field(word, 22, 1) == 0 ? "str" : "ldr"
      return make(address, name, [register(reg, wide: wide), memory(base, offset, mode: 2)])
    }
    if word & 0xBFA0_0C00 == 0xB800_0000 {
      let name = field(word, 22, 1) == 0 ? "stur" : "ldur"
      let place = memory(base, signedField(word, 12, 9), mode: 2)
      return make(address, name, [register(reg, wide: word >> 30 == 3), place])
    }
    if word & 0x1F00_0000 == 0x1000_0000 {
      let isPage = word >> 31 == 1
      let value = signedField(word, 5, 19) << 2 | Int64(field(word, 29, 2))
      let start = isPage ? address & ~0xFFF : address
      let target = start &+ UInt64(bitPattern: isPage ? value << 12 : value)
      return make(
        address, isPage ? "adrp" : "adr", [register(reg), "0x" + hex(target)], target: target)
    }
    return nil
  }

  /// add and sub, of a register and an immediate value or two registers, and the compares.
  static func arithmetic(_ word: UInt32, _ address: UInt64) -> Instruction? {
    let wide = word >> 31 == 1
    let isSub = field(word, 30, 1) == 1
    let setsFlags = field(word, 29, 1) == 1
    let (rd, rn) = (field(word, 0, 5), field(word, 5, 5))
    var last = ""
    var usesStack = false
    if word & 0x1F80_0000 == 0x1100_0000 {
      let value = field(word, 10, 12)
      last = "#\(field(word, 22, 1) == 1 ? value << 12 : value)"
      usesStack = true
      if value == 0, !isSub, !setsFlags, rd == 31 || rn == 31 {
        let names = [rd, rn].map { register($0, wide: wide, stack: true) }
        return make(address, "mov", names)
      }
    } else if word & 0x1F20_FC00 == 0x0B00_0000 {
      last = register(field(word, 16, 5), wide: wide)
    } else {
      return nil
    }
    let first = register(rn, wide: wide, stack: usesStack)
    if setsFlags, rd == 31 { return make(address, isSub ? "cmp" : "cmn", [first, last]) }
    let name = (isSub ? "sub" : "add") + (setsFlags ? "s" : "")
    return make(
      address, name, [register(rd, wide: wide, stack: usesStack && !setsFlags), first, last])
  }

  /// mov of a register, of 16 bits, and movk.
  static func move(_ word: UInt32, _ address: UInt64) -> Instruction? {
    let wide = word >> 31 == 1
    let rd = register(field(word, 0, 5), wide: wide)
    if word & 0x7FE0_FFE0 == 0x2A00_03E0 {
      return make(address, "mov", [rd, register(field(word, 16, 5), wide: wide)])
    }
    guard word & 0x1F80_0000 == 0x1280_0000 else { return nil }
    let shift = field(word, 21, 2) * 16
    let value = UInt64(field(word, 5, 16)) << UInt64(shift)
    switch field(word, 29, 2) {
    case 0: return make(address, "mov", [rd, "#\(Int64(bitPattern: ~value))"])
    case 2: return make(address, "mov", [rd, "#\(value)"])
    case 3:
      let part = "#\(field(word, 5, 16))"
      return make(address, "movk", [rd, part] + (shift > 0 ? ["lsl #\(shift)"] : []))
    default: return nil
    }
  }
}
