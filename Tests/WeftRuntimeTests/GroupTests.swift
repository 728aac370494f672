import Testing

@testable import WeftRuntime

extension RuntimeTests {
  /// What api.md says of groups, sentence by sentence.
  @Suite struct GroupTests {
    @Test(arguments: workerCounts)
    func sumsItsChildren(workers: Int) throws {
      let sum = try onWorkers(workers) {
        try withFiberGroup(of: Int.self) { group in
          for i in 0..<100 { group.spawn { i } }
          var sum = 0
          while let value = try group.next() { sum += value }
          return sum
        }
      }
      #expect(sum == 4950)
    }

    @Test(arguments: workerCounts)
    func handsResultsOutInTheOrderOfTheirEnds(workers: Int) throws {
      let order = try onWorkers(workers) {
        try withFiberGroup(of: Int.self) { group in
          let handles = Box<[Int: FiberHandle]>([:])
          for i in 0..<3 {
            group.spawn {
              handles.change { $0[i] = Fiber.current }
              try Fiber.park()
              return i
            }
          }
          waitUntil { handles.value.count == 3 }
          var order: [Int] = []
          for i in [2, 0, 1] {
            handles.value[i]?.unpark()
            if let value = try group.next() { order.append(value) }
          }
          let last = try group.next()
          expect(last == nil && group.isEmpty)
          return order
        }
      }
      #expect(order == [2, 0, 1])
    }

    @Test(arguments: workerCounts)
    func aGroupWithoutChildrenEndsAtOnce(workers: Int) throws {
      let value = try onWorkers(workers) {
        try withFiberGroup(of: Void.self) { group in
          try expect(group.next() == nil)
          group.waitForAll()
          group.cancelAll()
          return 7
        }
      }
      #expect(value == 7)
    }

    @Test(arguments: workerCounts)
    func noChildOutlivesItsGroup(workers: Int) throws {
      let ended = Counter()
      try onWorkers(workers) {
        try withFiberGroup(of: Void.self) { group in
          for i in 0..<50 {
            group.spawn {
              for _ in 0..<i { Fiber.yield() }
              ended.add()
            }
          }
        }
        #expect(ended.value == 50)
      }
    }

    @Test(arguments: workerCounts)
    func waitForAllWaits(workers: Int) throws {
      let ended = Counter()
      try onWorkers(workers) {
        try withFiberGroup(of: Int.self) { group in
          for i in 0..<20 {
            group.spawn {
              try Fiber.sleep(for: .microseconds(i * 50))
              return ended.add()
            }
          }
          group.waitForAll()
          #expect(ended.value == 20)
          try expect(group.next() == nil)
          group.spawn { ended.add() }
          try expect(group.next() == 21)
        }
      }
    }

    @Test(arguments: workerCounts)
    func resultsAreReleasedExactlyOnce(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        try withFiberGroup(of: [Tracked].self) { group in
          for i in 0..<40 { group.spawn { [Tracked(alive, i)] } }
          for _ in 0..<10 { _ = try group.next() }
          // The other thirty are dropped unseen.
        }
        #expect(alive.value == 0)
        try withFiberGroup(of: (Tracked, Int, Int, Int, String).self) { group in
          for i in 0..<40 { group.spawn { (Tracked(alive, i), 1, 2, 3, "large") } }
          var sum = 0
          for _ in 0..<10 { sum += try group.next()?.3 ?? 0 }
          #expect(sum == 30)
        }
      }
      #expect(alive.value == 0)
    }

    @Test(arguments: workerCounts)
    func whatChildrenCapturedIsReleasedAtTheEnd(workers: Int) throws {
      let alive = Counter()
      try onWorkers(workers) {
        try withFiberGroup(of: Int.self) { group in
          for i in 0..<10 {
            let tracked = Tracked(alive, i)
            group.spawn { tracked.number }
          }
          group.waitForAll()
          #expect(alive.value == 0)
        }
      }
    }

    @Test(arguments: workerCounts)
    func spawnIfRoomBoundsTheChildrenThatRun(workers: Int) throws {
      let running = Counter()
      let most = Box(0)
      try onWorkers(workers) {
        try withFiberGroup(of: Int.self) { group in
          var spawned = 0
          var sum = 0
          while spawned < 100 {
            let number = spawned
            let started = group.spawnIfRoom(3) {
              let now = running.add()
              most.change { $0 = max($0, now) }
              Fiber.yield()
              running.add(-1)
              return number
            }
            if started { spawned += 1 } else { sum += try group.next() ?? 0 }
          }
          while let value = try group.next() { sum += value }
          #expect(sum == 4950)
          // Those that have ended leave their room, whether or not their results were taken.
          let refused = group.spawnIfRoom(0) { 0 }
          #expect(!refused)
        }
      }
      #expect(most.value <= 3 && most.value >= 1)
    }

    @Test func worksFromAPlainThread() throws {
      let sum = Box(0)
      let thrown = Box<Oops?>(nil)
      onThread {
        let total = try? withFiberGroup(of: Int.self) { group in
          for i in 0..<10 {
            group.spawn {
              Fiber.yield()
              return i
            }
          }
          var total = 0
          while let value = try group.next() { total += value }
          return total
        }
        sum.value = total ?? -1
        do {
          try withFiberGroup(of: Void.self) { group in
            group.spawn { try Fiber.park() }
            group.spawn { throw Oops(number: 5) }
            group.waitForAll()
          }
        } catch {
          thrown.value = error as? Oops
        }
      }
      #expect(sum.value == 45)
      #expect(thrown.value == Oops(number: 5))
    }

    @Test(arguments: workerCounts)
    func childrenHaveNamesPlacesAndPriorities(workers: Int) throws {
      try onWorkers(workers) {
        try withFiberGroup(of: String?.self) { group in
          group.spawn(name: "a child", placement: .worker(0), priority: .high) {
            Fiber.current?.name
          }
          let name = try group.next() ?? nil
          #expect(name == "a child")
        }
      }
    }

    @Test(arguments: workerCounts)
    func manyChildren(workers: Int) throws {
      let count = scaled(200_000)
      try onWorkers(workers) {
        try withFiberGroup(of: Int.self) { group in
          for i in 0..<count { group.spawn { i } }
          var sum = 0
          while let value = try group.next() { sum += value }
          #expect(sum == count * (count - 1) / 2)
        }
      }
    }

    @Test(arguments: workerCounts)
    func groupsNest(workers: Int) throws {
      @Sendable func tree(_ depth: Int) throws -> Int {
        if depth == 0 { return 1 }
        return try withFiberGroup(of: Int.self) { group in
          for _ in 0..<3 { group.spawn { try tree(depth - 1) } }
          var sum = 0
          while let value = try group.next() { sum += value }
          return sum
        }
      }
      let leaves = try onWorkers(workers) { try tree(isSanitized ? 4 : 7) }
      #expect(leaves == (isSanitized ? 81 : 2187))
    }
  }
}
