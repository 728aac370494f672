import Testing

@testable import BenchKit

@Suite("Chart")
struct ChartTests {
  let sample = Report(
    version: "1 <&>", machine: machine(processor: "A \"CPU\" & <more>"), settings: Settings(),
    jobs: [
      job("tiny", group: "one", median: 0.4), job("huge", group: "two", median: 2.5e6),
      job("zero", group: "two", median: 0),
    ], relations: [relation("r <", goal: .atMost(1), median: 2)])

  @Test func svgIsWellFormed() throws {
    let elements = try XMLChecker.elements(in: Chart(sample).svg)
    #expect(elements.first == "svg")
    // The background, and one for each job with a positive median.
    #expect(elements.filter { $0 == "rect" }.count == 3)
  }

  @Test func htmlIsWellFormed() throws {
    let page = Chart(sample).html.replacing("<!doctype html>\n", with: "")
    #expect(try XMLChecker.elements(in: page).filter { $0 == "svg" }.count == 1)
  }

  @Test func anEmptyReportIsDrawnToo() throws {
    #expect(throws: Never.self) { try XMLChecker.elements(in: Chart(report([])).svg) }
  }

  @Test func nothingComesFromOutside() {
    let page = Chart(sample).html.replacing("http://www.w3.org/2000/svg", with: "")
    for forbidden in ["http:", "https:", "<script", "@import", "url("] {
      #expect(!page.contains(forbidden))
    }
  }

  @Test func controlCharactersDoNotReachTheFile() {
    #expect(escaped("a\u{1}b\u{B}c\td") == "a\u{FFFD}b\u{FFFD}c\td")
  }

  @Test func scaleCoversItsValues() {
    let scale = LogScale(smallest: 0.4, largest: 2500)
    #expect(scale.decades == [0.1, 1, 10, 100, 1000, 10_000])
    #expect(scale.fraction(0.1) == 0)
    #expect(scale.fraction(10_000) == 1)
    #expect(scale.fraction(-3) == 0 && scale.fraction(1e9) == 1)
    #expect(abs(scale.fraction(10) - 0.4) < 1e-6)
  }

  @Test(arguments: [(0.0, 0.0), (.nan, 1), (1, .infinity), (1e300, 1e300), (5, 5)])
  func oddValuesMakeAScaleToo(smallest: Double, largest: Double) {
    let decades = LogScale(smallest: smallest, largest: largest).decades
    #expect((2...30).contains(decades.count))
  }

  @Test(arguments: [(1.0, 0.0), (2, 0.30103), (5, 0.69897), (9.99, 0.99957), (10, 1)])
  func logarithms(value: Double, expected: Double) {
    #expect(abs(log10Within(value) - expected) < 1e-4)
  }
}

/// Just enough of an XML reader to say whether tags nest and attributes are quoted.
enum XMLChecker {
  struct Malformed: Error { let reason: String }

  /// The names of all elements in order of their start; throws where the text is not well-formed.
  static func elements(in text: String) throws -> [String] {
    var (open, all): ([String], [String]) = ([], [])
    var rest = text[...]
    while let start = rest.firstIndex(of: "<") {
      try checkContent(rest[..<start])
      guard let end = rest[start...].firstIndex(of: ">") else {
        throw Malformed(reason: "a tag does not end")
      }
      var tag = rest[rest.index(after: start)..<end]
      rest = rest[rest.index(after: end)...]
      if tag.hasPrefix("/") {
        guard open.popLast() == String(tag.dropFirst()) else {
          throw Malformed(reason: "\(tag) closes nothing")
        }
        continue
      }
      let closed = tag.hasSuffix("/")
      if closed { tag.removeLast() }
      let name = String(tag.prefix { !$0.isWhitespace })
      try checkAttributes(tag.dropFirst(name.count))
      all.append(name)
      if !closed { open.append(name) }
    }
    guard open.isEmpty, rest.allSatisfy(\.isWhitespace) else {
      throw Malformed(reason: "left open: \(open)")
    }
    return all
  }

  private static func checkContent(_ text: Substring) throws {
    var rest = text
    while let ampersand = rest.firstIndex(of: "&") {
      rest = rest[ampersand...]
      let known = ["&amp;", "&lt;", "&gt;", "&quot;"]
      guard let entity = known.first(where: { rest.hasPrefix($0) }) else {
        throw Malformed(reason: "a bare & at \(rest.prefix(10))")
      }
      rest = rest.dropFirst(entity.count)
    }
  }

  private static func checkAttributes(_ text: Substring) throws {
    var rest = text.drop(while: \.isWhitespace)
    while !rest.isEmpty {
      guard let equals = rest.firstIndex(of: "=") else {
        throw Malformed(reason: "no = in \(rest)")
      }
      rest = rest[rest.index(after: equals)...]
      guard rest.first == "\"", let end = rest.dropFirst().firstIndex(of: "\"") else {
        throw Malformed(reason: "an attribute without quotes")
      }
      try checkContent(rest[..<end])
      rest = rest[rest.index(after: end)...].drop(while: \.isWhitespace)
    }
  }
}
