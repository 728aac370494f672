import CWeft

extension UnsafeMutablePointer where Pointee == weft_word {
  /// Takes the word as a lock that is held for some nanoseconds: no user code, no park inside.
  @inlinable @inline(__always)
  package func lock() {
    // SAFETY: the caller keeps the word alive until it has unlocked.
    var expected: UInt64 = 0
    // ORDERING: acquire in the swap, paired with unlock().
    if unsafe weft_word_compare_exchange(self, &expected, 1) { return }
    unsafe lockContended()
  }

  @usableFromInline @inline(never)
  func lockContended() {
    // SAFETY: as in lock().
    // ORDERING: as in lock().
    var round = 0
    while true {
      var expected: UInt64 = 0
      if unsafe weft_word_compare_exchange(self, &expected, 1) { return }
      round += 1
      // Its holder's processor may have been taken away.
      if round % 64 == 0 { weft_thread_yield() } else { weft_pause() }
    }
  }

  @inlinable @inline(__always)
  package func unlock() {
    // SAFETY: whoever calls holds the lock; the word is not touched after.
    // ORDERING: release, paired with lock().
    unsafe weft_word_store_release(self, 0)
  }
}
