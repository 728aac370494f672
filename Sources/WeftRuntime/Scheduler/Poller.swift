import CWeft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Where the one sleeper that minds timers and descriptors waits.
///
/// What a platform must supply: wait for a time at most, and be kicked from any thread, where a
/// kick that comes before the wait ends it at once. Descriptors are added with the socket layer.
// SAFETY: it holds nothing, and its subclasses hold descriptors that are set once.
class Poller: @unchecked Sendable {
  /// Returns after `nanoseconds`, after a kick, or early.
  func wait(_ nanoseconds: UInt64) { fatalError("weft: Poller is abstract; use Poller.make") }
  /// Ends the wait under way, or the next one.
  func kick() { fatalError("weft: Poller is abstract; use Poller.make") }

  static func make(_ kind: Scheduler.Configuration.PollerKind) -> Poller {
    #if os(Linux)
      if kind == .automatic, let epoll = EpollPoller() { return epoll }
    #endif
    return PipePoller()
  }

  /// Milliseconds for the system calls that count in them, rounded up so as not to spin.
  static func milliseconds(_ nanoseconds: UInt64) -> Int32 {
    if nanoseconds == never { return -1 }
    return Int32(min(saturatingSum(nanoseconds, 999_999) / 1_000_000, 1_000_000_000))
  }
}

#if os(Linux)
  /// PLATFORM: epoll with an eventfd to kick it. Sleeps are precise to the nanosecond with
  /// epoll_pwait2 (5.11); before, to the millisecond.
  // SAFETY: descriptors, set once.
  final class EpollPoller: Poller, @unchecked Sendable {
    private let epoll: Int32
    private let event: Int32

    init?(_: Void = ()) {
      var event: Int32 = -1
      // SAFETY: the C side writes one descriptor into the local.
      epoll = unsafe weft_epoll_open(&event)
      self.event = event
      super.init()
      if epoll < 0 { return nil }
    }

    deinit {
      if epoll < 0 { return }
      close(epoll)
      close(event)
    }

    override func wait(_ nanoseconds: UInt64) {
      // SAFETY: the read fills at most the local's eight bytes, during the call.
      if weft_epoll_wait(epoll, nanoseconds, nil) != 0 {
        var count: UInt64 = 0
        _ = unsafe read(event, &count, 8)
      }
    }

    override func kick() {
      // SAFETY: the call reads the local's eight bytes.
      var one: UInt64 = 1
      _ = unsafe write(event, &one, 8)
    }
  }
#endif

/// One without descriptors to watch: of a simulated scheduler, whose kernel has none.
// SAFETY: an atomic word of memory that is freed with the object.
@safe
final class FutexPoller: Poller, @unchecked Sendable {
  private let kicked: UnsafeMutablePointer<weft_word>

  override init() {
    // SAFETY: memory of our own, freed in deinit.
    unsafe kicked = .allocate(capacity: 1)
    unsafe kicked.initialize(to: weft_word())
    super.init()
  }

  deinit { unsafe kicked.deallocate() }  // SAFETY: nobody has a reference

  override func wait(_ nanoseconds: UInt64) {
    // SAFETY: the word lives as long as this object.
    // ORDERING: a kick that comes before the exchange ends this wait, one after it the next.
    unsafe weft_futex_wait(kicked, 0, nanoseconds)
    _ = unsafe weft_word_exchange(kicked, 0)
  }

  override func kick() {
    // SAFETY: as above. ORDERING: the exchange, then the wake.
    _ = unsafe weft_word_exchange(kicked, 1)
    unsafe weft_futex_wake(kicked, 1)
  }
}

/// The portable one: poll on a pipe. Tests force it on Linux.
// SAFETY: descriptors, set once.
final class PipePoller: Poller, @unchecked Sendable {
  private let ends: (read: Int32, write: Int32)

  override init() {
    // SAFETY: the call writes two descriptors into the array's two elements.
    var pair: [Int32] = [-1, -1]
    if unsafe pipe(&pair) != 0 {
      fatalError("weft: no descriptors are left for a scheduler (errno \(errno)); raise ulimit -n")
    }
    for end in pair {
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    ends = (pair[0], pair[1])
    super.init()
  }

  deinit {
    close(ends.read)
    close(ends.write)
  }

  override func wait(_ nanoseconds: UInt64) {
    // SAFETY: one descriptor, and then at most the sixteen bytes of the pair.
    var descriptor = pollfd(fd: ends.read, events: Int16(POLLIN), revents: 0)
    if unsafe poll(&descriptor, 1, Poller.milliseconds(nanoseconds)) > 0 {
      var bytes: (UInt64, UInt64) = (0, 0)
      _ = unsafe read(ends.read, &bytes, 16)
    }
  }

  override func kick() {
    // SAFETY: the call reads the local's one byte.
    var byte: UInt8 = 1
    // A full pipe is kicked already.
    _ = unsafe write(ends.write, &byte, 1)
  }
}
