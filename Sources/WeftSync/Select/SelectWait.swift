import CWeft
import WeftRuntime

// The part of a select that knows no types.

@usableFromInline typealias Cases = UnsafeMutablePointer<weft_select_case>

@usableFromInline
func refuseEmpty() -> Never {
  fatalError("weft: a select has no case, and would wait for ever")
}

/// Zeros, and a random order.
@usableFromInline
func prepareCases(_ cases: Cases, _ count: Int) {
  // SAFETY: the caller's memory, with room for so many.
  unsafe cases.initialize(repeating: weft_select_case(), count: count)
  var random = nextRandom()
  for index in 0..<count {
    // Fisher and Yates, from the inside out.
    random = mixed(random)
    let other = Int(random.multipliedFullWidth(by: UInt64(index + 1)).high)
    unsafe cases[index].turn = cases[other].turn
    unsafe cases[other].turn = UInt32(index)
  }
}

/// One of several bits, each with the same chance.
@usableFromInline
func oneBit(of bits: UInt64) -> UInt64 {
  let count = UInt64(bits.nonzeroBitCount)
  var bits = bits
  for _ in 0..<nextRandom().multipliedFullWidth(by: count).high { bits &= bits &- 1 }
  return bits
}

/// SplitMix64's output function over a Weyl sequence: one step of either.
private func mixed(_ state: UInt64) -> UInt64 {
  var z = state &+ 0x9E37_79B9_7F4A_7C15
  z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
  z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
  return z ^ (z >> 31)
}

private func nextRandom() -> UInt64 {
  // SAFETY: this thread's own worker, which alone uses its state.
  if let value = simulatedValue(below: 8) { return mixed(value) }
  guard let worker = unsafe weft_worker_current() else {
    // Mixed, since whoever wants a small number takes the upper bits, which are always zeros here.
    return mixed(weft_clock_now() ^ weft_thread_id() << 32)
  }
  unsafe worker.pointee.random = mixed(worker.pointee.random)
  return unsafe worker.pointee.random
}

/// Takes the locks of all cases, each once, by address.
@usableFromInline
func lockCases(_ cases: Cases, _ count: Int) {
  // SAFETY: the caller's cases, whose primitives their parts keep.
  for index in 0..<count { unsafe cases[index].by_address = UInt32(index) }
  unsafe sortByAddress(cases, count)
  var last: UnsafeMutablePointer<weft_word>?
  for place in 0..<count {
    let lock = unsafe cases[Int(cases[place].by_address)].lock
    if let lock = unsafe lock, unsafe lock != last { unsafe lock.lock() }
    unsafe last = lock
  }
}

@usableFromInline
func unlockCases(_ cases: Cases, _ count: Int) {
  // SAFETY: as in lockCases; they are held.
  var last: UnsafeMutablePointer<weft_word>?
  for place in 0..<count {
    let lock = unsafe cases[Int(cases[place].by_address)].lock
    if let lock = unsafe lock, unsafe lock != last { unsafe lock.unlock() }
    unsafe last = lock
  }
}

private func sortByAddress(_ cases: Cases, _ count: Int) {
  // SAFETY: the caller's cases.
  func address(_ place: Int) -> UInt {
    unsafe UInt(bitPattern: cases[Int(cases[place].by_address)].lock)
  }
  func swapPlaces(_ a: Int, _ b: Int) {
    // SAFETY: as above.
    let kept = unsafe cases[a].by_address
    unsafe cases[a].by_address = cases[b].by_address
    unsafe cases[b].by_address = kept
  }
  if count <= 16 {
    for place in 1..<max(count, 1) {
      var hole = place
      while hole > 0, address(hole - 1) > address(hole) {
        swapPlaces(hole - 1, hole)
        hole -= 1
      }
    }
    return
  }
  // A heap sort: in place, and never quadratic.
  func sift(_ root: Int, _ end: Int) {
    var root = root
    while 2 * root + 1 < end {
      var child = 2 * root + 1
      if child + 1 < end, address(child) < address(child + 1) { child += 1 }
      if address(root) >= address(child) { return }
      swapPlaces(root, child)
      root = child
    }
  }
  for root in stride(from: count / 2 - 1, through: 0, by: -1) { sift(root, count) }
  for end in stride(from: count - 1, to: 0, by: -1) {
    swapPlaces(0, end)
    sift(0, end)
  }
}

