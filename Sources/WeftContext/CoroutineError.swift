/// A `resume` that can't be.
public enum CoroutineError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The body has returned, thrown or been cancelled before.
  case finished
  /// The coroutine is running: it tried to resume itself, or somebody that it resumed did.
  case alreadyRunning

  /// What went wrong and what to do about it.
  public var description: String {
    switch self {
    case .finished: "the coroutine has finished; ask `isFinished` before resuming it"
    case .alreadyRunning: "the coroutine is running, and can't be resumed before it yields"
    }
  }
}
