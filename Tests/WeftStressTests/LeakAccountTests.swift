import Glibc
import Testing
import Weft

extension StressTests {
  /// The account itself: it finds what is left.
  @Suite struct LeakAccountTests {
    enum Kind: Int, CaseIterable { case nothing, descriptor, thread, stack, fiber }

    @Test(arguments: Kind.allCases) func findsWhatIsLeft(kind: Kind) async {
      await #expect(processExitsWith: .success) { [kind = kind.rawValue as Int] in
        Fiber {}.join()  // the shared scheduler stays
        let kind = try #require(Kind(rawValue: kind))
        let stop = Box(false)
        var kept: [Generator<Int>] = []
        var threads: [PlainThread] = []
        var leak: Leak?
        do {
          try leavingNothing(within: .milliseconds(30)) {
            switch kind {
            case .nothing: Fiber {}.join()
            // SAFETY: the path lives as long as the call.
            case .descriptor: _ = unsafe open("/dev/null", O_RDONLY)
            case .thread: threads.append(PlainThread { while !stop.value { usleep(100) } })
            case .stack:
              kept.append(Generator<Int> { y in while true { try y.yield(1) } })
              _ = kept.last?.next()
            case .fiber:
              let isParked = Counter()
              Fiber {
                isParked.add()
                try? Fiber.park()
              }
              waitUntil { isParked.value == 1 }
            }
          }
        } catch let error as Leak {
          leak = error
        }
        stop.value = true
        for thread in threads { thread.join() }
        guard kind != .nothing else { return #expect(leak == nil) }
        let (before, after) = (try #require(leak).before, try #require(leak).after)
        #expect(after.descriptors - before.descriptors == (kind == .descriptor ? 1 : 0))
        #expect(after.fibers - before.fibers == (kind == .fiber ? 1 : 0))
        if kind == .thread { #expect(after.threads > before.threads) }
        if kind == .stack { #expect(after.stacks > before.stacks) }
        withExtendedLifetime(kept) {}
      }
    }
  }
}
