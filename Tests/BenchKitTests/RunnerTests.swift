import Synchronization
import Testing

@testable import BenchKit

/// Jobs that note when they ran.
private final class Recorder: Sendable {
  let calls = Mutex<[String]>([])

  func timed(_ name: String, cost: Double) -> Job {
    Job(
      name, "Test.", unit: "ns", excludes: "", purpose: .regression,
      method: .timed { [self] count in
        calls.withLock { $0.append(name) }
        return Double(count) * cost
      })
  }

  func gauge(_ name: String, samples: Int, value: Double) -> Job {
    Job(
      name, "Test.", unit: "bytes", excludes: "", purpose: .claim,
      method: .gauge(samples: samples) { [self] in
        calls.withLock { $0.append(name) }
        return value
      })
  }
}

@Suite("Runner")
struct RunnerTests {
  let settings = Settings(samples: 4, warmUps: 1, sampleNanoseconds: 1000)
  private let recorder = Recorder()

  @Test func figuresArePerOperation() throws {
    let job = Job(
      "a", "Test.", unit: "ns", excludes: "", purpose: .claim, perIteration: 2,
      method: .timed { Double($0) * 10 })
    var runner = Runner(settings: settings)
    let result = try runner.run([Group("g", jobs: [job])]) { _ in true }
    #expect(result.jobs.map(\.statistics) == [Summary(count: 4, min: 5, median: 5, p90: 5, p99: 5)])
    #expect(result.jobs[0].iterations == 100)
  }

  @Test func jobsOfAGroupTakeTurns() throws {
    var runner = Runner(settings: settings)
    let jobs = [recorder.timed("a", cost: 1000), recorder.timed("b", cost: 1000)]
    _ = try runner.run([Group("g", jobs: jobs)]) { _ in true }
    // Each is calibrated once, by two trials that agree, before its first sample.
    #expect(recorder.calls.withLock { $0.joined() } == "aaabbb" + "abababab")
  }

  @Test func gaugesRunAsOftenAsTheySayAndAreNotWarmedUp() throws {
    var runner = Runner(settings: settings)
    let result = try runner.run([
      Group("g", jobs: [recorder.gauge("a", samples: 2, value: 7)])
    ]) { _ in true }
    #expect(recorder.calls.withLock(\.count) == 2)
    #expect(result.jobs[0].statistics.median == 7)
  }

  @Test func relationsAreOfOneGroupAndNeedAllTheirJobs() throws {
    let groups = [
      Group("one", jobs: [recorder.timed("a", cost: 10)]),
      Group(
        "two", references: ["a"],
        jobs: [recorder.timed("b", cost: 40), recorder.timed("c", cost: 1)],
        relations: [
          .ratio("b/a", "b", over: "a", times: 2, goal: .atMost(2)),
          .ratio("b/missing", "b", over: "missing"),
          .figure("c", unit: "ns", goal: .atLeast(2)),
        ]),
    ]
    var runner = Runner(settings: settings)
    let all = try runner.run(groups) { _ in true }
    #expect(all.relations.map(\.name) == ["b/a", "c"])
    #expect(all.relations[0].median == 2 && all.relations[0].ofMinima == 2)
    #expect(all.relations[0].formula == "b / (2 × a)")
    #expect(all.relations.map(\.verdict) == [.met, .missed])
    // A job that runs along as a reference has the samples of both groups.
    #expect(all.jobs.first { $0.name == "a" }?.statistics.count == 8)

    var filtered = Runner(settings: settings)
    let some = try filtered.run(groups) { $0 == "b" }
    #expect(some.jobs.map(\.name) == ["b"])
    #expect(some.relations.isEmpty)
  }

  @Test func aWrongResultNamesItsJob() {
    let job = Job("a.b", "Test.", unit: "ns", excludes: "", purpose: .claim) { _ in
      try check(1 + 1, is: 3)
    }
    var runner = Runner(settings: settings)
    #expect {
      try runner.run([Group("g", jobs: [job])]) { _ in true }
    } throws: { "\($0)" == "a.b: got 2 where 3 was to come out" }
  }

  @Test func whatCannotBeDoneIsLeftOutWithItsReason() throws {
    let impossible = Job(
      "b", "Test.", unit: "ns", excludes: "", purpose: .claim,
      method: .gauge(samples: 3) { throw Skipped("too small") })
    var runner = Runner(settings: settings)
    let result = try runner.run([
      Group(
        "g", jobs: [impossible, recorder.timed("a", cost: 10)],
        relations: [.ratio("r", "a", over: "b")])
    ]) { _ in true }
    #expect(result.jobs.map(\.name) == ["a"])
    #expect(result.relations.isEmpty)
    #expect(runner.skipped.map(\.name) == ["b"] && runner.skipped[0].reason == "too small")
  }

  @Test func progressGrowsFromZeroToLessThanOne() throws {
    let seen = Mutex<[Double]>([])
    var runner = Runner(settings: settings) { progress in
      seen.withLock { $0.append(progress.fraction) }
    }
    _ = try runner.run([
      Group("g", jobs: [recorder.timed("a", cost: 100), recorder.timed("b", cost: 100)]),
      Group("h", jobs: [recorder.gauge("c", samples: 1, value: 1)]),
    ]) { _ in true }
    let fractions = seen.withLock { $0 }
    #expect(fractions.first == 0)
    #expect(fractions == fractions.sorted())
    #expect(fractions.allSatisfy { $0 < 1 })
  }
}

@Suite("Goal")
struct GoalTests {
  @Test func judges() {
    #expect(Goal.atMost(2.2).isMet(by: 2.2) && !Goal.atMost(2.2).isMet(by: 2.21))
    #expect(Goal.atLeast(8).isMet(by: 8) && !Goal.atLeast(8).isMet(by: 7.99))
    #expect(!Goal.atMost(1).isMet(by: .nan) && !Goal.atLeast(1).isMet(by: .nan))
    #expect(Goal.atMost(2.2).text == "≤ 2.2" && Goal.atLeast(8).text == "≥ 8")
  }

  @Test func ratiosOverNothingAreLeftOut() {
    let relation = Relation.ratio("r", "a", over: "b")
    #expect(relation.evaluate(["a": [0], "b": [0]]) == nil)
    #expect(relation.evaluate(["a": [6, 1], "b": [2, 0]])?.median == 3)
    #expect(relation.evaluate(["a": [6]]) == nil)
  }
}
