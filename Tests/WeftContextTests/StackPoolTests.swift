import CWeft
import Glibc
import Testing
import Weft
import WeftTestSupport

/// Counts and memory are the process's, so most of these run in a process of their own.
@Suite struct StackPoolTests {
  @Test(arguments: [
    StackSize.bytes(0), .bytes(-1), .bytes(-16), .bytes(.min), .bytes(.max), .bytes(1),
    .kibibytes(15), .bytes((16 << 10) - 1), .kibibytes(.max), .mebibytes(.min),
    .mebibytes(64 << 10 | 1), .bytes(64 << 30 | 1),
  ])
  func sizesOutOfRangeAreRefusedByName(_ size: StackSize) throws {
    let error = #expect(throws: StackError.self) {
      _ = try Coroutine<Void, Int, Void>(stackSize: size) { _, _ in }
    }
    #expect(error?.code == .sizeOutOfRange)
    #expect(error?.requested == size)
    #expect(error?.description.contains("sizes from 16 KiB to 64 GiB are possible") == true)
    // A large slot must not bring a size back into the range.
    typealias Block = InlineArray<4_096, Int>
    #expect(throws: StackError.self) {
      _ = try Coroutine<Block, Int, Void>(stackSize: size) { _, _ in }
    }
  }

  @Test(arguments: [
    StackSize.kibibytes(16), .kibibytes(17), .kibibytes(64), .kibibytes(193), .mebibytes(1),
    .mebibytes(3), .mebibytes(64), .mebibytes(100), .mebibytes(1 << 10), .default,
  ])
  func sizesInTheRangeAreUsable(_ size: StackSize) throws {
    let g = ThrowingGenerator<Int>(stackSize: size) { y in
      try y.yield(1)
      // All of it but what Weft itself needs, to the last page.
      let room = min(size.bytes, 1 << 20) - (12 << 10)
      // SAFETY: within the buffer.
      unsafe withUnsafeTemporaryAllocation(byteCount: room, alignment: 16) { buffer in
        for i in stride(from: 0, to: room, by: 1_024) { unsafe buffer[i] = 1 }
      }
      try y.yield(2)
    }
    #expect(try [g.next(), g.next(), g.next()] == [1, 2, nil])
  }

  @Test func theErrorsSayWhatToDo() async {
    #expect("\(StackSize.default)" == "192 KiB")
    #expect("\(StackSize.mebibytes(3))" == "3 MiB" && "\(StackSize.bytes(100))" == "100 bytes")
    #expect(StackSize.kibibytes(1_024) == .mebibytes(1))
    #expect(Set([StackSize.bytes(1), .bytes(1), .bytes(2)]).count == 2)
  }

  @Test func aDefaultStackTakesAStrideOf256KiB() async {
    await #expect(processExitsWith: .success) {
      var c = try Coroutine<(Int, Int, Int), Int, Result<Int, any Error>>(name: "stride") { y, _ in
        .success(try y.yield(1).0)
      }
      _ = try c.resume((1, 2, 3))
      // A slab of 16 MiB holds 64 of them.
      var others: [Generator<Int>] = []
      for _ in 0..<63 {
        others.append(Generator { y in while true { try y.yield(1) } })
        _ = others.last?.next()
      }
      #expect(StackPool.statistics.slabs == 1)
      #expect(StackPool.statistics.mappedBytes == 16 << 20)
      withExtendedLifetime(others) {}
    }
  }

  @Test func theLastStackThatWasGivenBackIsTheNextThatIsTaken() throws {
    onNewThread {
      // SAFETY: stacks are taken and given back, and nothing runs on them.
      var (first, second, again) = unsafe (weft_stack(), weft_stack(), weft_stack())
      unsafe weft_stack_acquire(StackSize.default.bytes, &first)
      unsafe weft_stack_acquire(StackSize.default.bytes, &second)
      unsafe weft_stack_release(&first)
      unsafe weft_stack_release(&second)
      unsafe weft_stack_acquire(StackSize.default.bytes, &again)
      #expect(unsafe again.top == second.top)
      unsafe weft_stack_acquire(StackSize.default.bytes, &second)
      #expect(unsafe second.top == first.top)
      unsafe weft_stack_release(&again)
      unsafe weft_stack_release(&second)
    }
  }

  @Test func nothingIsLiveAfterEverythingHasEnded() async {
    await #expect(processExitsWith: .success) {
      let before = StackPool.statistics.live
      for size in [StackSize.kibibytes(16), .default, .mebibytes(2), .mebibytes(200)] {
        var all: [Generator<Int>] = []
        for i in 0..<(size == .default ? 300 : 20) {
          all.append(Generator(stackSize: size) { y in for j in 0..<i { try y.yield(j) } })
          _ = all.last?.next()
        }
        #expect(StackPool.statistics.live > before)
        all = []
        #expect(StackPool.statistics.live == before)
        withLargeStack(size) {}
        #expect(StackPool.statistics.live == before)
      }
    }
  }

  @Test func aThreadThatEndsGivesItsStacksBack() async {
    await #expect(processExitsWith: .success) {
      let before = StackPool.statistics
      for _ in 0..<20 {
        onNewThread {
          var all: [Generator<Int>] = []
          for _ in 0..<40 {
            all.append(Generator { y in while true { try y.yield(1) } })
            _ = all.last?.next()
          }
          withExtendedLifetime(all) {}
        }
        #expect(StackPool.statistics.live == before.live)
      }
      // The same ones went round.
      let after = StackPool.statistics
      #expect(after.idleDirty + after.idleClean <= 40 + before.idleDirty + before.idleClean)
    }
  }

  @Test func stacksGivenBackOnAnotherThreadAreReused() async {
    await #expect(processExitsWith: .success) {
      for _ in 0..<30 {
        let all = onNewThread {
          let all = (0..<100).map { _ in Generator<Int> { y in while true { try y.yield(1) } } }
          for g in all { _ = g.next() }
          return Held(all)
        }
        #expect(StackPool.statistics.live >= 100)
        onNewThread { all.value = [] }
      }
      #expect(StackPool.statistics.live == 0)
      #expect(StackPool.statistics.idleDirty + StackPool.statistics.idleClean <= 250)
    }
  }

  @Test func aHundredThousandSuspendedGenerators() async {
    await #expect(processExitsWith: .success) {
      let n = count(100_000, sanitized: 1_000)
      let before = residentBytes()
      var all: [Generator<Int>] = []
      all.reserveCapacity(n)
      for i in 0..<n {
        all.append(Generator { y in for j in 0... { try y.yield(i &+ j) } })
        #expect(all[i].next() == i)
      }
      let each = (residentBytes() - before) / n
      if sanitizer == nil { #expect(each <= 9 << 10, "\(each) bytes a generator") }
      for (i, g) in all.enumerated() where g.next() != i + 1 { Issue.record("generator \(i)") }
      all = []
      #expect(StackPool.statistics.live == 0)
      // The pool keeps 1,024 warm stacks at most, and gives those back when it is asked.
      let left = residentBytes() - before
      if sanitizer == nil { #expect(left < 64 << 20, "\(left) bytes after the spike") }
      StackPool.trim()
      #expect(StackPool.statistics.idleDirty == 0)
      #expect(StackPool.statistics.idleClean >= n)
      let trimmed = residentBytes() - before
      if sanitizer == nil { #expect(trimmed < 40 << 20, "\(trimmed) bytes after the trim") }
      // And they are whole afterwards, guards included.
      let g = Generator<Int> { y in for j in 0... { try y.yield(j) } }
      #expect(Array(g.prefix(3)) == [0, 1, 2])
    }
  }

  @Test func aDeepExcursionIsGivenBackByTrim() async {
    await #expect(processExitsWith: .success) {
      let n = count(300_000, sanitized: 30_000)
      let before = residentBytes()
      #expect(withLargeStack(.mebibytes(32)) { depth(n) } == n)
      if sanitizer == nil { #expect(residentBytes() - before > 8 << 20) }
      StackPool.trim()
      if sanitizer == nil { #expect(residentBytes() - before < 8 << 20) }
    }
  }

  @Test(.disabled(if: sanitizer != nil, "its shadow uses up the mappings"))
  func theMapLimitIsNamedAndNothingIsLost() async {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      // SAFETY: nothing else runs in this process yet.
      unsafe setenv("WEFT_GUARD", "mprotect", 1)
      #expect(RuntimeInfo.current.stackGuard == .mprotect)
      let counter = LiveCounter()
      var all: [ThrowingGenerator<Int>] = []
      var error: StackError?
      while error == nil && all.count < 200_000 {
        let object = counter.make()
        let g = ThrowingGenerator<Int>(stackSize: .kibibytes(64)) { y in
          try withExtendedLifetime(object) { while true { try y.yield(1) } }
        }
        do {
          _ = try g.next()
          all.append(g)
        } catch let failure as StackError {
          error = failure
        }
      }
      #expect(error?.code == .mapLimit)
      #expect(error?.description.contains("vm.max_map_count") == true)
      #expect(all.count > 10_000)
      #expect(counter.live == all.count)
      // Those that are there go on, and room that is made is used.
      for g in all.prefix(100) { #expect(try g.next() == 1) }
      all.removeLast(100)
      for _ in 0..<100 {
        let g = ThrowingGenerator<Int>(stackSize: .kibibytes(64)) { y in
          while true { try y.yield(2) }
        }
        #expect(try g.next() == 2)
      }
      all = []
      #expect(counter.live == 0)
    }
    #expect(!errorText(result).contains("weft:"))
  }

  @Test(.disabled(if: sanitizer != nil, "its shadow needs the address space"))
  func noMoreAddressSpaceIsNamed() async {
    await #expect(processExitsWith: .success) {
      _ = Generator<Int> { y in try y.yield(1) }.next()
      let most = rlim_t(addressSpaceBytes() + 256 << 20)
      var limit = rlimit(rlim_cur: most, rlim_max: most)
      // SAFETY: a local is read.
      unsafe setrlimit(__rlimit_resource_t(9), &limit)  // RLIMIT_AS
      var all: [ThrowingGenerator<Int>] = []
      let error = #expect(throws: StackError.self) {
        for _ in 0..<1_000 {
          let g = ThrowingGenerator<Int>(stackSize: .mebibytes(3)) { y in
            while true { try y.yield(1) }
          }
          _ = try g.next()
          all.append(g)
        }
      }
      #expect(error?.code == .outOfMemory)
      #expect(error?.errno == ENOMEM)
      #expect(error?.description.contains("ulimit -v") == true)
      #expect(all.count > 10)
      // A stack beyond the slabs is refused by name too.
      let huge = #expect(throws: StackError.self) {
        _ = try Coroutine<Void, Int, Void>(stackSize: .mebibytes(2_000)) { _, _ in }
      }
      #expect(huge?.code == .outOfMemory)
      // What there is still serves.
      for g in all { #expect(try g.next() == 1) }
      let live = StackPool.statistics.live
      all.removeAll()
      #expect(StackPool.statistics.live < live)
      var c = try Coroutine<Void, Int, Void>(stackSize: .mebibytes(3)) { y, _ in try y.yield(4) }
      #expect(try c.resume().yielded == 4)
    }
  }
}
