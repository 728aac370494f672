import Testing
import Weft

// A readers-writer lock and a FiberOnce, through every short history (Exhaust.swift).

private struct RWMeaning: Meaning {
  enum Event { case read, write, readIfAvailable, endFirst, endLast }
  static let events: [Event] = [.read, .write, .readIfAvailable, .endFirst, .endLast]
  var progress: [Progress] = []
  var reads: [Bool] = []
  /// Those who wait, in the order in which they came.
  var line: [Int] = []

  private var holders: [Int] { progress.indices.filter { progress[$0] == .holds } }
  private var isWritten: Bool { holders.contains { !reads[$0] } }

  func allows(_ event: Event) -> Bool {
    switch event {
    case .endFirst: !holders.isEmpty
    case .endLast: holders.count > 1
    default: true
    }
  }

  mutating func happen(_ event: Event) {
    switch event {
    case .read, .readIfAvailable:
      let mayRead = !isWritten && line.isEmpty
      reads.append(true)
      progress.append(mayRead ? .holds : event == .read ? .waits : .refused)
      if !mayRead && event == .read { line.append(progress.count - 1) }
    case .write:
      let mayWrite = holders.isEmpty && line.isEmpty
      reads.append(false)
      progress.append(mayWrite ? .holds : .waits)
      if !mayWrite { line.append(progress.count - 1) }
    case .endFirst: end(holders.first)
    case .endLast: end(holders.last)
    }
  }

  private mutating func end(_ holder: Int?) {
    guard let holder else { return }
    progress[holder] = .done
    if !holders.isEmpty { return }
    let readers = line.filter { reads[$0] }
    if !reads[holder], !readers.isEmpty {
      // After a writer all readers that wait.
      for reader in readers { progress[reader] = .holds }
      line.removeAll { reads[$0] }
    } else if let writer = line.first(where: { !reads[$0] }) {
      progress[writer] = .holds
      line.removeAll { $0 == writer }
    }
  }
}

private struct RWThing: Thing {
  let operations: Operations
  let lock = FiberRWLock(0)

  init(_ operations: Operations) { self.operations = operations }

  private var holders: [Int] {
    operations.notes.progress.indices.filter { operations.notes.progress[$0] == .holds }
  }

  func happen(_ event: RWMeaning.Event) {
    let lock = lock
    switch event {
    case .read:
      operations.start { hold in
        lock.withReadLock { _ in hold() }
        return .done
      }
    case .readIfAvailable:
      operations.start { hold in
        lock.withReadLockIfAvailable { _ in hold() } == nil ? .refused : .done
      }
    case .write:
      operations.start { hold in
        lock.withWriteLock { _ in hold() }
        return .done
      }
    case .endFirst: if let first = holders.first { operations.release(first) }
    case .endLast: if let last = holders.last { operations.release(last) }
    }
  }

  func finish() {}
}

private struct OnceMeaning: Meaning {
  enum Event { case get, getThatFails, end, cancelFirst, cancelSecond }
  static let events: [Event] = [.get, .getThatFails, .end, .cancelFirst, .cancelSecond]
  var progress: [Progress] = []
  var fails: [Bool] = []
  var line: [Int] = []
  var isMade = false

  func allows(_ event: Event) -> Bool { event != .end || progress.contains(.holds) }

  mutating func happen(_ event: Event) {
    switch event {
    case .get, .getThatFails:
      let isMaking = progress.contains(.holds)
      fails.append(event == .getThatFails)
      progress.append(isMade ? .done : isMaking ? .waits : .holds)
      if progress.last == .waits { line.append(progress.count - 1) }
    case .end:
      guard let maker = progress.firstIndex(of: .holds) else { return }
      if !fails[maker] {
        isMade = true
        progress[maker] = .done
        for waiter in line { progress[waiter] = .done }
        line = []
      } else {
        progress[maker] = .refused
        if !line.isEmpty { progress[line.removeFirst()] = .holds }
      }
    case .cancelFirst: cancel(0)
    case .cancelSecond: cancel(1)
    }
  }

  private mutating func cancel(_ operation: Int) {
    guard operation < progress.count, progress[operation] == .waits else { return }
    progress[operation] = .cancelled
    line.removeAll { $0 == operation }
  }
}

private struct OnceThing: Thing {
  let operations: Operations
  let once = FiberOnce<Int>()

  init(_ operations: Operations) { self.operations = operations }

  func happen(_ event: OnceMeaning.Event) {
    switch event {
    case .get: get(fails: false)
    case .getThatFails: get(fails: true)
    case .end:
      if let maker = operations.notes.progress.firstIndex(of: .holds) { operations.release(maker) }
    case .cancelFirst: operations.cancel(0)
    case .cancelSecond: operations.cancel(1)
    }
  }

  private func get(fails: Bool) {
    let once = once
    operations.start { hold in
      do {
        _ = try once.get {
          hold()
          if fails { throw Oops(number: 1) }
          return 1
        }
        return .done
      } catch is Oops {
        return .refused
      }
    }
  }

  func finish() {}
}

extension SyncTests {
  @Suite struct RWLockModelTests {
    @Test func readersAndWriters() throws {
      try exhaust(RWMeaning.self, RWThing.self, length: historyLength(7))
    }

    @Test func once() throws {
      try exhaust(OnceMeaning.self, OnceThing.self, length: historyLength(6))
    }
  }
}
