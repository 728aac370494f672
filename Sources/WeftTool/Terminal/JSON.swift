// JSON.swift - values as JSON text, keys in the order in which they were written.

/// A JSON value.
enum JSON: Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
  ExpressibleByStringInterpolation
{
  case null
  case bool(Bool)
  case int(Int64)
  case string(String)
  case array([JSON])
  case object([Member])

  /// A key and its value.
  struct Member: Equatable {
    var key: String
    var value: JSON
  }

  init(stringLiteral value: String) { self = .string(value) }
  init(integerLiteral value: Int64) { self = .int(value) }
  init(booleanLiteral value: Bool) { self = .bool(value) }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(elements.map { Member(key: $0.0, value: $0.1) })
  }

  static func int(_ value: Int) -> JSON { .int(Int64(value)) }

  /// An address or a register. Written as text: JSON's numbers lose bits beyond 2^53.
  static func hex(_ value: UInt64) -> JSON { .string("0x" + String(value, radix: 16)) }

  /// A string, or null.
  static func optional(_ value: String?) -> JSON { value.map(JSON.string) ?? .null }

  /// An integer, or null.
  static func optional(_ value: Int?) -> JSON { value.map { JSON.int($0) } ?? .null }

  /// The value in one line.
  var text: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .int(let value): String(value)
    case .string(let value): JSON.quoted(value)
    case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
    case .object(let members):
      "{" + members.map { JSON.quoted($0.key) + ":" + $0.value.text }.joined(separator: ",") + "}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case "\r": result += "\\r"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
