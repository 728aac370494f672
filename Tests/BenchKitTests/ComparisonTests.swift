import BenchKit
import Testing

@Suite("Comparison")
struct ComparisonTests {
  func row(min: Double, median: Double) throws -> Comparison.Row {
    let old = Report(
      version: "1", machine: machine(), settings: Settings(),
      jobs: [job("a", min: 100, median: 200)], relations: [])
    let new = Report(
      version: "1", machine: machine(), settings: Settings(),
      jobs: [job("a", min: min, median: median)], relations: [])
    return try #require(try Comparison(old: old, new: new).rows.first)
  }

  @Test(arguments: [
    (100.0, 200.0, false), (111, 200, false), (100, 300, false), (111, 222, true),
    (110, 220, false), (50, 100, false),
  ])
  func slowerMeansBothMinimumAndMedian(min: Double, median: Double, past: Bool) throws {
    #expect(try row(min: min, median: median).isPast(thresholdPercent: 10) == past)
  }

  @Test func zeroIsNoDivisor() throws {
    let grown = try Comparison(old: report([("a", 0)]), new: report([("a", 1)]))
    #expect(grown.rows[0].minPercent == .infinity)
    #expect(grown.past(thresholdPercent: 1000).count == 1)
    let same = try Comparison(old: report([("a", 0)]), new: report([("a", 0)]))
    #expect(same.rows[0].medianPercent == 0)
    #expect(same.past(thresholdPercent: 0).isEmpty)
  }

  @Test func jobsOfOneSideOnlyAreNamed() throws {
    let comparison = try Comparison(
      old: report([("a", 1), ("gone", 1)]), new: report([("new", 1), ("a", 1)]))
    #expect(comparison.rows.map(\.name) == ["a"])
    #expect(comparison.added == ["new"])
    #expect(comparison.missing == ["gone"])
    let filtered = try Comparison(old: report([("gone", 1)]), new: report([])) { $0 == "a" }
    #expect(filtered.missing.isEmpty)
  }

  @Test func aJobWhoseUnitChangedIsAnotherJob() throws {
    let old = Report(
      version: "1", machine: machine(), settings: Settings(),
      jobs: [job("a", median: 1, unit: "µs")], relations: [])
    #expect(try Comparison(old: old, new: report([("a", 1)])).rows.isEmpty)
  }

  @Test func anotherMachineOrBuildIsRefused() {
    #expect {
      try Comparison(old: report([], processor: "Other"), new: report([]))
    } throws: { error in
      "\(error)"
        == "the two reports do not compare: the processor was \"Other\" and is \"Test CPU\" now"
    }
    let debug = Report(
      version: "1", machine: machine(build: "debug"), settings: Settings(), jobs: [],
      relations: [])
    #expect(throws: ReportError.self) { try Comparison(old: debug, new: report([])) }
  }
}
