import CWeft
import WeftRuntime

// Three steps, each for those whom the one before did not serve:
//
//     1. look at all cases, choose one of those that seem ready, and try it under its lock
//     2. take the locks of all, by address so that no two selects wait for each other, and try
//        each in a random order: what is not ready now was not ready at one moment
//     3. under these locks, put a waiter into the line of each; unlock, park. All these waiters
//        name one wait, so one primitive wins; the others are left, lock by lock

/// Waits until one of several things can be done, and does that one.
///
/// ```swift
/// let jobs = Channel<Int>()
/// let results = Channel<Int>()
/// Fiber { try jobs.send(1) }
/// let name = try select {
///   jobs.onReceive { job in job == nil ? "closed" : "a job" }
///   results.onSend(7) { "sent" }
///   after(.seconds(1)) { "late" }
/// }
/// print(name)  // a job
/// ```
///
/// If several cases are ready one is chosen at random, each with the same chance; a channel that is
/// named three times has three. Exactly one case happens: the others leave nothing behind, and lose
/// nothing. Its body runs after that, under no lock, and what it throws comes out. A case that
/// sends to a closed channel is ready, and throws `ChannelClosed`.
///
/// `if`, `switch` and `for` inside it choose which cases there are. With `otherwise` it never
/// waits. With no case at all, which would wait for ever, it stops the process with a message.
///
/// - **Suspension:** parks until a case is ready, and may resume on another kernel thread; a plain
///   thread it blocks.
/// - **Cancellation:** no case happens, and `CancellationError` is thrown.
/// - **Thread safety:** any fiber, any thread.
/// - Parameter cases: the cases.
/// - Returns: what the body of the case returned that happened.
/// - Throws: what that body threw; `ChannelClosed`; `CancellationError`.
/// - Complexity: no allocation but for the closures; the locks of all cases where it has to wait,
///   or has more than 64; of one where it has not.
@inlinable
public func select<Part: SelectPart>(
  @SelectBuilder _ cases: () throws -> Part
) throws -> Part.Output {
  var part = try cases()
  // SAFETY: the part stays here until its case has finished, and so do the cases and the memory.
  return try unsafe withUnsafeMutablePointer(to: &part) { part in
    let count = unsafe Part._count(part)
    return try unsafe withUnsafeTemporaryAllocation(
      byteCount: count * MemoryLayout<weft_select_case>.stride + Part._bytes(part),
      alignment: MemoryLayout<weft_select_case>.alignment
    ) { memory in
      let selection = unsafe Selection(memory, count)
      try throwIfCancelled()
      let winner = try unsafe selection.tryOne(part) ?? selection.run(part)
      return try unsafe Part._finish(part, winner, selection.cases + winner)
    }
  }
}

/// A `select` under way.
@usableFromInline
@frozen
@safe
struct Selection {
  @usableFromInline let cases: UnsafeMutablePointer<weft_select_case>
  @usableFromInline let count: Int

  @inlinable
  init(_ memory: UnsafeMutableRawBufferPointer, _ count: Int) {
    // SAFETY: the memory has room for so many.
    unsafe cases = memory.baseAddress.unsafelyUnwrapped
      .bindMemory(to: weft_select_case.self, capacity: count)
    self.count = count
    if count == 0 { refuseEmpty() }
  }

  /// What follows the cases.
  @inlinable
  var memory: UnsafeMutableRawPointer {
    // SAFETY: an address; there is memory for what the parts say.
    unsafe UnsafeMutableRawPointer(cases + count)
  }

  /// The case that happened, of those that seem ready: one of them is tried. Nil if it was not, or
  /// none is.
  ///
  /// COST: one lock. Only the case that is tried is more than described.
  @inlinable @inline(__always)
  func tryOne<Part: SelectPart>(_ part: UnsafeMutablePointer<Part>) -> Int? {
    // SAFETY: as in select. 1.
    var ready = unsafe Part._ready(part)
    if ready == 0 || count > 64 { return nil }
    if ready & (ready &- 1) != 0 { ready = oneBit(of: ready) }
    let index = ready.trailingZeroBitCount
    unsafe (cases + index).initialize(to: weft_select_case())
    var places = unsafe memory
    unsafe Part._describe(part, cases, &places)
    guard let lock = unsafe cases[index].lock else { return index }
    var claims = SelectClaims()
    unsafe lock.lock()
    let isDone = unsafe Part._attempt(part, index, cases + index, &claims)
    unsafe lock.unlock()
    claims.claimed.release()
    if !isDone { return nil }
    spendOperation()
    return index
  }

  /// The case that happened.
  @inlinable @inline(never)
  func run<Part: SelectPart>(_ part: UnsafeMutablePointer<Part>) throws -> Int {
    // SAFETY: as in select. 2.
    unsafe prepareCases(cases, count)
    var places = unsafe memory
    unsafe Part._describe(part, cases, &places)
    unsafe lockCases(cases, count)
    for place in 0..<count {
      let index = unsafe Int(cases[place].turn)
      var claims = SelectClaims()
      if unsafe Part._attempt(part, index, cases + index, &claims) {
        unsafe unlockCases(cases, count)
        claims.claimed.release()
        spendOperation()
        return index
      }
    }
    if let index = otherwise {
      unsafe unlockCases(cases, count)
      return index
    }
    // SAFETY: as above. 3.
    unsafe enlistCases(cases, count)
    for index in 0..<count {
      unsafe Part._enqueue(part, index, cases + index)
    }
    return try unsafe waitForCase(cases, count)
  }

  /// The case for when no other is ready.
  @inlinable
  var otherwise: Int? {
    // SAFETY: as above.
    (0..<count).first { unsafe cases[$0].kind == UInt32(WEFT_CASE_OTHERWISE) }
  }
}
