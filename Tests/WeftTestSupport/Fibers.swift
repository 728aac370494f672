import Synchronization
import Weft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A value under a lock that no fiber holds while it parks.
///
/// Not a `Mutex`: that one is inlined, and a function that takes it, switches and takes it again
/// may use the address of the first thread's own words on the second (README, Limits).
///
/// `@unchecked Sendable`: SAFETY: the value is touched under the lock only.
public final class Box<Value: Sendable>: @unchecked Sendable {
  private let isTaken = Atomic(false)
  private var content: Value

  /// Puts a value in.
  public init(_ value: Value) { content = value }

  /// The value.
  public var value: Value {
    get { change { $0 } }
    set { change { $0 = newValue } }
  }

  /// Runs a function with the value, alone.
  public func change<R: Sendable>(_ body: (inout Value) -> R) -> R {
    // ORDERING: acquire, paired with the release below.
    while isTaken.exchange(true, ordering: .acquiring) { sched_yield() }
    defer { isTaken.store(false, ordering: .releasing) }
    return body(&content)
  }
}

/// A count that many fibers raise.
public final class Counter: Sendable {
  private let atomic = Atomic<Int>(0)

  /// Starts at zero.
  public init() {}

  /// How many.
  public var value: Int { atomic.load(ordering: .acquiring) }

  /// Adds some, and says how many there are.
  @discardableResult
  public func add(_ by: Int = 1) -> Int {
    atomic.wrappingAdd(by, ordering: .acquiringAndReleasing).newValue
  }
}

/// An object whose life counts.
public final class Tracked: Sendable {
  /// Where it is counted while it lives.
  public let counter: Counter
  /// Which one it is.
  public let number: Int

  /// Makes one that is counted.
  public init(_ counter: Counter, _ number: Int = 0) {
    self.counter = counter
    self.number = number
    counter.add()
  }

  deinit { counter.add(-1) }
}

/// Lets others run until something holds; stops the process when it takes far too long.
public func waitUntil(
  file: StaticString = #fileID, line: UInt = #line, _ condition: () -> Bool
) {
  let deadline = ContinuousClock.now + .seconds(60)
  while !condition() {
    Fiber.yield()
    if ContinuousClock.now > deadline { fatalError("waited in vain at \(file):\(line)") }
  }
}

/// How much of a large number this build does: sanitizers and debug builds are slow, and the thread
/// sanitizer has room for some 8,000 fibers.
public func scaled(_ count: Int, least: Int = 100) -> Int {
  switch RuntimeInfo.current.sanitizer {
  case "thread": return max(least, min(count / 200, 4_000))
  case "address": return max(least, count / 50)
  default: break
  }
  #if DEBUG
    return max(least, count / 10)
  #else
    return count
  #endif
}

/// Whether a sanitizer is built in.
public var isSanitized: Bool { sanitizer != nil }

/// What the environment has under a name.
public func environment(_ name: String) -> String? {
  // SAFETY: the text is copied at once.
  guard let text = unsafe getenv(name) else { return nil }
  return unsafe String(cString: text)
}

/// The seed of the stress tests; printed, so that a failure can be replayed.
public func stressSeed() -> UInt64 {
  let seed =
    environment("WEFT_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1_000_000_000)
  print("stress seed \(seed) (set WEFT_SEED to replay)")
  return seed
}

/// How long the stress tests run.
public var stressDuration: Duration {
  .seconds(environment("WEFT_STRESS_SECONDS").flatMap { Double($0) } ?? 1)
}

/// Runs a function on a thread of its own and waits for it. From a fiber, the worker is blocked.
public func onThread(_ body: @escaping @Sendable () -> Void) {
  let thread = PlainThread(body)
  thread.join()
}

/// A kernel thread that knows no scheduler.
///
/// `@unchecked Sendable`: SAFETY: the thread is set once.
public final class PlainThread: @unchecked Sendable {
  private let thread: pthread_t

  private final class Start {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Starts a thread.
  public init(_ body: @escaping @Sendable () -> Void) {
    // SAFETY: the thread takes the reference over.
    let start = unsafe Unmanaged.passRetained(Start(body))
    var thread = pthread_t()
    let status = unsafe pthread_create(
      &thread, nil,
      { argument in
        // SAFETY: the reference that init handed over.
        unsafe Unmanaged<Start>.fromOpaque(argument.unsafelyUnwrapped).takeRetainedValue().body()
        return nil
      }, start.toOpaque())
    if status != 0 { fatalError("no thread") }
    self.thread = thread
  }

  /// Waits for its end.
  public func join() { pthread_join(thread, nil) }
}

/// The numbers of workers that most tests run with.
public let workerCounts = [1, 2, 4]

/// Runs `main` on so many workers.
@discardableResult
public func onWorkers<T>(_ count: Int, _ main: () throws -> T) throws -> T {
  try Scheduler.run(.init(workers: count), main)
}

/// What tests throw.
public struct Oops: Error, Equatable {
  /// Which one.
  public var number: Int

  /// Makes one.
  public init(number: Int = 0) { self.number = number }
}

/// The same with more to say.
@discardableResult
public func withScheduler<T>(
  _ configuration: Scheduler.Configuration, _ main: () throws -> T
) throws -> T {
  try Scheduler.run(configuration, main)
}
