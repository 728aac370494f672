import Testing

@testable import BenchKit

@Suite("JSON")
struct JSONTests {
  @Test func roundTripWithEscapes() throws {
    let value = JSON.object([
      .init("quote \" backslash \\ slash /", .string("line\nreturn\rtab\t bell\u{7} nul\u{0}")),
      .init("unicode", .string("é ≤ 𝄞 👩‍👩‍👧")),
      .init("numbers", .array([.number(0), .number(-1.5), .number(1e20), .number(0.1)])),
      .init("rest", .array([.null, .bool(true), .bool(false), .object([]), .array([])])),
    ])
    #expect(try JSON(parsing: value.text) == value)
  }

  @Test func whatIsNotFiniteBecomesNull() throws {
    let text = JSON.array([.number(.nan), .number(.infinity)]).text
    #expect(try JSON(parsing: text) == .array([.null, .null]))
  }

  @Test func readsWhatOthersWrite() throws {
    let value = try JSON(parsing: #" { "a\u0041\ud834\udd1e\/\b\f" : [1E2 ,-0.5e-1,0 ] } "#)
    #expect(
      value
        == .object([
          .init("aA𝄞/\u{8}\u{C}", .array([.number(100), .number(-0.05), .number(0)]))
        ]))
  }

  @Test(arguments: [
    "", " ", "nul", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "01", "1.", "-",
    "1e", "+1", "\"open", "\"bad \\x\"", "\"\\u12\"", "\"\\ud834\"", "\"\\ud834\\u0041\"",
    "\"\\udd1e\"", "\"\n\"", "[1] 2", "[", "{", "]", "NaN",
  ])
  func refuses(text: String) {
    #expect(throws: JSONError.self) { try JSON(parsing: text) }
  }

  @Test func deepNestingIsRefusedAndDoesNotOverflow() {
    let text = String(repeating: "[", count: 100_000)
    #expect(throws: JSONError(offset: 64, reason: "nested too deep")) { try JSON(parsing: text) }
    let bearable = String(repeating: "[", count: 60) + String(repeating: "]", count: 60)
    #expect(throws: Never.self) { try JSON(parsing: bearable) }
  }

  @Test func lookUp() throws {
    let value = try JSON(parsing: #"{"a": {"b": [1, "x"]}}"#)
    #expect(value["a"]?["b"]?.array?[0].number == 1)
    #expect(value["a"]?["b"]?.array?[1].string == "x")
    #expect(value["a"]?["c"] == nil)
    #expect(JSON.null["a"] == nil)
    #expect(JSON.null.number == nil && JSON.null.string == nil && JSON.null.array == nil)
  }
}
