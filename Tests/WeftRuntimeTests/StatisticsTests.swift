// Guards against counters that miss what they count, and JSON that is none.

import Testing

@testable import WeftRuntime

@Suite(.serialized) struct StatisticsTests {
  @Test(.timeLimit(.minutes(1)), arguments: [1, 2, 4]) func counts(workers: Int) {
    Scheduler.run(.init(workers: workers)) {
      let core = schedulerCore()
      let before = core.statistics
      #expect(before.workers.count == workers)
      #expect(before.live == 1)
      let fibers = (0..<10).map { _ in Fiber { try? Fiber.park() } }
      #expect(yielding { core.statistics.total.parks - before.total.parks == 10 })
      #expect(core.statistics.live == 11)
      fibers.forEach { $0.unpark() }
      fibers.forEach { $0.join() }
      let after = core.statistics
      #expect(after.total.fibersRun - before.total.fibersRun == 10)
      #expect(after.total.fibersMade - before.total.fibersMade == 10)
      #expect(after.total.wakes - before.total.wakes >= 10)
      #expect(after.total.switches > before.total.switches)
      #expect(after.workers.allSatisfy { $0.role == .active })
      #expect(yielding { core.statistics.live == 1 })
    }
  }

  @Test func highWaterLoadAndIdleTime() {
    Scheduler.run(.init(workers: 1)) {
      let core = schedulerCore()
      let fibers = (0..<2000).map { _ in Fiber {} }
      #expect(core.statistics.total.load == 2001)
      fibers.forEach { $0.join() }
      #expect(core.statistics.total.queueHighWater > 1000)
      // On a busy machine the worker may get to be idle much later than its fiber slept.
      let isCounted = (0..<50).contains { _ in
        let idle = core.statistics.total.idleTime
        try? Fiber.sleep(for: .milliseconds(20))
        return core.statistics.total.idleTime - idle > .milliseconds(15)
      }
      #expect(isCounted)
      // Modes that look at each stack have no caches.
      let isCached = core.debug.isDisjoint(with: [.canary, .poison])
      #expect((core.statistics.total.stacksCached > 0) == isCached)
    }
  }

  @Test func json() {
    Scheduler.run(.init(workers: 2)) {
      let text = schedulerCore().statistics.json
      #expect(text.hasPrefix(#"{"schema":"weft.statistics/1","live":1,"activeWorkers":2,"#))
      var depth = 0
      for character in text {
        if character == "{" || character == "[" { depth += 1 }
        if character == "}" || character == "]" { depth -= 1 }
        #expect(depth >= 0)
      }
      #expect(depth == 0)
      #expect(text.components("\"idleNanoseconds\":") == 3)
      #expect(text.contains(#""role":"active","cpu":null,"fibersRun":"#))
      #expect(!text.contains(",,") && !text.contains(",}"))
    }
  }

  @Test func description() {
    Scheduler.run(.init(workers: 2)) {
      let text = "\(schedulerCore().statistics)"
      #expect(text.contains("1 fiber live, 2 of 2 workers active, 0 overruns"))
      #expect(text.contains("worker 0 (active): 1 run, "))
    }
  }
}
