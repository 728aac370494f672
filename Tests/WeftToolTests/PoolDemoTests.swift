// PoolDemoTests.swift - the demos that run on the scheduler, on one, two and four workers.
import Foundation
import Testing
import WeftRuntime

@testable import WeftTool

@Suite struct PoolDemoTests {
  @Test(arguments: ["1", "2", "4"]) func sumIsRight(_ workers: String) throws {
    let run = try weft(
      "demo", "pool", "--upto", "1000", "--fibers", "7", "--workers", workers)
    #expect(run.out == "sum: 500500\n")
    #expect(run.err.hasPrefix("7 fibers on \(workers) worker"))
    #expect(run.status == 0)
  }

  @Test(arguments: [(0, 1, 0), (1, 1, 1), (100, 100, 5050), (5000, 3, 12_502_500)])
  func sumsOfAllSizes(_ upto: Int64, _ fibers: Int, _ sum: Int64) {
    for workers in [1, 2, 4] {
      let report = PoolDemo.report(PoolPlan(upto: upto, fibers: fibers), workers: workers)
      #expect(report.lines == ["sum: \(sum)"])
      #expect(report.problem == nil)
      #expect(report.counters.workers == workers)
      #expect(report.counters.fibersMade == fibers + 1)
    }
  }

  @Test(arguments: [1, 2, 4]) func skynetAddsUp(_ workers: Int) {
    for leaves: Int64 in [1, 2, 9, 10, 11, 1000, 12_345] {
      let report = SkynetDemo.report(leaves: leaves, workers: workers)
      #expect(report.problem == nil)
      #expect(report.lines[0] == "sum: \(leaves * (leaves - 1) / 2)")
    }
  }

  @Test func skynetCountsItsFibers() {
    #expect(SkynetDemo.fibers(1) == 1)
    #expect(SkynetDemo.fibers(10) == 11)
    #expect(SkynetDemo.fibers(1_000_000) == 1_111_111)
    #expect(SkynetDemo.split(11).map(\.count).reduce(0, +) == 11)
    #expect(SkynetDemo.split(3).map(\.start) == [0, 1, 2])
  }

  @Test func skynetPrintsSumAndFibers() throws {
    let run = try weft("demo", "skynet", "--leaves", "10000")
    #expect(run.lines[0...1] == ["sum: 49995000", "fibers: 11111"])
    #expect(run.lines[2].hasPrefix("time a fiber: "))
    #expect(run.err.hasPrefix("11,111 fibers on "))
    #expect(run.status == 0)
  }

  @Test(arguments: [1, 2, 4]) func pingsComeBack(_ workers: Int) {
    let report = PingPongDemo.report(rounds: 2000, workers: workers)
    #expect(report.problem == nil)
    #expect(report.lines[0] == "rounds: 2000")
  }

  @Test(arguments: [1, 2, 4]) func tokenStopsWhereItShould(_ workers: Int) {
    for (fibers, rounds, holder) in [(503, 1000, 498), (1, 5, 1), (2, 5, 2), (3, 0, 1)] {
      let report = RingDemo.report(fibers: fibers, rounds: Int64(rounds), workers: workers)
      #expect(report.problem == nil)
      #expect(report.lines[0] == "holder: \(holder)")
    }
  }

  @Test func environmentOverridesWorkers() throws {
    let run = try weft("demo", "pool", "--workers", "1", environment: ["WEFT_WORKERS": "3"])
    #expect(run.err.contains(" on 3 workers"))
    #expect(run.status == 0)
  }

  @Test func aWrongResultIsAFailedCheck() throws {
    let wrong = FiberReport(
      name: "pool", lines: ["sum: 1"], members: [], problem: "the sum is 1",
      counters: PoolCounters(), elapsed: .zero)
    var invocation = try Parser.parse(["demo", "pool"])
    // SAFETY: the path is passed as a terminated string that lives through the call.
    let sink = unsafe open("/dev/null", O_WRONLY | O_CLOEXEC)
    defer { close(sink) }
    invocation.console.out = Output(descriptor: sink)
    let error = #expect(throws: ToolError.self) { try wrong.finish(invocation) }
    #expect(error?.code == .checkFailed)
    #expect(error?.message == "pool: the sum is 1")
  }
}
