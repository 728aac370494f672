import Testing
import Weft
import WeftTestSupport

@testable import WeftSync

extension SyncTests {
  /// Which of several ready cases happens, whoever asks and however they are put together.
  @Suite struct SelectChoiceTests {
    /// Closed channels: always ready, and nothing has to be put back.
    private static func closed(_ count: Int) -> [Channel<Int>] {
      (0..<count).map { _ in
        let channel = Channel<Int>()
        channel.close()
        return channel
      }
    }

    /// Chi squared: further from even shares than one in a billion.
    private func expectEven(_ counts: [Int], _ what: Comment? = nil) {
      let mean = Double(counts.reduce(0, +)) / Double(counts.count)
      let sum = counts.reduce(0) { $0 + (Double($1) - mean) * (Double($1) - mean) / mean }
      let freedom = Double(counts.count - 1)
      #expect(sum < freedom + 9 * (2 * freedom).squareRoot() + 36, what ?? "\(counts)")
    }

    private func countChoices(
      _ rounds: Int, of: Int, _ choose: () throws -> Int
    ) rethrows -> [Int] {
      var counts = Array(repeating: 0, count: of)
      for _ in 0..<rounds { counts[try choose()] += 1 }
      return counts
    }

    /// A plain thread has no worker's state to draw from.
    @Test func aPlainThreadChoosesEvenly() {
      let counts = Held([Int]())
      onThread {
        let all = Self.closed(4)
        counts.value = try! countChoices(8_000, of: 4) {
          try select {
            all[0].onReceive { _ in 0 }
            all[1].onReceive { _ in 1 }
            all[2].onReceive { _ in 2 }
            all[3].onReceive { _ in 3 }
          }
        }
      }
      expectEven(counts.value)
    }

    @Test(arguments: [1, 2, 63, 64, 65, 130])
    func eachOfALoopHasTheSameChance(cases: Int) throws {
      if isSanitized, cases > 4 { return }  // a thousand times as many accesses are looked at
      try onWorkers(1) {
        let all = Self.closed(cases)
        let counts = try countChoices(cases * 200, of: cases) {
          try select {
            for (index, channel) in all.enumerated() { channel.onReceive { _ in index } }
          }
        }
        expectEven(counts)
      }
    }

    /// A mask's bits go to the right cases, where branches, loops and pairs are inside each other.
    @Test func partsInsideEachOther() throws {
      try onWorkers(1) {
        let all = Self.closed(12)
        let never = Channel<Int>()
        for both in [false, true] {
          let counts = try countChoices(6_000, of: 12) {
            try select {
              never.onReceive { _ in -1 }
              for index in 0..<4 {
                if index % 2 == 0 {
                  all[index].onReceive { _ in index }
                  never.onReceive { _ in -1 }
                } else {
                  never.onReceive { _ in -1 }
                  all[index].onReceive { _ in index }
                  if both { never.onSend(1) { -1 } }
                }
              }
              if both {
                for index in 4..<8 { all[index].onReceive { _ in index } }
              } else {
                all[4].onReceive { _ in 4 }
                all[5].onReceive { _ in 5 }
                all[6].onReceive { _ in 6 }
                all[7].onReceive { _ in 7 }
              }
              after(.seconds(100)) { -1 }
              for index in 8..<12 {
                never.onReceive { _ in -1 }
                all[index].onReceive { _ in index }
              }
              otherwise { -1 }
            }
          }
          expectEven(counts)
        }
      }
    }

    /// Of each kind of case one that is ready, and one that never is.
    @Test func eachKindHasTheSameChance() throws {
      try onWorkers(1) {
        let room = Channel<Int>(capacity: 1)
        let full = Channel<Int>(capacity: 1)
        let (open, held) = (FiberMutex(0), FiberMutex(0))
        let (permits, none) = (FiberSemaphore(1), FiberSemaphore(0))
        let (settled, unsettled) = (Promise<Int>(), Promise<Int>())
        try settled.resolve(1)
        let (ended, parked) = (Fiber {}, Fiber { try? Fiber.park() })
        ended.join()
        try full.send(1)
        let counts = try held.withLock { _ in
          try countChoices(7_000, of: 7) {
            try select {
              none.onWait { -1 }
              room.onSend(1) {
                _ = room.receiveIfAvailable()
                return 0
              }
              unsettled.onValue { _ in -1 }
              full.onReceive { _ in
                _ = try full.sendIfAvailable(1)
                return 1
              }
              parked.onJoin { _ in -1 }
              open.onLock { _ in 2 }
              permits.onWait {
                permits.signal()
                return 3
              }
              after(.seconds(100)) { -1 }
              settled.onValue { _ in 4 }
              ended.onJoin { _ in 5 }
              after(.zero) { 6 }
              otherwise { -1 }
            }
          }
        }
        parked.unpark()
        parked.join()
        expectEven(counts)
      }
    }

    /// Many selects want the same few things, so that most attempts fail under the lock: all go on.
    @Test(arguments: workerCounts)
    func attemptsThatFailWaitInStead(workers: Int) throws {
      let rounds = scaled(4_000)
      try onWorkers(workers) {
        let tokens = (0..<2).map { _ in Channel<Int>(capacity: 1) }
        let permits = FiberSemaphore(1)
        let mutex = FiberMutex(0)
        for (number, channel) in tokens.enumerated() { try channel.send(number) }
        let fibers = (0..<6).map { _ in
          Fiber { () throws -> [Int] in
            var took = [0, 0, 0, 0]
            for _ in 0..<rounds {
              let index = try select {
                tokens[0].onReceive { _ in 0 }
                tokens[1].onReceive { _ in 1 }
                permits.onWait { 2 }
                mutex.onLock { value in
                  value += 1
                  return 3
                }
              }
              took[index] += 1
              if index == 2 { Fiber.yield() }
              switch index {
              case 0, 1: try tokens[index].send(index)
              case 2: permits.signal()
              default: break
              }
            }
            return took
          }
        }
        var sum = [0, 0, 0, 0]
        for fiber in fibers { sum = zip(sum, try fiber.join()).map { $0 + $1 } }
        #expect(sum.reduce(0, +) == 6 * rounds)
        #expect(mutex.withLock { $0 } == sum[3])
        for (number, channel) in tokens.enumerated() {
          #expect(channel.receiveIfAvailable() == number)
          #expect(channel.receiveIfAvailable() == nil)
          #expect(ChannelTests.receiversWaiting(channel) == 0)
        }
        #expect(permits.waitIfAvailable() && !permits.waitIfAvailable())
      }
    }
  }
}
