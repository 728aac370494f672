// DealTests.swift - the bigger sum.
import Testing

@testable import WeftTool

@Suite struct DealTests {
  @Test(arguments: [
    (0, 1, 0), (1, 1, 1), (2, 2, 3), (10, 1, 55), (10, 3, 55), (10, 10, 55), (1000, 7, 500_500),
    (100_000, 10_000, 5_000_050_000),
  ])
  func addsUp(_ upto: Int, _ coroutines: Int, _ sum: Int) throws {
    let run = try weft("demo", "sum", "--upto", "\(upto)", "--coroutines", "\(coroutines)")
    #expect(run.out == "sum: \(sum)\n")
    #expect(run.status == 0)
    // One switch into the first, one after each number, one at the end of each coroutine.
    let switches = grouped(upto + coroutines + 1)
    #expect(run.err.contains("\(switches) switches"))
  }

  @Test func twoCoroutinesUnlessAsked() throws {
    #expect(try weft("demo", "sum", "--upto", "10").err.hasPrefix("2 coroutines"))
    #expect(try weft("demo", "sum", "--upto", "1").err.hasPrefix("1 coroutine,"))
    #expect(try weft("demo", "sum", "--upto", "0").out == "sum: 0\n")
    #expect(try weft("demo", "sum", "--coroutines", "3").out == "sum: 45\n")
  }

  @Test func formulaHoldsAtTheEdge() {
    let most = TextbookDemo.uptoMax
    let report = DealReport(upto: most, coroutines: 1, total: 0, switches: 0)
    #expect(report.expected == 9_223_372_034_707_292_160)
    // One more would not fit.
    #expect((most + 1).multipliedReportingOverflow(by: (most + 3) / 2).overflow)
  }

  @Test func aWrongSumIsAFailedCheck() {
    let wrong = DealReport(upto: 10, coroutines: 2, total: 54, switches: 12)
    #expect(wrong.exitCode == .checkFailed)
    #expect(ExitCode.checkFailed.rawValue == 2)
    let right = DealReport(upto: 10, coroutines: 2, total: 55, switches: 12)
    #expect(right.exitCode == .success)
  }
}
