@testable import BenchKit

/// A report with one job for each name and median given.
func report(_ medians: [(String, Double)], processor: String = "Test CPU") -> Report {
  Report(
    version: "1", machine: machine(processor: processor), settings: Settings(),
    jobs: medians.map { job($0.0, median: $0.1) }, relations: [])
}

func machine(processor: String = "Test CPU", build: String = "release") -> Machine {
  Machine(
    system: "linux", architecture: "x86_64", processor: processor, processors: 2, build: build)
}

func job(
  _ name: String, group: String = "g", min: Double? = nil, median: Double, unit: String = "ns"
) -> JobResult {
  JobResult(
    name: name, group: group, unit: unit, summary: "Measures <\(name)> & \"more\".",
    excludes: "nothing", purpose: .claim, iterations: 10,
    statistics: Summary(
      count: 5, min: min ?? median, median: median, p90: median * 1.5, p99: median * 2))
}

func relation(
  _ name: String, goal: Goal?, median: Double, ofMinima: Double? = nil
) -> RelationResult {
  RelationResult(
    name: name, formula: "a / b", unit: "×", goal: goal, median: median,
    ofMinima: ofMinima ?? median)
}
