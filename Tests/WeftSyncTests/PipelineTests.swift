import CWeft
import Testing
import Weft

@testable import WeftRuntime

/// Fibers of this scheduler that have not ended.
private func liveFibers() -> Int {
  // SAFETY: runs as a fiber, so there is a worker, whose scheduler lives as long.
  unsafe schedulerCore(of: weft_worker_current().unsafelyUnwrapped).live
}

extension SyncTests {
  @Suite struct PipelineTests {
    private func source(_ count: Int) -> Channel<Int> {
      let channel = Channel<Int>(capacity: 4)
      Fiber {
        for i in 0..<count { try channel.send(i) }
        channel.close()
      }
      return channel
    }

    @Test(arguments: workerCounts, [1, 2, 3, 8])
    func mapKeepsTheOrder(workers: Int, fibers: Int) throws {
      let count = scaled(1_000)
      try onWorkers(workers) {
        let (now, most) = (Counter(), Box(0))
        let results = source(count).map(fibers: fibers) { element in
          let running = now.add()
          most.change { $0 = max($0, running) }
          for _ in 0..<element % 5 { Fiber.yield() }
          now.add(-1)
          return element * 2
        }
        var next = 0
        for result in results {
          #expect(result == next * 2)
          next += 1
        }
        #expect(next == count)
        #expect(most.value <= fibers)
      }
    }

    @Test(arguments: workerCounts)
    func withoutOrderAllArrive(workers: Int) throws {
      let count = scaled(1_000)
      try onWorkers(workers) {
        let results = source(count).map(fibers: 4, ordered: false) { element in
          for _ in 0..<element % 5 { Fiber.yield() }
          return element
        }
        #expect(results.sorted() == Array(0..<count))
      }
    }

    @Test(arguments: workerCounts, [false, true])
    func filterLeavesOut(workers: Int, ordered: Bool) throws {
      try onWorkers(workers) {
        let results = source(100).filter(fibers: 3, ordered: ordered) { $0 % 3 == 0 }
        #expect(results.sorted() == (0..<100).filter { $0 % 3 == 0 })
      }
    }

    @Test(arguments: workerCounts)
    func chunks(workers: Int) throws {
      try onWorkers(workers) {
        #expect(Array(source(10).chunked(into: 4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        #expect(Array(source(8).chunked(into: 4)).count == 2)
        #expect(Array(source(0).chunked(into: 4)).isEmpty)
        // One that is not full is sent when its time has come.
        let slow = Channel<Int>()
        let chunks = slow.chunked(into: 4, within: .milliseconds(2))
        try slow.send(1)
        try slow.send(2)
        #expect(try chunks.receive()?.first == 1)
        slow.close()
      }
    }

    /// Closing the last channel ends all that is before it, whatever it was at.
    @Test(arguments: workerCounts, [1, 4])
    func closingTheEndStopsTheRest(workers: Int, fibers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        let endless = Channel<Int>(capacity: 2)
        let producer = Fiber {
          var next = 0
          while true {
            try endless.send(next)
            next += 1
          }
        }
        let results = endless.map(fibers: fibers) { Tracked(alive, $0) }
        for _ in 0..<10 { _ = try results.receive() }
        results.close()
        endless.close()
        expectClosed { try producer.join() }
        while results.receiveIfAvailable() != nil {}
      }
      #expect(alive.value == 0)
    }

    @Test(arguments: workerCounts)
    func mergeTakesFromAll(workers: Int) throws {
      try onWorkers(workers) {
        let merged = merge([source(100), source(50), source(0)])
        var seen = [0: 0]
        for element in merged { seen[element, default: 0] += 1 }
        #expect(seen.count == 100 && seen.values.reduce(0, +) == 150)
        #expect(merge([Channel<Int>]()).isClosed)
      }
    }

    @Test(arguments: workerCounts)
    func ticksComeInTime(workers: Int) throws {
      try onWorkers(workers) {
        let start = ContinuousClock.now
        let ticks = ticks(every: .milliseconds(2))
        var last = start
        for number in 1...5 {
          let tick = try #require(try ticks.receive())
          #expect(tick >= start + .milliseconds(2) * number && tick > last)
          last = tick
        }
        ticks.close()
        ticks.close()
        while try ticks.receive() != nil {}
      }
    }

    /// The fiber that sends them ends at once, though its period is long.
    @Test(arguments: [false, true])
    func ticksStop(byClosing: Bool) throws {
      try onWorkers(1) {
        let live = liveFibers()
        do {
          let ticks = ticks(every: .seconds(100_000))
          for _ in 0..<3 { Fiber.yield() }
          #expect(liveFibers() == live + 1)
          if byClosing { ticks.close() }
        }
        waitUntil { liveFibers() == live }
      }
    }

    @Test(arguments: ["map", "chunked", "ticks"])
    func misuseIsNamed(_ name: String) async {
      let result = await #expect(
        processExitsWith: .failure, observing: [\.standardErrorContent]
      ) { [name] in
        switch name {
        case "map": _ = Channel<Int>().map(fibers: 0) { $0 }
        case "chunked": _ = Channel<Int>().chunked(into: 0)
        default: _ = ticks(every: .zero)
        }
      }
      #expect(errorText(result).contains("weft: \(name)("))
    }
  }
}