/// Makes every waiter name the wait that comes.
@usableFromInline
func enlistCases(_ cases: Cases, _ count: Int) {
  // SAFETY: the caller's cases; the first waiter's word is where a plain thread sleeps.
  for index in 0..<count {
    let waiter = unsafe weft_case_waiter(cases + index)
    unsafe waiter.prepare(slot: waiter.pointee.slot)
    if unsafe waiter.pointee.fiber == nil {
      unsafe waiter.pointee.thread = weft_waiter_sleep(weft_case_waiter(cases))
    }
  }
}

/// The locks are held, and the waiters in their lines. Waits, and leaves the lines.
///
/// - Returns: the case that won.
@usableFromInline
func waitForCase(_ cases: Cases, _ count: Int) throws(CancellationError) -> Int {
  // SAFETY: the caller's cases, which are in no line any more when this returns.
  let ended = unsafe addJoins(cases, count)
  unsafe unlockCases(cases, count)
  var until = never
  for index in 0..<count where unsafe cases[index].kind == UInt32(WEFT_CASE_AFTER) {
    until = unsafe min(until, cases[index].deadline)
  }
  // One that had ended already: the wait is given up, unless somebody has ended it.
  let reason =
    ended == nil
    ? unsafe weft_case_waiter(cases).wait(for: .select, of: nil, until: until)
    : unsafe giveUp(weft_case_waiter(cases))
  var winner: Int?
  for index in 0..<count {
    let one = unsafe cases + index
    if let lock = unsafe one.pointee.lock {
      if unsafe one.pointee.kind == UInt32(WEFT_CASE_PERMITS) {
        // SAFETY: its lock is what a gate begins with.
        let gate = unsafe UnsafeMutableRawPointer(lock).assumingMemoryBound(to: weft_gate.self)
        unsafe leaveSemaphore(gate, weft_case_waiter(one))
      } else {
        unsafe weft_case_waiter(one).leave(lock)
      }
      if unsafe one.pointee.waiter.outcome != 0 { winner = index }
    }
    if unsafe one.pointee.joins != 0, unsafe takeBack(one) { winner = winner ?? index }
  }
  if let winner { return winner }
  switch reason {
  case .cancelled: throw CancellationError()
  case .timedOut:
    return (0..<count).first {
      unsafe cases[$0].kind == UInt32(WEFT_CASE_AFTER) && cases[$0].deadline == until
    } ?? 0
  default:
    guard let ended else {
      fatalError("weft: a select was woken for nothing. Please report this bug.")
    }
    return ended
  }
}

/// Adds this wait to the joiners of the fibers that are to be joined.
///
/// - Returns: one that has ended already.
private func addJoins(_ cases: Cases, _ count: Int) -> Int? {
  for index in 0..<count {
    // SAFETY: the case's part keeps the target, and its node stays until it is taken back.
    let one = unsafe cases + index
    guard unsafe one.pointee.kind == UInt32(WEFT_CASE_JOIN) else { continue }
    let node = unsafe weft_case_node(one)
    unsafe node.pointee.record = one.pointee.waiter.fiber
    unsafe node.pointee.number = one.pointee.waiter.fiber == nil ? 0 : one.pointee.waiter.number
    unsafe node.pointee.thread = one.pointee.waiter.thread
    let target = unsafe one.pointee.target.unsafelyUnwrapped
    if unsafe !addNode(node, to: target) { return index }
    unsafe one.pointee.joins = 1
  }
  return nil
}

/// Takes a node out again.
///
/// - Returns: whether its fiber has ended.
private func takeBack(_ one: Cases) -> Bool {
  // SAFETY: the case's node, whose target its part keeps.
  // ORDERING: acquire, paired with the release in `serve` (Join.swift).
  let node = unsafe weft_case_node(one)
  if unsafe removeNode(node, from: one.pointee.target.unsafelyUnwrapped) { return false }
  while unsafe weft_word_load_acquire(weft_join_node_done(node)) == 0 { weft_pause() }
  return true
}

/// Ends the wait before it began.
///
/// - Returns: `.woken`, whether it was ended by somebody else or not: the cases tell.
private func giveUp(_ waiter: Waiter) -> WakeReason {
  // SAFETY: the caller's own waiter, and its own fiber.
  // ORDERING: the swap acquires what whoever claimed it handed over; paired with `claim`.
  if let fiber = unsafe waiter.pointee.fiber {
    unsafe fiber.noteReason(.woken)
  } else {
    let word = unsafe waiter.pointee.thread.unsafelyUnwrapped
    var expected = UInt64(WEFT_SLEEP_WAITS)
    if unsafe !weft_word_compare_exchange(word, &expected, UInt64(WEFT_SLEEP_GAVE_UP)) {
      _ = unsafe waiter.wait(for: .select, of: nil)
    }
  }
  return .woken
}
