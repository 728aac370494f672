import CWeft

private let pausesFirst = 8
private let pausesMost = 64

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
    // A look takes the line from the holder, and costs both more than what the lock is held for:
    // so the first comes late, and the others later. Meanwhile whoever has the line takes the lock
    // again and again, at the price that it has alone.
    var pauses = pausesFirst
    while true {
      for _ in 0..<pauses { weft_pause() }
      var expected = unsafe weft_word_load_relaxed(self)
      if unsafe expected == 0 && weft_word_compare_exchange(self, &expected, 1) { return }
      if pauses < pausesMost {
        pauses *= 2
      } else {
        // Its holder's processor may have been taken away.
        weft_thread_yield()
      }
    }
  }

  @inlinable @inline(__always)
  package func unlock() {
    // SAFETY: whoever calls holds the lock; the word is not touched after.
    // ORDERING: release, paired with lock().
    unsafe weft_word_store_release(self, 0)
  }
}
