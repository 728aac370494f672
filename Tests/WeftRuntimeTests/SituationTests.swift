import Testing

@testable import WeftRuntime

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What went wrong in other schedulers and has no place among the tests of one thing here.
@Suite(.serialized) struct SituationTests {
  /// Situation 44: two fibers that wake each other keep the worker to themselves.
  @Test(.timeLimit(.minutes(1)), arguments: workerCounts)
  func aPairThatWakesEachOtherStarvesNobody(workers: Int) throws {
    try onWorkers(workers) {
      let (stop, rounds) = (Counter(), Counter())
      let partner = Box<FiberHandle?>(nil)
      let first = Fiber(placement: .worker(0)) {
        partner.value = Fiber.current
        while stop.value == 0 {
          try Fiber.park()
          rounds.add()
          partner.value?.unpark()
        }
      }
      waitUntil { partner.value != nil }
      let second = Fiber(placement: .worker(0)) {
        partner.value = Fiber.current
        while stop.value == 0 {
          first.unpark()
          try Fiber.park()
        }
        first.unpark()
      }
      waitUntil { rounds.value > 10 }
      // It has its turn behind them, each time, though one of the two is always runnable.
      let third = Fiber(placement: .worker(0)) { () -> Int in
        let before = rounds.value
        for _ in 0..<100 { Fiber.yield() }
        return rounds.value - before
      }
      let meanwhile = third.join()
      #expect(meanwhile <= 200, "\(meanwhile) rounds while it asked for 100 turns")
      stop.add()
      first.unpark()
      second.unpark()
      try second.join()
      first.unpark()
      try first.join()
    }
  }

  /// Situation 64: a lock of the kernel's that is held over a wait blocks the worker of whoever
  /// comes next, and its holder is behind it. The watchdog says who is stuck, and a worker that is
  /// not needed otherwise runs the holder.
  @Test(.timeLimit(.minutes(1))) func aLockOfTheKernelsHeldOverAWait() async {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      asProgram {
        var configuration = Scheduler.Configuration(workers: 1...2)
        configuration.watchdog = true
        configuration.corePolicy = FixedPolicy(1)
        // A semaphore, since it knows no owner: the holder goes on on another thread.
        let lock = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        // SAFETY: initialised here, and used until the run has ended.
        unsafe sem_init(lock, 0, 1)
        defer { unsafe lock.deallocate() }
        let held = unsafe Held(lock)
        return Scheduler.run(configuration) {
          let taken = Counter()
          let use: @Sendable () -> Void = {
            // SAFETY: as above.
            while unsafe sem_wait(held.value) != 0 {}
            taken.add()
            Fiber.yield()
            Fiber.yield()
            unsafe sem_post(held.value)
          }
          let fibers = ["holder", "stuck"].map { name in Fiber(name: name, operation: use) }
          for fiber in fibers { fiber.join() }
          return taken.value == 2 ? 0 : 1
        }
      }
    }
    let child = Child(result)
    #expect(child.exitStatus == 0, "\(child)")
    // With the thread sanitizer no signal is sent, without which the name can't be read.
    let name = sanitizer == "thread" ? "fiber" : #""stuck""#
    #expect(child.errors.contains("\(name) (made at"), "\(child)")
    #expect(child.errors.contains("has not yielded for"), "\(child)")
  }

  /// What is to be said is said in full, though signals end the writing early while whoever reads
  /// it is slow.
  @Test(.timeLimit(.minutes(1))) func aReportIsWrittenThoughSignalsArrive() async {
    await #expect(processExitsWith: .success) {
      // Nobody reads while the pipe is full.
      var ends: [Int32] = [0, 0]
      // SAFETY: two descriptors for the call to fill in, and a handler that only counts.
      try #require(unsafe pipe(&ends) == 0)
      var action = sigaction()
      unsafe action.__sigaction_handler.sa_handler = { _ in interruptions.add() }
      try #require(unsafe sigaction(SIGUSR1, &action, nil) == 0)
      interruptions.add(-interruptions.value)
      let (saved, reading) = (dup(STDERR_FILENO), ends[0])
      dup2(ends[1], STDERR_FILENO)
      close(ends[1])
      let (isWriting, isOver) = (Box<pthread_t?>(nil), Box(false))
      let writer = PlainThread {
        unblockSignals()
        isWriting.value = pthread_self()
        // More than a pipe holds.
        writeToStandardError(String(repeating: "x", count: 300_000) + "!")
        dup2(saved, STDERR_FILENO)
        isOver.value = true
      }
      expect(eventually { isWriting.value != nil })
      expect(
        eventually {
          if let thread = isWriting.value { pthread_kill(thread, SIGUSR1) }
          return interruptions.value >= 20
        })
      var (count, last) = (0, UInt8(0))
      var bytes = [UInt8](repeating: 0, count: 4096)
      while true {
        // SAFETY: into the buffer.
        let some = unsafe read(reading, &bytes, bytes.count)
        if some <= 0 { break }
        count += some
        last = bytes[some - 1]
      }
      writer.join()
      #expect(isOver.value && count == 300_001 && last == UInt8(ascii: "!"), "\(count) bytes")
    }
  }
}

/// Signals that arrived.
private let interruptions = Counter()
