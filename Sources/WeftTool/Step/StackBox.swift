// StackBox.swift - one stack as a box: high addresses at the top, the guard at the bottom.

/// Draws a stack.
struct StackBox {
  var image: SideImage
  var glyphs: Glyphs
  /// How this side takes part in the switch.
  var role: Role
  /// Without the rows that one can do without.
  var isCompact = false

  enum Role {
    case leaving, entering, waiting

    var tone: Tone {
      switch self {
      case .leaving: .leaving
      case .entering: .entering
      case .waiting: .dim
      }
    }
  }

  /// The box, every line of it exactly `columns` wide.
  func lines(columns: Int) -> [StyledLine] {
    let frame = Frame(glyphs: glyphs, tone: role.tone)
    return frame.lines(title: title, columns: columns, rows: rows(columns - 2))
  }

  private var title: String {
    switch role {
    case .leaving: "\(image.name): leaves"
    case .entering: image.hasBegun ? "\(image.name): goes on" : "\(image.name): is entered"
    case .waiting: image.hasBegun ? "\(image.name): waits" : "\(image.name): not begun"
    }
  }

  private func rows(_ inside: Int) -> [StyledLine] {
    var rows = isCompact ? [] : [frameRow]
    rows += memoryRows
    rows.append(returnRow(inside))
    rows += shownRegisters.map(registerRow)
    rows.append(
      StyledLine(" \(glyphs.up) ", .value)
        + StyledLine("\(StackReader.stackPointerName) = \(hex(image.stackPointer))", .strong)
        + StyledLine(" (saved)", .dim))
    if !isCompact {
      rows.append(StyledLine("   \(grouped(Int(image.freeBytes))) bytes free", .dim))
    }
    let kibibytes = (image.limit - image.guardStart) / 1024
    rows.append(
      StyledLine(" \(String(repeating: glyphs.shade, count: 2)) guard ", .guardArea)
        + StyledLine("\(kibibytes) KiB at \(hex(image.guardStart))", .guardArea))
    return rows
  }

  /// Only the general registers get a row; aarch64 keeps eight of the vector registers as well.
  private var shownRegisters: [SavedRegister] {
    image.registers.reversed().filter { !$0.name.hasPrefix("d") }
  }

  /// What lies above the return address: the frames of the routine and its callers.
  private var frameRow: StyledLine {
    let bytes = image.top - image.returnWord.address - 8
    let text = image.hasBegun ? "frame \(counted(Int(bytes), "byte", "bytes"))" : "prepared"
    return StyledLine(" \(hex(image.top)) top  \(text)", .dim)
  }

  /// The variables that the compiler keeps in the frame.
  private var memoryRows: [StyledLine] {
    var rows: [(address: UInt64, line: StyledLine)] = []
    for (found, name) in [(image.counter, "i"), (image.sum, "sum")] {
      guard let found, case .memory(let address) = found.place else { continue }
      let line =
        address12(address) + StyledLine("     0x\(hex(UInt64(bitPattern: found.value)))")
        + StyledLine("  \(name) = \(found.value)", .value)
      rows.append((address, line))
    }
    return rows.sorted { $0.address > $1.address }.map(\.line)
  }

  private func returnRow(_ inside: Int) -> StyledLine {
    let line = address12(image.returnWord.address) + StyledLine("ret  ", .register)
    let symbol = StyledLine(image.returnsTo.symbol, .symbol)
    // The address itself where there is room for both.
    return inside >= 50
      ? line + StyledLine("0x\(hex(image.returnWord.value))  ") + symbol : line + symbol
  }

  private func registerRow(_ register: SavedRegister) -> StyledLine {
    var line =
      address12(register.word.address) + StyledLine(register.name.padded(to: 5), .register)
      + StyledLine("0x" + hex(register.word.value))
    for (found, name) in [(image.counter, "i"), (image.sum, "sum")] {
      if let found, found.place == .register(register.name) {
        line = line + StyledLine("  \(name) = \(found.value)", .value)
      }
    }
    return line
  }

  private func address12(_ address: UInt64) -> StyledLine {
    StyledLine(" \(hex(address, digits: 12)) ", .dim)
  }
}
