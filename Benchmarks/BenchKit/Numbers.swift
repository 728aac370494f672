// Writing numbers without Foundation.

/// A number with a fixed count of decimals, or "–" if it is not finite.
public func fixed(_ value: Double, decimals: Int) -> String {
  guard value.isFinite, abs(value) < 1e15 else { return "–" }
  var scale = 1.0
  for _ in 0..<decimals { scale *= 10 }
  let scaled = (abs(value) * scale).rounded()
  let whole = Int(scaled / scale)
  let sign = value < 0 && scaled > 0 ? "-" : ""
  guard decimals > 0 else { return "\(sign)\(Int(scaled))" }
  let digits = String(Int(scaled - Double(whole) * scale))
  return "\(sign)\(whole)." + String(repeating: "0", count: decimals - digits.count) + digits
}

/// A number with about three significant digits, as a reader wants it in a table.
public func readable(_ value: Double) -> String {
  switch abs(value) {
  case ..<9.995: fixed(value, decimals: 2)
  case ..<99.95: fixed(value, decimals: 1)
  default: grouped(fixed(value, decimals: 0))
  }
}

/// A number without needless zeros: `8`, `2.2`.
public func compact(_ value: Double) -> String {
  value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : "\(value)"
}

/// Digits in groups of three: `1,234,567`.
func grouped(_ digits: String) -> String {
  var result = ""
  for (index, character) in digits.reversed().enumerated() {
    if index > 0, index % 3 == 0, character != "-" { result.append(",") }
    result.append(character)
  }
  return String(result.reversed())
}

/// Text with spaces after it up to a width, counted in characters.
func padded(_ text: String, to width: Int) -> String {
  text + String(repeating: " ", count: max(0, width - text.count))
}

/// Text with spaces before it up to a width.
func aligned(_ text: String, to width: Int) -> String {
  String(repeating: " ", count: max(0, width - text.count)) + text
}
