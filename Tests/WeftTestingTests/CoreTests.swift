// Guards against schedules in which the runtime loses something: park and unpark, idle workers,
// stealing, timers, channels, select, locks, groups, cancellation, shutdown, each in a small
// program. `weft-scenarios` runs as many schedules as one has time for; here is a number that CI
// can afford.

import Testing
import WeftScenarios
import WeftTestSupport
import WeftTesting

@Suite struct CoreTests {
  /// Of each scenario; `WEFT_SCHEDULES` for more.
  static let schedules = Int(environmentNumber("WEFT_SCHEDULES") ?? (sanitizer == nil ? 60 : 15))

  @Test(arguments: Scenario.all) func everyScheduleEndsWell(scenario: Scenario) throws {
    try scenario.explore(Self.schedules, seed: stressSeed())
  }

  @Test(arguments: Scenario.allWithFaults) func withFaultsToo(scenario: Scenario) throws {
    try scenario.explore(Self.schedules, seed: stressSeed())
  }

  /// As many as there are with one interruption, up to a bound.
  @Test(arguments: Scenario.all) func fewInterruptions(scenario: Scenario) throws {
    try scenario.explore(Self.schedules, seed: 1, policy: .exhaustive(preemptions: 1))
  }
}
