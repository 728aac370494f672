/// What a parked fiber waits for, for dumps and reports. The numbers are never reused.
public enum ParkReason: UInt32, Sendable, CaseIterable, CustomStringConvertible {
  /// It has not parked.
  case none = 0
  /// `Fiber.park`.
  case park = 1
  /// `Fiber.sleep`.
  case sleep = 2
  /// `join` of another fiber.
  case join = 3
  /// A group's children.
  case group = 4
  /// A call in `blocking { }`.
  case blocking = 5
  /// An exclusive worker.
  case exclusive = 6
  /// A place in a channel, or a receiver.
  case send = 7
  /// An element of a channel.
  case receive = 8
  /// One of the cases of a `select`.
  case select = 9
  /// A `FiberMutex`.
  case mutex = 10
  /// A `FiberRWLock`, to read.
  case readLock = 11
  /// A `FiberRWLock`, to write.
  case writeLock = 12
  /// A `FiberCondition`.
  case condition = 13
  /// A permit of a `FiberSemaphore`.
  case semaphore = 14
  /// The other parties of a `FiberBarrier`.
  case barrier = 15
  /// A `WaitGroup`.
  case waitGroup = 16
  /// A `FiberOnce` that somebody else makes.
  case once = 17
  /// A `Promise`.
  case promise = 18
  /// The run of a `SingleFlight`.
  case singleFlight = 19
  /// An element of a `Broadcast`.
  case broadcast = 20

  /// The reason in words.
  public var description: String {
    switch self {
    case .none: "nothing"
    case .park: "an unpark"
    case .sleep: "the time"
    case .join: "the end of a fiber"
    case .group: "a child of its group"
    case .blocking: "a blocking call"
    case .exclusive: "an exclusive worker"
    case .send: "a receiver of a channel"
    case .receive: "an element of a channel"
    case .select: "a case of a select"
    case .mutex: "a FiberMutex"
    case .readLock: "a FiberRWLock, to read"
    case .writeLock: "a FiberRWLock, to write"
    case .condition: "a FiberCondition"
    case .semaphore: "a permit of a FiberSemaphore"
    case .barrier: "the other parties of a FiberBarrier"
    case .waitGroup: "a WaitGroup"
    case .once: "a FiberOnce that another fiber makes"
    case .promise: "a Promise"
    case .singleFlight: "the run of a SingleFlight"
    case .broadcast: "an element of a Broadcast"
    }
  }
}
