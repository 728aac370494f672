import CWeft
import Testing
import WeftTestSupport

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Drops what it was given when its thread's specific data are destroyed: each handle in a round of
/// its own, before Weft's record of the thread is made away with, and after.
///
/// `@unchecked Sendable`: SAFETY: touched by one thread, at its end.
private final class LateHandles: @unchecked Sendable {
  var fibers: [Fiber<Int, Never>]
  init(_ fibers: [Fiber<Int, Never>]) { self.fibers = fibers }

  static let key: pthread_key_t = {
    var key = pthread_key_t()
    // SAFETY: the destructor takes the reference over that `keep` gave.
    unsafe pthread_key_create(&key) { value in
      guard let value = unsafe value else { return }
      let late = unsafe Unmanaged<LateHandles>.fromOpaque(value).takeRetainedValue()
      if let fiber = late.fibers.popLast() { expect(fiber.join() >= 0) }
      if !late.fibers.isEmpty { late.keep() }
    }
    return key
  }()

  func keep() {
    // SAFETY: as above.
    unsafe pthread_setspecific(Self.key, Unmanaged.passRetained(self).toOpaque())
  }
}

/// From where handles may be dropped.
@Suite struct RecordPoolThreadsTests {
  /// An object that two fibers had at once would give one of them the other's result.
  @Test func severalSchedulersAndThreadsDropEachOthers() throws {
    let shelf = Guarded<[(Int, Fiber<Int, Never>)]>([])
    let rounds = scaled(20_000)
    onThreads(4) { thread in
      let work = {
        for round in 0..<rounds {
          let number = thread * rounds + round
          let fiber = Fiber { number }
          let other = shelf.withLock { shelf in
            shelf.append((number, fiber))
            return shelf.count < 200 ? nil : shelf.remove(at: number % shelf.count)
          }
          if let (number, fiber) = other { expect(fiber.join() == number) }
        }
      }
      // Two schedulers, and two plain threads that use the shared one.
      if thread < 2 { _ = try? onWorkers(2, work) } else { work() }
    }
    for (number, fiber) in shelf.withLock({ $0 }) { #expect(fiber.join() == number) }
  }

  @Test func handlesAreDroppedByDestructorsOfThreads() throws {
    let rounds = scaled(200, least: 10)
    for round in 0..<rounds {
      onThreads(2) { thread in
        let fibers = (0..<3).map { number in Fiber { number + thread } }
        if round % 2 == 0 { for fiber in fibers { fiber.join() } }
        LateHandles(fibers).keep()
      }
    }
  }

  /// A fiber's own last instructions drop the last handle of another, and of itself.
  @Test(arguments: [1, 2, 4]) func fibersDropHandlesAsTheyEnd(workers: Int) throws {
    let rounds = scaled(20_000)
    try onWorkers(workers) {
      var last = Fiber { 0 }
      for round in 1..<rounds {
        let before = last
        let own = Guarded<Fiber<Int, Never>?>(nil)
        last = Fiber {
          let value = before.join()
          own.withLock { $0 = nil }
          return value + 1
        }
        own.withLock { $0 = round % 2 == 0 ? last : nil }
        if round % 100 == 0 { #expect(last.join() == round) }
      }
      #expect(last.join() == rounds - 1)
    }
  }

  #if !canImport(Darwin)
    /// The pool's lock is nobody's in a child, whatever the other threads were about.
    @Test(.enabled(if: canFork && !isSanitized), .timeLimit(.minutes(1)))
    func aChildFindsThePoolInOrder() async {
      await #expect(processExitsWith: .success) { #expect(childrenThatFail(of: 200) == 0) }
    }
  #endif
}

#if !canImport(Darwin)
  /// Takes from the pool and gives back until it is told to stop.
  private func useThePool(until stop: Counter) {
    // SAFETY: taken from the pool and given back, once each.
    var objects: [UnsafeMutableRawPointer] = unsafe []
    while stop.value == 0 {
      while let object = unsafe weft_record_acquire(), unsafe objects.count < 3_000 {
        unsafe objects.append(object)
      }
      unsafe objects.forEach { unsafe weft_record_release($0) }
      unsafe objects.removeAll(keepingCapacity: true)
      weft_record_trim()
    }
  }

  /// The same in a child, with no more of Swift than there must be: the other thread may have held
  /// its locks.
  private func useThePoolAndExit() -> Never {
    alarm(10)
    var sum: UInt = 0
    var count = 0
    while count < 2_000 {
      // SAFETY: from the pool; the address is all that is used.
      guard let object = unsafe weft_record_acquire() else { _exit(1) }
      sum |= UInt(bitPattern: object)
      count += 1
    }
    weft_record_trim()
    _ = weft_record_settle(true)
    _exit(sum & 15 == 0 ? 0 : 2)
  }

  private func childrenThatFail(of count: Int) -> Int {
    FiberCell.prepareMemory()
    let stop = Counter()
    let thread = PlainThread { useThePool(until: stop) }
    var failures = 0
    for _ in 0..<count {
      let child = forkProcess()
      if child == 0 { useThePoolAndExit() }
      var status: Int32 = 0
      // SAFETY: the status is ours.
      while unsafe waitpid(child, &status, 0) < 0 && errno == EINTR {}
      if status != 0 { failures += 1 }
    }
    stop.add()
    thread.join()
    return failures
  }
#endif
