import Testing
import Weft

// Each primitive on one worker, where an operation runs until it has to wait, driven through every
// sequence of a few events, and compared after each with the simplest thing that could be meant.
// (Channels have ChannelModelTests; many workers at once have the stress and history tests.)

// MARK: - Semaphore

private struct SemaphoreMeaning: Meaning {
  enum Event { case one, two, ifAvailable, signal, cancelFirst, cancelSecond }
  static let events: [Event] = [.one, .two, .ifAvailable, .signal, .cancelFirst, .cancelSecond]
  var progress: [Progress] = []
  var permits = 1
  var line: [(operation: Int, amount: Int)] = []

  func allows(_ event: Event) -> Bool { true }

  mutating func happen(_ event: Event) {
    switch event {
    case .one: wait(1)
    case .two: wait(2)
    case .ifAvailable:
      let isThere = line.isEmpty && permits > 0
      if isThere { permits -= 1 }
      progress.append(isThere ? .done : .refused)
    case .signal:
      permits += 1
      serve()
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    }
  }

  private mutating func wait(_ amount: Int) {
    progress.append(.waits)
    line.append((progress.count - 1, amount))
    serve()
  }

  private mutating func serve() {
    while let first = line.first, first.amount <= permits {
      permits -= first.amount
      progress[line.removeFirst().operation] = .done
    }
  }

  private mutating func cancel(_ operation: Int) {
    guard operation < progress.count, progress[operation] == .waits else { return }
    progress[operation] = .cancelled
    line.removeAll { $0.operation == operation }
    serve()
  }
}

private struct SemaphoreThing: Thing {
  let operations: Operations
  let semaphore = FiberSemaphore(1)

  init(_ operations: Operations) { self.operations = operations }

  func happen(_ event: SemaphoreMeaning.Event) {
    let semaphore = semaphore
    switch event {
    case .one:
      operations.start { _ in
        try semaphore.wait()
        return .done
      }
    case .two:
      operations.start { _ in
        try semaphore.wait(2)
        return .done
      }
    case .ifAvailable: operations.start { _ in semaphore.waitIfAvailable() ? .done : .refused }
    case .signal: semaphore.signal()
    case .cancelFirst: operations.cancel(0)
    case .cancelSecond: operations.cancel(1)
    }
  }

  func finish() {}
}

// MARK: - Mutex

private struct MutexMeaning: Meaning {
  enum Event { case lock, ifAvailable, unlock, cancelFirst }
  static let events: [Event] = [.lock, .ifAvailable, .unlock, .cancelFirst]
  var progress: [Progress] = []
  var line: [Int] = []

  private var holder: Int? { progress.firstIndex(of: .holds) }

  func allows(_ event: Event) -> Bool { event != .unlock || holder != nil }

  mutating func happen(_ event: Event) {
    switch event {
    case .lock:
      let isFree = holder == nil
      progress.append(isFree ? .holds : .waits)
      if !isFree { line.append(progress.count - 1) }
    case .ifAvailable: progress.append(holder == nil ? .holds : .refused)
    case .unlock:
      if let holder { progress[holder] = .done }
      if !line.isEmpty { progress[line.removeFirst()] = .holds }
    case .cancelFirst: break  // a lock is not cancelled
    }
  }
}

private class MutexThing: Thing {
  let operations: Operations
  let mutex: FiberMutex<Int>

  required init(_ operations: Operations) {
    self.operations = operations
    mutex = FiberMutex(0, handOff: Self.handsOff)
  }

  class var handsOff: Bool { false }

  func happen(_ event: MutexMeaning.Event) {
    let mutex = mutex
    switch event {
    case .lock:
      operations.start { hold in
        mutex.withLock { _ in hold() }
        return .done
      }
    case .ifAvailable:
      operations.start { hold in
        mutex.withLockIfAvailable { _ in hold() } == nil ? .refused : .done
      }
    case .unlock:
      if let holder = operations.notes.progress.firstIndex(of: .holds) {
        operations.release(holder)
      }
    case .cancelFirst: operations.cancel(0)
    }
  }

  func finish() {}
}

private final class HandOffThing: MutexThing {
  override class var handsOff: Bool { true }
}

// MARK: - Condition

private struct ConditionMeaning: Meaning {
  enum Event { case wait, one, all, cancelFirst, cancelSecond }
  static let events: [Event] = [.wait, .one, .all, .cancelFirst, .cancelSecond]
  var progress: [Progress] = []

  func allows(_ event: Event) -> Bool { true }

  mutating func happen(_ event: Event) {
    switch event {
    case .wait: progress.append(.waits)
    case .one: if let first = progress.firstIndex(of: .waits) { progress[first] = .done }
    case .all: progress = progress.map { $0 == .waits ? .done : $0 }
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    }
  }
}

private struct ConditionThing: Thing {
  let operations: Operations
  let mutex = FiberMutex(0)
  let condition = FiberCondition()

  init(_ operations: Operations) { self.operations = operations }

