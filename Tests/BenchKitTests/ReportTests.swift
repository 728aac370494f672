import Testing

@testable import BenchKit

@Suite("Report")
struct ReportTests {
  @Test func survivesJSON() throws {
    let original = Report(
      version: "0.1", machine: machine(processor: "Odd \"CPU\" \\ é"), settings: .quick,
      jobs: [job("a", median: 1.25), job("b", min: 0.5, median: 2)],
      relations: [
        relation("r", goal: .atLeast(8), median: 9), relation("s", goal: .atMost(2.2), median: 3),
        relation("t", goal: nil, median: 1),
      ])
    #expect(try Report(json: JSON(parsing: original.json.text)) == original)
  }

  @Test func namesItsSchemaFirst() {
    #expect(report([]).json.text.hasPrefix("{\n  \"schema\": \"weft-bench/1\""))
  }

  @Test func anotherSchemaIsRefusedByName() throws {
    let newer = JSON.object([.init("schema", .string("weft-bench/9"))])
    #expect {
      try Report(json: newer)
    } throws: { error in
      "\(error)" == "the report has the schema weft-bench/9; this version reads weft-bench/1"
    }
    #expect(throws: ReportError.self) { try Report(json: .array([])) }
  }

  @Test(arguments: ["machine", "settings"])
  func aMissingMemberIsNamed(name: String) {
    guard case .object(let members) = report([]).json else { return }
    let damaged = JSON.object(members.filter { $0.name != name })
    #expect {
      try Report(json: damaged)
    } throws: { "\($0)" == "the report lacks \"\(name)\"" }
  }

  @Test func numbersThatNoIntHoldsAreRefused() throws {
    let text = report([]).json.text.replacing("\"samples\": 30", with: "\"samples\": 1e300")
    #expect(throws: ReportError.self) { try Report(json: JSON(parsing: text)) }
  }

  @Test func membersOfALaterVersionArePassedOver() throws {
    guard case .object(let members) = report([("a", 1)]).json else { return }
    let extended = JSON.object(members + [.init("news", .bool(true))])
    #expect(try Report(json: extended) == report([("a", 1)]))
  }
}

@Suite("Tables")
struct TablesTests {
  @Test func columnsLineUp() {
    let text = Tables.figures([job("a", median: 1), job("longer", median: 1000)])
    let lines = text.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines.allSatisfy { !$0.hasSuffix(" ") })
    #expect(lines[1].hasPrefix("a        1.00    1.00"))
    #expect(lines[2].hasPrefix("longer  1,000   1,000"))
  }

  @Test func goalsAreJudged() {
    let text = Tables.relations([
      relation("good", goal: .atLeast(8), median: 8), relation("bad", goal: .atMost(2), median: 3),
      relation("open", goal: nil, median: 3),
      relation("busy", goal: .atMost(2), median: 1.9, ofMinima: 3.4),
    ])
    let lines = text.split(separator: "\n")
    #expect(lines[1].contains("≥ 8") && lines[1].contains("met"))
    #expect(lines[2].contains("MISSED"))
    #expect(!lines[3].contains("met") && !lines[3].contains("MISSED"))
    #expect(lines[4].contains("unclear"))
  }

  @Test func comparisonMarksWhatGotSlower() throws {
    let comparison = try Comparison(
      old: report([("a", 10), ("b", 10), ("gone", 1)]),
      new: report([("a", 12), ("b", 9), ("new", 1)]))
    let text = Tables.comparison(comparison, thresholdPercent: 10)
    #expect(text.contains("+20.0 %") && text.contains("-10.0 %"))
    #expect(text.split(separator: "\n").filter { $0.contains("SLOWER") }.count == 1)
    #expect(text.contains("Only in this run: new"))
    #expect(text.contains("Only in the older report: gone"))
    #expect(text.contains("1 of 2 jobs past the threshold of 10 %"))
  }
}
