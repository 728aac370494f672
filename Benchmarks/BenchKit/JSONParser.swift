/// Text that is not JSON.
public struct JSONError: Error, Equatable, CustomStringConvertible, Sendable {
  /// The byte at which reading stopped.
  public let offset: Int
  /// What was expected or found there.
  public let reason: String

  /// A sentence for the user.
  public var description: String { "not JSON at byte \(offset): \(reason)" }
}

extension JSON {
  /// Reads a JSON text (RFC 8259), nested at most 64 deep.
  public init(parsing text: String) throws(JSONError) {
    var parser = JSONParser(bytes: Array(text.utf8))
    self = try parser.document()
  }
}

/// A recursive-descent reader. It reads the reports of other versions and other people's files,
/// so nothing in it traps.
struct JSONParser {
  static let maxDepth = 64
  let bytes: [UInt8]
  var offset = 0
  var depth = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func document() throws(JSONError) -> JSON {
    let value = try value()
    skipSpace()
    guard offset == bytes.count else { throw error("something follows the value") }
    return value
  }

  func error(_ reason: String) -> JSONError { JSONError(offset: offset, reason: reason) }

  var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  mutating func skipSpace() {
    while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { offset += 1 }
  }

  mutating func take(_ character: Character) -> Bool {
    guard let byte = next, byte == character.asciiValue else { return false }
    offset += 1
    return true
  }

  mutating func value() throws(JSONError) -> JSON {
    skipSpace()
    guard let byte = next else { throw error("the text ends early") }
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      guard depth < JSONParser.maxDepth else { throw error("nested too deep") }
      depth += 1
      defer { depth -= 1 }
      return byte == UInt8(ascii: "{") ? try object() : try array()
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return try number()
    }
  }

  mutating func word(_ word: String, _ value: JSON) throws(JSONError) -> JSON {
    let expected = Array(word.utf8)
    guard bytes[offset...].starts(with: expected) else { throw error("unknown word") }
    offset += expected.count
    return value
  }

  mutating func array() throws(JSONError) -> JSON {
    offset += 1
    skipSpace()
    if take("]") { return .array([]) }
    var values: [JSON] = []
    repeat {
      values.append(try value())
      skipSpace()
    } while take(",")
    guard take("]") else { throw error("expected , or ]") }
    return .array(values)
  }

  mutating func object() throws(JSONError) -> JSON {
    offset += 1
    skipSpace()
    if take("}") { return .object([]) }
    var members: [Member] = []
    repeat {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw error("expected a member's name") }
      let name = try string()
      skipSpace()
      guard take(":") else { throw error("expected :") }
      members.append(Member(name, try value()))
      skipSpace()
    } while take(",")
    guard take("}") else { throw error("expected , or }") }
    return .object(members)
  }

  mutating func number() throws(JSONError) -> JSON {
    let start = offset
    _ = take("-")
    let whole = digits()
    guard whole > 0 else {
      offset = start
      throw error("expected a value")
    }
    if whole > 1, bytes[offset - whole] == UInt8(ascii: "0") { throw error("a leading zero") }
    if take("."), digits() == 0 { throw error("expected a digit") }
    if take("e") || take("E") {
      if !take("-") { _ = take("+") }
      if digits() == 0 { throw error("expected a digit") }
    }
    guard let value = Double(String(decoding: bytes[start..<offset], as: UTF8.self)) else {
      throw error("no number")
    }
    return .number(value)
  }

  mutating func digits() -> Int {
    let start = offset
    while let byte = next, (0x30...0x39).contains(byte) { offset += 1 }
    return offset - start
  }
}

extension JSONParser {
  typealias Member = JSON.Member

  mutating func string() throws(JSONError) -> String {
    offset += 1
    var content: [UInt8] = []
    while let byte = next {
      offset += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: content, as: UTF8.self)
      case UInt8(ascii: "\\"): content += try escape()
      case ..<0x20: throw error("a control character in a string")
      default: content.append(byte)
      }
    }
    throw error("the string does not end")
  }

  mutating func escape() throws(JSONError) -> [UInt8] {
    guard let byte = next else { throw error("the string does not end") }
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "u"): return try unicodeEscape()
    default: throw error("an unknown escape")
    }
  }

  mutating func unicodeEscape() throws(JSONError) -> [UInt8] {
    var code = UInt32(try hexUnit())
    if (0xD800..<0xDC00).contains(code) {
      guard take("\\"), take("u") else { throw error("half a surrogate pair") }
      let low = UInt32(try hexUnit())
      guard (0xDC00..<0xE000).contains(low) else { throw error("half a surrogate pair") }
      code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(code) else { throw error("half a surrogate pair") }
    return Array(String(Character(scalar)).utf8)
  }

  mutating func hexUnit() throws(JSONError) -> UInt16 {
    guard offset + 4 <= bytes.count else { throw error("expected four hex digits") }
    var unit: UInt16 = 0
    for byte in bytes[offset..<offset + 4] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw error("expected four hex digits")
      }
      unit = unit << 4 | UInt16(digit)
    }
    offset += 4
    return unit
  }
}
