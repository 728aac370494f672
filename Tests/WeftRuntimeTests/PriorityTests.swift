import CWeft
import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

extension RuntimeTests {
  /// The two classes of fibers: high ones first, normal ones never starved.
  @Suite struct PriorityTests {
    @Test(arguments: workerCounts)
    func highOnesRunFirst(workers: Int) throws {
      let count = 64
      try onWorkers(workers) {
        let order = Box<[FiberPriority]>([])
        var fibers: [Fiber<Void, Never>] = []
        for priority in [FiberPriority.normal, .high] {
          for _ in 0..<count {
            fibers.append(
              Fiber(placement: .worker(0), priority: priority) {
                order.change { $0.append(priority) }
              })
          }
        }
        // Not by joining, which runs the fiber that is joined.
        waitUntil { order.value.count == 2 * count }
        let beforeTheLastHigh = order.value[...(order.value.lastIndex(of: .high) ?? 0)]
        let normal = beforeTheLastHigh.count { $0 == .normal }
        // One pick in sixteen, of which this fiber, which yields, takes a part.
        #expect(normal <= count / 15 + 1, "\(normal) normal ones came in between")
        for fiber in fibers { fiber.join() }
      }
    }

    // Situation 44: two fibers that hand the worker to each other starve the rest.
    @Test(arguments: workerCounts)
    func onePickInSixteenIsANormalOnes(workers: Int) throws {
      try onWorkers(workers) {
        let picks = Counter()
        let stop = Counter()
        let busy = (0..<2).map { _ in
          Fiber(placement: .worker(0), priority: .high) {
            while stop.value == 0 {
              picks.add()
              Fiber.yield()
            }
          }
        }
        let gaps = Fiber(placement: .worker(0)) { () -> [Int] in
          var gaps: [Int] = []
          Fiber.yield()
          for _ in 0..<100 {
            let before = picks.value
            Fiber.yield()
            gaps.append(picks.value - before)
          }
          stop.add()
          return gaps
        }
        // This one waits outside the queue, so that the other gets the whole share.
        let seen = gaps.join()
        for fiber in busy { fiber.join() }
        #expect(seen.allSatisfy { (8...16).contains($0) }, "\(seen)")
      }
    }

    /// Waking, sleeping and joining among high ones must leave the share as it is.
    @Test(arguments: workerCounts)
    func highOnesThatParkAndJoinStarveNobody(workers: Int) throws {
      try onWorkers(workers) {
        let stop = Counter()
        let busy = (0..<4).map { i in
          Fiber(placement: .worker(0), priority: .high) {
            while stop.value == 0 {
              let own = Fiber.current
              switch i {
              case 0: Fiber(placement: .worker(0)) { own?.unpark() }
              case 1: Fiber(placement: .worker(0)) {}.join()
              case 2: own?.unpark()
              default:
                try Fiber.sleep(for: .microseconds(1))
                continue
              }
              if i != 1 { try Fiber.park() }
              Fiber.yield()
            }
          }
        }
        let normal = Fiber(placement: .worker(0)) {
          for _ in 0..<50 { Fiber.yield() }
          stop.add()
        }
        normal.join()
        for fiber in busy { try fiber.join() }
      }
    }

    @Test(arguments: workerCounts)
    func childrenInheritIt(workers: Int) throws {
      try onWorkers(workers) {
        #expect(!Self.isHigh)  // main
        try Fiber(priority: .high) {
          expect(Self.isHigh)
          expect(Fiber { Self.isHigh }.join())
          expect(!Fiber(priority: .normal) { Self.isHigh }.join())
          expect(Fiber { Fiber { Self.isHigh }.join() }.join())
          let placed = Placement.worker(workers - 1)
          expect(Fiber(placement: placed) { Self.isHigh }.join())
          let children = try withFiberGroup(of: Bool.self) { group in
            group.spawn { Self.isHigh }
            group.spawn { Fiber { Self.isHigh }.join() }
            group.spawn(priority: .normal) { !Self.isHigh }
            return [try group.next(), try group.next(), try group.next()]
          }
          expect(children == [true, true, true])
        }.join()
      }
      // On a plain thread there is nothing to inherit.
      #expect(!Fiber { Self.isHigh }.join())
      #expect(Fiber(priority: .high) { Self.isHigh }.join())
    }

    /// A thief takes the high ones first, and they stay high where they go.
    @Test(.enabled(if: weft_cpus_available() >= 2), arguments: [2, 4])
    func stolenOnesStayHigh(workers: Int) throws {
      try withScheduler(ProgressTests.quiet(workers)) {
        let gates = (0..<workers).map { _ in Counter() }
        let blockers = (1..<workers).map { index in
          Fiber(placement: .worker(index)) {
            gates[0].add()
            while gates[index].value == 0 { sched_yield() }
          }
        }
        waitUntil { gates[0].value == workers - 1 }
        // Nobody can take part while these are queued: a lone queue of both classes.
        let order = Box<[Bool]>([])
        let fibers = [FiberPriority.normal, .high].flatMap { priority in
          (0..<16).map { _ in
            Fiber(placement: .here, priority: priority) {
              let isHigh = Self.isHigh
              order.change { $0.append(isHigh) }
            }
          }
        }
        gates[1].add()
        #expect(spin { order.value.count == 32 })
        #expect(order.value == (0..<32).map { $0 < 16 })
        #expect(schedulerCore().steals(1) == 32)
        for gate in gates { gate.add() }
        for fiber in fibers + blockers { fiber.join() }
      }
    }

    private static var isHigh: Bool {
      // SAFETY: the running fiber's own record.
      unsafe (Fiber.current?.cell.pointer.pointee.flags ?? 0) & .high != 0
    }
  }
}
