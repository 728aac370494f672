// Guards against what went wrong with exclusive cores elsewhere: not freed, aborting, dividing by
// none.

import Testing

@testable import WeftRuntime

@Suite(.serialized) struct ExclusiveTests {
  static func configuration(_ workers: Int) -> Scheduler.Configuration {
    var configuration = Scheduler.Configuration(workers: workers)
    configuration.watchdog = false
    return configuration
  }

  @Test(.timeLimit(.minutes(1)), arguments: [2, 4])
  func itsWorkerRunsNothingElse(workers: Int) {
    onThread {
      Scheduler.run(Self.configuration(workers)) {
        let core = schedulerCore()
        let stop = Count()
        let intruders = Count()
        let exclusive = Fiber(placement: .exclusive) { () -> Int? in
          let index = workerIndex()
          // Its children and those that it wakes run elsewhere, even if it goes on.
          let child = Fiber { workerIndex() == index }
          #expect(spin { child.isFinished })
          if child.join() { intruders.add() }
          while stop.current == 0 { Fiber.yield() }
          return workerIndex() == index ? index : nil
        }
        #expect(yielding { core.exclusiveCount == 1 })
        let others = (0..<200).map { _ in
          Fiber {
            for _ in 0..<20 {
              Fiber.yield()
              if let index = workerIndex(), core.isExclusive(index) { intruders.add() }
            }
          }
        }
        others.forEach { $0.join() }
        #expect(intruders.current == 0)
        stop.add()
        let index = exclusive.join()
        #expect(index != nil && index != 0)
        #expect(yielding { core.exclusiveCount == 0 && core.generalCount == workers })
      }
    }
  }

  @Test(.timeLimit(.minutes(1))) func theyWaitInLine() {
    onThread {
      Scheduler.run(Self.configuration(2)) {
        let running = Count()
        let fibers = (0..<5).map { number in
          Fiber(placement: .exclusive) { () -> Bool in
            running.add()
            for _ in 0..<10 { Fiber.yield() }
            let alone = running.current == 1
            running.add(-1)
            return alone
          }
        }
        #expect(fibers.map { $0.join() } == Array(repeating: true, count: 5))
      }
    }
  }

  // Situation 62: an exclusive worker is not given back; asking for one where none is left aborts.
  @Test(.timeLimit(.minutes(1))) func theWorkerIsFreedEachTime() {
    onThread {
      Scheduler.run(Self.configuration(3)) {
        let core = schedulerCore()
        for _ in 0..<300 { Fiber(placement: .exclusive) {}.join() }
        #expect(yielding { core.exclusiveCount == 0 && core.generalCount == 3 })
      }
    }
  }

  @Test(.timeLimit(.minutes(1))) func allTakenAndTheOthersStillRun() {
    onThread {
      var configuration = Self.configuration(4)
      configuration.placement = .lesserOfTwo
      Scheduler.run(configuration) {
        let core = schedulerCore()
        let parked = (0..<3).map { _ in Fiber(placement: .exclusive) { try? Fiber.park() } }
        #expect(yielding { core.exclusiveCount == 3 && core.generalCount == 1 })
        let sum = (0..<100).map { i in Fiber { i } }.reduce(0) { $0 + $1.join() }
        #expect(sum == 4950)
        parked.forEach { $0.unpark() }
        parked.forEach { $0.join() }
      }
    }
  }

  @Test(.timeLimit(.minutes(1))) func aFreeWorkerStepsIn() {
    onThread {
      var configuration = Scheduler.Configuration(workers: 1...3)
      configuration.corePolicy = FixedPolicy(1)
      configuration.watchdog = false
      Scheduler.run(configuration) {
        let core = schedulerCore()
        let fiber = Fiber(placement: .exclusive) { () -> Int? in
          try? Fiber.park()
          return workerIndex()
        }
        #expect(core.exclusiveCount == 1 && core.generalCount == 1)
        fiber.unpark()
        #expect((fiber.join() ?? 0) > 0)
        #expect(core.generalCount == 1)
      }
    }
  }

  @Test(.timeLimit(.minutes(1))) func theEndOfTheRunEndsThem() {
    onThread {
      Scheduler.run(Self.configuration(2)) {
        for _ in 0..<3 { Fiber(placement: .exclusive) { try? Fiber.park() } }
      }
    }
  }

  @Test func oneWorkerHasNone() async throws {
    let result = try await #require(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Scheduler.run(.init(workers: 1)) { Fiber(placement: .exclusive) {}.join() }
    }
    let text = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(text.contains("no worker is left for exclusive use"))
  }
}
