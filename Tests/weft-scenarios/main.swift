// Puts the runtime through simulated schedules, as many as one has time for.
//
//     weft-scenarios [--schedules N] [--seconds S] [--seed N] [--faults] [--only TEXT]
//
// Runs N schedules of each scenario (100 if not given), again with other seeds until S seconds are
// over, and stops at the first failure with exit code 1.

import WeftScenarios
import WeftTesting

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

struct Options {
  var schedules = 100
  var seconds = 0
  var seed: UInt64 = 1
  var faults = false
  var only = ""

  init(_ arguments: [String]) {
    var rest = arguments[...]
    while let word = rest.popFirst() {
      if word == "--faults" {
        faults = true
        continue
      }
      guard let value = rest.popFirst() else { refuse("\(word) needs a value") }
      switch word {
      case "--schedules": schedules = number(value, word)
      case "--seconds": seconds = number(value, word)
      case "--seed": seed = UInt64(number(value, word))
      case "--only": only = value
      default: refuse("\(word) is no option")
      }
    }
  }

  private func number(_ text: String, _ word: String) -> Int {
    guard let number = Int(text), number >= 0 else { refuse("\(word) \(text): not a number") }
    return number
  }
}

func refuse(_ text: String) -> Never {
  print("weft-scenarios: \(text)")
  exit(64)
}

let options = Options(Array(CommandLine.arguments.dropFirst()))
let scenarios = (options.faults ? Scenario.allWithFaults : Scenario.all).filter {
  options.only.isEmpty || $0.name.contains(options.only)
}
if scenarios.isEmpty { refuse("no scenario's name contains \"\(options.only)\"") }

let clock = ContinuousClock()
let start = clock.now
var (schedules, choices) = (0, 0)
var seed = options.seed
repeat {
  for scenario in scenarios {
    do throws(SimulationFailure) {
      let result = try scenario.explore(options.schedules, seed: seed)
      schedules += result.schedules
      choices += result.choices
    } catch {
      print("\(scenario): \(error)")
      print("failed after \(schedules) schedules, \(clock.now - start)")
      exit(1)
    }
  }
  seed += UInt64(options.schedules)
} while clock.now - start < .seconds(options.seconds)
print(
  "\(scenarios.count) scenarios, \(schedules) schedules, \(choices) choices, \(clock.now - start)")