  func happen(_ event: ConditionMeaning.Event) {
    let (mutex, condition) = (mutex, condition)
    switch event {
    case .wait:
      operations.start { _ in
        try mutex.withGuard { value throws in try value.wait(on: condition) }
        return .done
      }
    case .one: condition.notifyOne()
    case .all: condition.notifyAll()
    case .cancelFirst: operations.cancel(0)
    case .cancelSecond: operations.cancel(1)
    }
  }

  func finish() {}
}

// MARK: - Barrier, wait group, promise

private struct BarrierMeaning: Meaning {
  enum Event { case wait, cancelFirst, cancelSecond, cancelThird }
  static let events: [Event] = [.wait, .cancelFirst, .cancelSecond, .cancelThird]
  var progress: [Progress] = []

  func allows(_ event: Event) -> Bool { true }

  mutating func happen(_ event: Event) {
    switch event {
    case .wait:
      progress.append(.waits)
      if progress.count(where: { $0 == .waits }) == 3 {
        progress = progress.map { $0 == .waits ? .done : $0 }
      }
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    case .cancelThird: cancel(2)
    }
  }
}

private struct BarrierThing: Thing {
  let operations: Operations
  let barrier = FiberBarrier(3)

  init(_ operations: Operations) { self.operations = operations }

  func happen(_ event: BarrierMeaning.Event) {
    let barrier = barrier
    switch event {
    case .wait:
      operations.start { _ in
        try barrier.wait()
        return .done
      }
    case .cancelFirst: operations.cancel(0)
    case .cancelSecond: operations.cancel(1)
    case .cancelThird: operations.cancel(2)
    }
  }

  func finish() {}
}

private struct WaitGroupMeaning: Meaning {
  enum Event { case add, done, wait, cancelFirst, cancelSecond }
  static let events: [Event] = [.add, .done, .wait, .cancelFirst, .cancelSecond]
  var progress: [Progress] = []
  var count = 0

  func allows(_ event: Event) -> Bool { event != .done || count > 0 }

  mutating func happen(_ event: Event) {
    switch event {
    case .add: count += 1
    case .done:
      count -= 1
      if count == 0 { progress = progress.map { $0 == .waits ? .done : $0 } }
    case .wait: progress.append(count == 0 ? .done : .waits)
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    }
  }
}

private struct WaitGroupThing: Thing {
  let operations: Operations
  let group = WaitGroup()

  init(_ operations: Operations) { self.operations = operations }

  func happen(_ event: WaitGroupMeaning.Event) {
    let group = group
    switch event {
    case .add: group.add()
    case .done: group.done()
    case .wait:
      operations.start { _ in
        try group.wait()
        return .done
      }
    case .cancelFirst: operations.cancel(0)
    case .cancelSecond: operations.cancel(1)
    }
  }

  func finish() {}
}

private struct PromiseMeaning: Meaning {
  enum Event { case wait, resolve, cancelFirst, cancelSecond }
  static let events: [Event] = [.wait, .resolve, .cancelFirst, .cancelSecond]
  var progress: [Progress] = []
  var isSettled = false

  func allows(_ event: Event) -> Bool { true }

  mutating func happen(_ event: Event) {
    switch event {
    case .wait: progress.append(isSettled ? .done : .waits)
    case .resolve:
      isSettled = true
      progress = progress.map { $0 == .waits ? .done : $0 }
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    }
  }
}

private struct PromiseThing: Thing {
  let operations: Operations
  let promise = Promise<Int>()

  init(_ operations: Operations) { self.operations = operations }

  func happen(_ event: PromiseMeaning.Event) {
    let promise = promise
    switch event {
    case .wait:
      operations.start { _ in
        _ = try promise.wait()
        return .done
      }
    case .resolve: try? promise.resolve(1)
    case .cancelFirst: operations.cancel(0)
    case .cancelSecond: operations.cancel(1)
    }
  }

  func finish() {}
}

extension SyncTests {
  @Suite struct LockModelTests {
    @Test func semaphore() throws {
      try exhaust(SemaphoreMeaning.self, SemaphoreThing.self, length: historyLength(6))
    }

    @Test func mutex() throws {
      try exhaust(MutexMeaning.self, MutexThing.self, length: historyLength(7))
    }

    @Test func mutexThatIsHandedOver() throws {
      try exhaust(MutexMeaning.self, HandOffThing.self, length: historyLength(7))
    }

    @Test func condition() throws {
      try exhaust(ConditionMeaning.self, ConditionThing.self, length: historyLength(6))
    }

    @Test func barrier() throws {
      try exhaust(BarrierMeaning.self, BarrierThing.self, length: historyLength(7))
    }

    @Test func waitGroup() throws {
      try exhaust(WaitGroupMeaning.self, WaitGroupThing.self, length: historyLength(6))
    }

    @Test func promise() throws {
      try exhaust(PromiseMeaning.self, PromiseThing.self, length: historyLength(7))
    }
  }
}
