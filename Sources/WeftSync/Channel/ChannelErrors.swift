/// What a send to a closed channel throws.
public struct ChannelClosed: Error, Hashable, Sendable, CustomStringConvertible {
  /// Makes one.
  public init() {}

  /// What happened and what to do.
  public var description: String {
    "the channel is closed: nothing can be sent to it. Close it when the last sender is done."
  }
}

/// How many elements a channel holds that were sent and not received.
public enum ChannelCapacity: Hashable, Sendable {
  /// So many at most. Zero: a rendezvous, where a send waits for its receiver.
  case bounded(Int)
  /// As many as memory holds: a send never waits.
  case unbounded
}

/// Which of the elements in a channel's buffer is received next.
public enum ChannelOrder: Hashable, Sendable {
  /// The oldest: first in, first out.
  case fifo
  /// The latest: last in, first out, for consumers that want fresh work first.
  case lifo
}
