// StyledTextTests.swift - cutting, filling, colouring, wrapping.
import Testing

@testable import WeftTool

@Suite struct StyledTextTests {
  private let line = StyledLine("abc", .strong) + StyledLine("def")

  @Test func cutsByColumns() {
    #expect(line.clipped(to: 6) == line)
    #expect(line.clipped(to: 5).text == "abcd…")
    #expect(line.clipped(to: 3).text == "ab…")
    #expect(line.clipped(to: 1).text == "…")
    #expect(line.clipped(to: 0).text == "")
    #expect(line.fitted(to: 8).text == "abcdef  ")
    #expect(line.fitted(to: 2).text == "a…")
  }

  @Test func coloursOnlyWhenAsked() {
    #expect(line.rendered(color: false) == "abcdef")
    #expect(line.rendered(color: true) == "\u{1B}[1mabc\u{1B}[0mdef")
    #expect(StyledLine("a  ").rendered(color: false) == "a")
    #expect(StyledLine("   ").rendered(color: false) == "")
  }

  @Test func wrapsWords() {
    #expect(wrapped("aa bb cc", to: 5) == ["aa bb", "cc"])
    #expect(wrapped("", to: 5) == [])
    #expect(wrapped("toolong b", to: 3) == ["toolong", "b"])
  }

  @Test(arguments: [(0, "0"), (999, "999"), (1000, "1,000"), (-1_234_567, "-1,234,567")])
  func groupsDigits(_ value: Int, _ text: String) {
    #expect(grouped(value) == text)
  }

  @Test func glyphsFollowTheLocale() {
    func glyphs(_ variables: [String: String]) -> Glyphs { .forLocale { variables[$0] } }
    #expect(glyphs([:]) == .unicode)
    #expect(glyphs(["LANG": "en_US.UTF-8"]) == .unicode)
    #expect(glyphs(["LANG": "C"]) == .ascii)
    #expect(glyphs(["LANG": "C", "LC_ALL": "C.utf8"]) == .unicode)
    #expect(glyphs(["TERM": "dumb"]) == .ascii)
  }
}
