// Guards against policies that leave out schedules they should run.

import Testing
import Weft
import WeftScenarios
import WeftTesting

@Suite struct PolicyTests {
  /// What two fibers that each add 1, with a point in the middle, can come to.
  private func sums(_ policy: Simulation.Policy, schedules: Int) throws -> (Set<Int>, Bool) {
    var configuration = Simulation.Configuration(workers: 1)
    configuration.policy = policy
    let seen = Shared(Set<Int>())
    let result = try Simulation.explore(schedules: schedules, configuration) {
      let count = Shared(0)
      let fibers = (0..<2).map { _ in
        Fiber {
          let old = count.value
          Simulation.point()
          count.value = old + 1
        }
      }
      for fiber in fibers { fiber.join() }
      seen.value.insert(count.value)
    }
    return (seen.value, result.isComplete)
  }

  @Test func withoutInterruptionsNothingIsLost() throws {
    #expect(try sums(.exhaustive(preemptions: 0), schedules: 1_000) == ([2], true))
    #expect(try sums(.roundRobin, schedules: 3) == ([2], false))
  }

  @Test func oneInterruptionLosesOne() throws {
    #expect(try sums(.exhaustive(preemptions: 1), schedules: 1_000) == ([1, 2], true))
  }

  @Test func theOthersFindItToo() throws {
    for policy in [Simulation.Policy.random, .priorities(depth: 2), .mixed] {
      #expect(try sums(policy, schedules: 200).0 == [1, 2], "\(policy)")
    }
  }

  /// Every order of three fibers, none of which is interrupted.
  @Test func everyOrderIsRun() throws {
    var configuration = Simulation.Configuration(workers: 1)
    configuration.policy = .exhaustive(preemptions: 0)
    let orders = Shared(Set<[Int]>())
    let result = try Simulation.explore(schedules: 10_000, configuration) {
      let order = Shared([Int]())
      let fibers = (0..<3).map { index in Fiber { order.value.append(index) } }
      for fiber in fibers { fiber.join() }
      orders.value.insert(order.value)
    }
    #expect(result.isComplete)
    #expect(orders.value.count == 6)
  }

  @Test(arguments: [1, 2]) func theBoundIsKept(workers: Int) throws {
    var counts: [Int] = []
    for preemptions in 0...1 {
      var configuration = Simulation.Configuration(workers: workers)
      configuration.policy = .exhaustive(preemptions: preemptions)
      let result = try Simulation.explore(schedules: 50_000, configuration) {
        let fibers = (0..<2).map { index in Fiber { index } }
        for fiber in fibers { _ = fiber.join() }
      }
      #expect(result.isComplete)
      counts.append(result.schedules)
    }
    #expect(workers == 1 ? counts[0] <= counts[1] : counts[0] < counts[1])
  }

  /// A bug that needs two interruptions at their places: three steps of one fiber between those of
  /// another.
  @Test func depthIsFound() throws {
    func explore(_ policy: Simulation.Policy) -> Bool {
      var configuration = Simulation.Configuration(workers: 1)
      configuration.policy = policy
      configuration.shrinksMost = 0
      do throws(SimulationFailure) {
        try Simulation.explore(schedules: 2_000, configuration) {
          let steps = Shared([Int]())
          let fibers = (0..<2).map { index in
            Fiber {
              for _ in 0..<3 {
                steps.value.append(index)
                Simulation.point()
              }
            }
          }
          for fiber in fibers { fiber.join() }
          try Simulation.require(steps.value != [0, 1, 1, 0, 0, 1])
        }
      } catch {
        return true
      }
      return false
    }
    #expect(explore(.exhaustive(preemptions: 3)))
    #expect(explore(.random))
    #expect(explore(.priorities(depth: 4)))
    #expect(!explore(.exhaustive(preemptions: 1)))
  }
}
