import CWeft

/// Writes down which fiber has run too long, and where it is.
struct OverrunReporter {
  /// Reports go out at this rate at most; all overruns are counted.
  private static let reportsPerSecondMax = 10
  /// How long a thread may take to answer, in ns: on a busy machine it waits for a processor first.
  private static let patience: UInt64 = 250_000_000
  private var second: UInt64 = 0
  private var reportsThisSecond = 0

  mutating func report(
    _ core: SchedulerCore, _ index: Int, tick: UInt64, running: UInt, elapsed: UInt64, now: UInt64
  ) {
    if now / 1_000_000_000 != second {
      second = now / 1_000_000_000
      reportsThisSecond = 0
    }
    if reportsThisSecond >= Self.reportsPerSecondMax { return }
    reportsThisSecond += 1
    // SAFETY: the workers' memory lives as long as the core.
    let worker = unsafe core.workers[index]
    let thread = unsafe weft_worker_thread(worker)
    let call = weft_thread_system_call(thread)
    let behind = unsafe weft_word_load_relaxed(weft_worker_queue_count(worker))
    var text = ""
    var label: String?
    if weft_system_call_restarts(call) {
      (label, text) = Self.capture(thread, running: running)
    }
    if label == nil {
      // The fiber may end at any moment: its record is copied, and counts if it still runs.
      label = Self.copyLabel(running: running) { () -> Bool in
        // ORDERING: relaxed; as in Helper.watch.
        unsafe weft_worker_switches(worker) == tick
          && core.running(index) == running
      }
      if call >= 0 {
        text = "weft:   it is blocked in system call \(call), which a signal would cut short\n"
      }
    }
    let waiting =
      behind == 0
      ? "" : "; \(counted(Int(behind), "fiber")) \(behind == 1 ? "waits" : "wait") behind it"
    writeToStandardError(
      "weft: \(label ?? "a fiber") has not yielded for \(elapsed / 1_000_000) ms on worker "
        + "\(index)\(waiting)\n" + text)
  }

  /// Stops the thread for a moment: its fiber's label, and its frames.
  private static func capture(_ thread: UInt64, running: UInt) -> (String?, String) {
    // SAFETY: the capture lives until it is dropped, and the handler has let go of it.
    guard let capture = unsafe weft_capture_make() else { return (nil, "") }
    defer { unsafe weft_capture_drop(capture) }
    guard unsafe weft_capture_take(capture, thread, patience) else { return (nil, "") }
    var cell: FiberCell?
    if let fiber = unsafe capture.pointee.fiber, UInt(bitPattern: fiber) == running {
      // The handler holds the fiber where it is: its run still has a reference.
      unsafe cell = fiber.cell
    }
    unsafe weft_capture_release(capture)
    var text = ""
    var buffer = [CChar](repeating: 0, count: 600)
    let count = Int32(buffer.count)
    // The handler's own frames are of no interest: they end with the signal's return address.
    // SAFETY: the capture is this thread's; the buffer has `count` bytes.
    for frame in 2..<max(2, unsafe capture.pointee.count) {
      // SAFETY: as above.
      let length = unsafe weft_capture_describe(capture, frame, &buffer, count)
      let bytes = buffer[..<Int(length)].map { UInt8(bitPattern: $0) }
      text += "weft:   \(String(decoding: bytes, as: UTF8.self))\n"
    }
    return (cell.map(label(of:)), text)
  }

  /// The label of a fiber that nobody holds, without the name that the program gave it.
  private static func copyLabel(running: UInt, stillRuns: () -> Bool) -> String? {
    // SAFETY: a copy through the kernel does not fault; the words in it are followed only if the
    // fiber, whose site is the program's constant data, still ran afterwards.
    var copy = unsafe weft_fiber()
    guard let address = unsafe UnsafeRawPointer(bitPattern: running),
      unsafe weft_copy_memory(&copy, address, UInt64(MemoryLayout<weft_fiber>.size)), stillRuns()
    else { return nil }
    let id = unsafe weft_word_load_relaxed(weft_fiber_id_word(&copy))
    let number = id == 0 ? "" : " #\(id)"
    return unsafe "fiber\(number) (made at \(siteText(copy.site)))"
  }
}
