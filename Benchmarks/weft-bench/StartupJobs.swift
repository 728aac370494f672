// Supports a claim: what Weft adds to the start of a program that has nothing to do.

import BenchKit
import BenchVariants
import Weft

/// The arguments by which a copy of this program knows what to start. Not for users.
let startArgument = "--serve-start"
let startSchedulerArgument = "--serve-start-scheduler"

/// Milliseconds from the start of a copy of this program to its end.
private func milliseconds(_ argument: String) throws -> Double {
  // SAFETY: the text is there for the call.
  let elapsed = unsafe bench_run_self(argument)
  guard elapsed > 0 else { throw Skipped("this program cannot start itself here") }
  return Double(elapsed) / 1e6
}

private func startJob(_ name: String, _ summary: String, _ argument: String) -> Job {
  Job(
    name, summary, unit: "ms", excludes: "nothing", purpose: .claim,
    method: .gauge(samples: isQuick ? 10 : 100) { try milliseconds(argument) })
}

/// Start-up.
let startupGroup = Group(
  "startup",
  jobs: [
    startJob(
      "startup.bare", "This program as a process that ends at once: Swift's start.", startArgument),
    startJob(
      "startup.scheduler", "The same with an empty Scheduler.run, as many workers as processors.",
      startSchedulerArgument),
  ],
  relations: [
    Relation(
      "startup.cost", "startup.scheduler - startup.bare", unit: "ms", goal: .atMost(2),
      jobs: ["startup.scheduler", "startup.bare"]
    ) { $0[0] - $0[1] }
  ])
