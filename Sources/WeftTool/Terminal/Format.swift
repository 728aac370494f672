// Format.swift - numbers as people read them.

/// A number in base 16, filled up with zeros to a count of digits.
func hex(_ value: UInt64, digits: Int = 0) -> String {
  let text = String(value, radix: 16)
  return String(repeating: "0", count: max(0, digits - text.count)) + text
}

/// A number with a comma between thousands.
func grouped(_ value: Int) -> String {
  let digits = Array(String(value.magnitude))
  var result = ""
  for (index, digit) in digits.enumerated() {
    if index > 0, (digits.count - index).isMultiple(of: 3) { result += "," }
    result.append(digit)
  }
  return value < 0 ? "-" + result : result
}

/// "1 switch", "2 switches".
func counted(_ count: Int, _ one: String, _ many: String) -> String {
  "\(grouped(count)) \(count == 1 ? one : many)"
}

/// Words broken into lines of at most a width.
func wrapped(_ text: String, to columns: Int) -> [String] {
  var lines: [String] = []
  var line = ""
  for word in text.split(separator: " ") {
    if !line.isEmpty, line.count + 1 + word.count > columns {
      lines.append(line)
      line = ""
    }
    line += line.isEmpty ? String(word) : " " + word
  }
  if !line.isEmpty { lines.append(line) }
  return lines
}

extension String {
  /// The text filled with blanks to a width, never cut.
  func padded(to columns: Int) -> String {
    self + String(repeating: " ", count: max(0, columns - count))
  }
}
