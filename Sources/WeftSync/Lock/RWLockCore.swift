import CWeft
import WeftRuntime

// What a FiberRWLock does. Its word:
//
//     0                      free
//     owner                  one that writes (the record of a fiber, or a plain thread's block)
//     owner | reads          one that reads
//     count << 4 | several   so many that read, whoever they are
//     … | waits              and somebody is in a line: the word changes under the lock only
//
//              write: CAS                       a read, a write: CAS under the lock
//      ┌──────────────────────▶ writing ─────────────────────┐
//      │                        │     ▲                      ▼
//     free ◀──── CAS ───────────┘     │       writing | waits, reading | waits
//      │                              │ the first       │            │
//      └──────────────────────▶ reading writer     the last      the writer
//              read: CAS, each        └─ is the owner ◀─┘ reader     │ ends: all readers
//                                                         ends       └─▶ in the line read;
//                                                                        if none, as above
//
// Phases: while a writer waits, those who come to read wait too; when it is done, all of these read
// before the next one writes. So a writer waits for those who read now at most, and for each writer
// before it one such phase more; a reader for one writer.
//
// The lock is never free while somebody waits: it is handed over.

/// Parts of the word, beside `waitsBit`.
enum RWBits {
  static let reads: UInt64 = 2
  static let several: UInt64 = 4
  static let one: UInt64 = 16
  static let countShift: UInt64 = 4
}

/// The word with one reader more; nil if it is written, or somebody waits.
private func addingReader(_ word: UInt64, _ owner: UInt64) -> UInt64? {
  if word == 0 { return owner | RWBits.reads }
  if word & waitsBit != 0 { return nil }
  if word & RWBits.several != 0 { return word + RWBits.one }
  return word & RWBits.reads == 0 ? nil : 2 << RWBits.countShift | RWBits.several
}

/// The word with one reader less, and the same mark of who waits.
private func removingReader(_ word: UInt64) -> UInt64 {
  let waits = word & waitsBit
  if word & RWBits.reads != 0 || word >> RWBits.countShift == 1 { return waits }
  return word - RWBits.one
}

// MARK: - Reading

/// False if it is written, or somebody waits.
func readIfAvailable(_ lock: Gate, _ owner: UInt64) -> Bool {
  // SAFETY: the caller keeps the lock.
  // ORDERING: the compare-and-swap acquires what the writer released.
  var word = unsafe lock.word
  while let next = addingReader(word, owner) {
    if unsafe weft_word_compare_exchange(weft_gate_state(lock), &word, next) { return true }
  }
  return false
}

@inline(never)
func readSlow(_ lock: Gate, _ owner: UInt64) {
  // SAFETY: the caller keeps the lock.
  // ORDERING: as in readIfAvailable.
  unsafe lock.lock()
  var word = unsafe lock.word
  while true {
    if let next = addingReader(word, owner) {
      if unsafe weft_word_compare_exchange(weft_gate_state(lock), &word, next) {
        unsafe lock.unlock()
        return
      }
      continue
    }
    if word & ~(waitsBit | RWBits.reads) == owner {
      unsafe lock.unlock()
      let held = word & RWBits.reads == 0 ? "writes" : "reads, while another waits to write"
      refuseRecursion("to read", held)
    }
    if unsafe lock.announce(&word) { break }
  }
  unsafe lock.pointee.count = lock.pointee.count + 1
  // Neither cancelled nor timed: only a claim ends it, which makes it a reader.
  _ = unsafe lock.wait(
    in: weft_gate_other(lock), for: .readLock, amount: owner, cancellable: false)
}

func endRead(_ lock: Gate) {
  // SAFETY: the caller reads, and keeps the lock.
  // ORDERING: the compare-and-swap tells the next writer that this is done reading.
  var word = unsafe lock.word
  while word & waitsBit == 0 {
    if unsafe weft_word_compare_exchange(weft_gate_state(lock), &word, removingReader(word)) {
      return
    }
  }
  var claimed = Claimed()
  unsafe lock.lock()
  let next = unsafe removingReader(lock.word)
  if next == waitsBit {
    if unsafe !passToWriter(lock, &claimed) { unsafe passToReaders(lock, &claimed) }
  } else {
    unsafe lock.word = next
  }
  unsafe lock.unlock()
  claimed.release()
}

// MARK: - Writing

func writeIfAvailable(_ lock: Gate, _ owner: UInt64) -> Bool {
  // SAFETY: the caller keeps the lock.
  // ORDERING: the compare-and-swap acquires what the last one released.
  unsafe weft_word_replace(weft_gate_state(lock), 0, owner)
}

@inline(never)
func writeSlow(_ lock: Gate, _ owner: UInt64) {
  // SAFETY: the caller keeps the lock.
  // ORDERING: as in writeIfAvailable.
  unsafe lock.lock()
  var word = unsafe lock.word
  while true {
    if word == 0 {
      if unsafe weft_word_compare_exchange(weft_gate_state(lock), &word, owner) {
        unsafe lock.unlock()
        return
      }
      continue
    }
    if word & ~(waitsBit | RWBits.reads) == owner {
      unsafe lock.unlock()
      refuseRecursion("to write", word & RWBits.reads == 0 ? "writes" : "reads")
    }
    if unsafe lock.announce(&word) { break }
  }
  // As in readSlow.
  _ = unsafe lock.wait(
    in: weft_gate_line(lock), for: .writeLock, amount: owner, cancellable: false)
}

func endWrite(_ lock: Gate, _ owner: UInt64) {
  // SAFETY: the caller writes, and keeps the lock.
  // ORDERING: the compare-and-swap, and the stores of the word below, release what was written.
  if unsafe weft_word_replace(weft_gate_state(lock), owner, 0) { return }
  var claimed = Claimed()
  unsafe lock.lock()
  if unsafe !passToReaders(lock, &claimed) { unsafe passToWriter(lock, &claimed) }
  unsafe lock.unlock()
  claimed.release()
}

// MARK: - Handing over, under the lock

/// Makes the first in the writers' line the owner.
@discardableResult
private func passToWriter(_ lock: Gate, _ claimed: inout Claimed) -> Bool {
  // SAFETY: the caller holds the gate's lock, under which those in the lines are there.
  guard let first = unsafe lock.pointee.line.first else { return false }
  let waits = unsafe first.pointee.next != nil || lock.pointee.other.first != nil
  // In place before the claim, after which it may end.
  unsafe lock.word = first.pointee.amount | (waits ? waitsBit : 0)
  // Its wait has no other end, so the claim wins.
  return unsafe claimed.claim(first)
}

/// Lets all in the readers' line read.
@discardableResult
private func passToReaders(_ lock: Gate, _ claimed: inout Claimed) -> Bool {
  // SAFETY: as in passToWriter.
  guard let first = unsafe lock.pointee.other.first else { return false }
  let count = unsafe lock.pointee.count
  let waits = unsafe lock.pointee.line.first == nil ? 0 : waitsBit
  unsafe lock.pointee.count = 0
  unsafe lock.word =
    waits
    | (count == 1
      ? first.pointee.amount | RWBits.reads : count << RWBits.countShift | RWBits.several)
  unsafe claimed.claimAll(weft_gate_other(lock))
  return true
}

private func refuseRecursion(_ wanted: String, _ held: String) -> Never {
  refuse(
    "\(describeCaller()) locked a FiberRWLock \(wanted), inside a lock of its own that \(held), "
      + "and would wait for itself. Do all of it in one withWriteLock.")
}
