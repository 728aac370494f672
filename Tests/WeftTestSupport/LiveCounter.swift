import Synchronization

/// Counts objects that are alive, so that a test can say that nothing was leaked or released twice.
public final class LiveCounter: Sendable {
  private let count = Atomic<Int>(0)

  /// A counter at zero.
  public init() {}

  /// How many objects are alive.
  public var live: Int {
    // ORDERING: relaxed; whoever asks has joined the threads that counted.
    count.load(ordering: .relaxed)
  }

  /// An object that counts until it is released.
  public func make() -> Counted { Counted(self) }

  fileprivate func add(_ change: Int) {
    // ORDERING: relaxed; as above.
    count.add(change, ordering: .relaxed)
  }
}

/// An object that its counter counts.
public final class Counted: Sendable {
  private let counter: LiveCounter

  fileprivate init(_ counter: LiveCounter) {
    self.counter = counter
    counter.add(1)
  }

  deinit { counter.add(-1) }
}
