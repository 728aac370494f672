// ListingView.swift - an annotated listing as lines of text.

/// Lays out one decoded function.
struct ListingView {
  var function: DecodedFunction
  var notes: [Annotation]
  var loop: Range<Int>?
  var columns: Int
  var glyphs: Glyphs
  var symbol: (UInt64) -> String?

  /// Bytes of an instruction in one row; a longer one goes on in the next.
  private static let bytesPerRow = 7

  private var showsBytes: Bool { columns >= 76 }

  func lines() -> [StyledLine] {
    function.instructions.indices.flatMap { index in rows(index) }
  }

  private func rows(_ index: Int) -> [StyledLine] {
    let instruction = function.instructions[index]
    let note = index < notes.count ? notes[index] : .none
    let offset = "+" + hex(instruction.address - function.start, digits: 2)
    var line = StyledLine(bracket(index) + " ", .value) + StyledLine(offset.padded(to: 5), .dim)
    let groups = stride(from: 0, to: instruction.bytes.count, by: ListingView.bytesPerRow).map {
      instruction.bytes[$0..<min($0 + ListingView.bytesPerRow, instruction.bytes.count)]
        .map { hex(UInt64($0), digits: 2) }.joined(separator: " ")
    }
    let width = ListingView.bytesPerRow * 3 + 1
    if showsBytes { line = line + StyledLine((groups.first ?? "").padded(to: width), .dim) }
    line = line + StyledLine(text(instruction).padded(to: 30), tone(note.group))
    if !note.text.isEmpty { line = line + StyledLine(" " + note.text, tone(note.group)) }
    guard showsBytes else { return [line] }
    return [line]
      + groups.dropFirst().map {
        StyledLine(bracketInside(index) + "      ") + StyledLine($0, .dim)
      }
  }

  /// The instruction, with names for the addresses in it.
  private func text(_ instruction: Instruction) -> String {
    guard let target = instruction.target else { return instruction.text }
    let name = symbol(target)
    switch instruction.flow {
    case .call, .jump, .conditional:
      guard let name else { return instruction.text }
      return instruction.mnemonic.padded(to: 6) + " " + name
    default: return instruction.text
    }
  }

  private func bracket(_ index: Int) -> String {
    guard let loop, loop.contains(index) else { return " " }
    if index == loop.lowerBound { return glyphs.topLeft }
    return index == loop.upperBound - 1 ? glyphs.bottomLeft : glyphs.vertical
  }

  private func bracketInside(_ index: Int) -> String {
    guard let loop, loop.contains(index), index != loop.upperBound - 1 else { return " " }
    return glyphs.vertical
  }

  private func tone(_ group: Annotation.Group) -> Tone {
    switch group {
    case .push, .pop: .register
    case .save, .load: .value
    case .ret, .call: .entering
    case .counter: .value
    case .sum: .good
    case .none: .plain
    }
  }

  var json: JSON {
    let list = function.instructions.indices.map { index -> JSON in
      let one = function.instructions[index]
      return [
        "address": .hex(one.address), "offset": .int(Int(one.address - function.start)),
        "bytes": .string(one.bytes.map { hex(UInt64($0), digits: 2) }.joined()),
        "text": .string(text(one)), "group": .string(notes[index].group.rawValue),
        "note": .string(notes[index].text), "inLoop": .bool(loop?.contains(index) ?? false),
      ]
    }
    return [
      "name": .string(function.name), "address": .hex(function.start),
      "bytes": .int(Int(function.end - function.start)), "instructions": .array(list),
    ]
  }
}
