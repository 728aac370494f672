/// A JSON value, with the members of objects in order.
public enum JSON: Equatable, Sendable {
  /// `null`
  case null
  /// `true` or `false`
  case bool(Bool)
  /// A number; one that is not finite is written as `null`.
  case number(Double)
  /// A string.
  case string(String)
  /// An array.
  case array([JSON])
  /// An object.
  case object([Member])

  /// One member of an object.
  public struct Member: Equatable, Sendable {
    /// Its name.
    public let name: String
    /// Its value.
    public let value: JSON

    /// A member.
    public init(_ name: String, _ value: JSON) {
      self.name = name
      self.value = value
    }
  }

  /// The member of an object with that name; nil if there is none or this is no object.
  public subscript(name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  /// The number, if it is one.
  public var number: Double? {
    guard case .number(let value) = self else { return nil }
    return value
  }

  /// The string, if it is one.
  public var string: String? {
    guard case .string(let value) = self else { return nil }
    return value
  }

  /// The elements, if it is an array.
  public var array: [JSON]? {
    guard case .array(let values) = self else { return nil }
    return values
  }
}

extension JSON {
  /// The text of the value, two spaces to the level, with a line break at the end.
  public var text: String {
    var output = ""
    write(to: &output, indent: "")
    return output + "\n"
  }

  private func write(to output: inout String, indent: String) {
    switch self {
    case .null: output += "null"
    case .bool(let value): output += value ? "true" : "false"
    case .number(let value): output += value.isFinite ? compact(value) : "null"
    case .string(let value): JSON.writeString(value, to: &output)
    case .array(let values):
      JSON.writeList(values, "[", "]", indent, to: &output) { value, inner, output in
        value.write(to: &output, indent: inner)
      }
    case .object(let members):
      JSON.writeList(members, "{", "}", indent, to: &output) { member, inner, output in
        JSON.writeString(member.name, to: &output)
        output += ": "
        member.value.write(to: &output, indent: inner)
      }
    }
  }

  private static func writeList<Element>(
    _ elements: [Element], _ open: String, _ close: String, _ indent: String,
    to output: inout String, _ write: (Element, String, inout String) -> Void
  ) {
    guard !elements.isEmpty else {
      output += open + close
      return
    }
    let inner = indent + "  "
    output += open
    for (index, element) in elements.enumerated() {
      output += (index == 0 ? "\n" : ",\n") + inner
      write(element, inner, &output)
    }
    output += "\n" + indent + close
  }

  private static func writeString(_ string: String, to output: inout String) {
    output += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": output += "\\\""
      case "\\": output += "\\\\"
      case "\n": output += "\\n"
      case "\r": output += "\\r"
      case "\t": output += "\\t"
      case "\u{0}"..<"\u{20}":
        let digits = String(scalar.value, radix: 16)
        output += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: output.unicodeScalars.append(scalar)
      }
    }
    output += "\""
  }
}
