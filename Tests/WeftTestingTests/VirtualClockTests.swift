// Guards against a virtual clock that stands still, or jumps over somebody who is at work.

import Testing
import Weft
import WeftScenarios
import WeftTesting

@Suite struct VirtualClockTests {
  @Test(arguments: [1, 2]) func jumpsWhenAllWait(workers: Int) throws {
    let clock = ContinuousClock()
    let took = try clock.measure {
      try Simulation.run(seed: 1, .init(workers: workers)) {
        let before = Fiber.now
        try Fiber.sleep(for: .seconds(3_600))
        try Simulation.require(Fiber.now - before >= .seconds(3_600))
        try Simulation.require(Fiber.now - before < .seconds(3_601))
      }
    }
    #expect(took < .seconds(60))
  }

  /// Situation 87: a virtual clock jumps while real work is under way.
  @Test(arguments: [1, 2]) func neverJumpsWhileWorkIsUnderWay(workers: Int) throws {
    try Simulation.explore(schedules: 100, .init(workers: workers)) {
      let log = Shared([String]())
      let sleeper = Fiber {
        try Fiber.sleep(for: .milliseconds(1))
        log.value.append("woken")
      }
      let start = Fiber.now
      try blocking {
        for _ in 0..<20 { Simulation.point() }
        log.value.append("called")
      }
      try Simulation.require(Fiber.now == start, "time passed during the call")
      try sleeper.join()
      try Simulation.require(log.value == ["called", "woken"], "\(log.value)")
    }
  }

  /// Nor does it stand still while somebody waits for it busily.
  @Test(arguments: [1, 2]) func passesWhileSomebodyPolls(workers: Int) throws {
    try Simulation.run(seed: 3, .init(workers: workers)) {
      let end = Fiber.now + .milliseconds(50)
      while Fiber.now < end { Fiber.yield() }
      let isDone = Shared(false)
      let sleeper = Fiber {
        try Fiber.sleep(for: .seconds(5))
        isDone.value = true
      }
      while !isDone.value { Fiber.yield() }
      try sleeper.join()
    }
  }

  @Test func timersFireInOrder() throws {
    try Simulation.explore(schedules: 100, .init(workers: 1)) {
      let woken = Shared([Int]())
      let fibers = [5, 3, 4, 1, 2].map { seconds in
        Fiber {
          try Fiber.sleep(for: .seconds(seconds))
          woken.value.append(seconds)
        }
      }
      for fiber in fibers { try fiber.join() }
      try Simulation.require(woken.value == [1, 2, 3, 4, 5], "\(woken.value)")
    }
  }

  @Test func ticksAreVirtual() throws {
    try Simulation.run(seed: 1) {
      let start = Fiber.now
      let channel = ticks(every: .seconds(60))
      for count in 1...3 {
        let tick = try channel.receive()
        try Simulation.require(tick == start + .seconds(60 * count))
      }
      channel.close()
    }
  }

  /// An instant that a program took from `ContinuousClock` is in the future here too.
  @Test func instantsOfTheRealClockAreNear() throws {
    try Simulation.run(seed: 1) {
      try withDeadline(ContinuousClock.now + .seconds(3_600)) {
        try Fiber.sleep(for: .seconds(1_800))
      }
    }
  }

  @Test func longSleepsSaturate() throws {
    try Simulation.run(seed: 1) {
      let fiber = Fiber { () -> Bool in
        do { try Fiber.sleep(for: .seconds(Int64.max)) } catch { return true }
        return false
      }
      try Fiber.sleep(for: .seconds(1_000_000))
      fiber.cancel()
      try Simulation.require(fiber.join())
    }
  }
}
