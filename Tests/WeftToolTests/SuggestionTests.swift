// SuggestionTests.swift - "did you mean".
import Testing

@testable import WeftTool

@Suite struct SuggestionTests {
  @Test(arguments: [
    ("", "", 0), ("sum", "sum", 0), ("smu", "sum", 1), ("su", "sum", 1), ("summ", "sum", 1),
    ("sun", "sum", 1), ("", "sum", 3), ("kitten", "sitting", 3),
  ])
  func countsEdits(_ left: String, _ right: String, _ distance: Int) {
    #expect(Suggestion.distance(left, right) == distance)
    #expect(Suggestion.distance(right, left) == distance)
  }

  @Test func findsSlipsAndBeginnings() {
    let names = ["swap", "sum", "generator", "tree", "primes"]
    #expect(Suggestion.closest(to: "smu", among: names) == "sum")
    #expect(Suggestion.closest(to: "SWPA", among: names) == "swap")
    #expect(Suggestion.closest(to: "gen", among: names) == "generator")
    #expect(Suggestion.closest(to: "banana", among: names) == nil)
    #expect(Suggestion.closest(to: "", among: names) == nil)
    #expect(Suggestion.closest(to: "x", among: []) == nil)
  }
}
