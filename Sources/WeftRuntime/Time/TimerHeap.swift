import CWeft

/// The fibers that sleep, earliest first.
///
/// A heap with four children to a node, which lie in one cache line: walking down reads one line a
/// level, and never the fibers themselves, each of which would be a cache miss or two. A fiber
/// knows its slot, and the slot its place in the heap, so that taking it out is O(log n):
///
///     fiber ── timer_slot ──▶ places[slot] ──▶ entries[place] = (deadline, slot)
///       ▲                                                            │
///       └───────────────────── records[slot] ◀───────────────────────┘
///
/// The places are a dense array of small numbers, since every step of a walk writes one.
///
/// GUARDED BY: the timer lock of the worker that it belongs to.
@safe
struct TimerHeap {
  private struct Entry {
    var deadline: UInt64
    var slot: UInt32
    var unused: UInt32 = 0
  }

  private static let fanOut = 4
  /// So many entries before the first, so that the children of each node begin a cache line.
  private static let front = 3
  private static let none = UInt32.max

  private var entries: UnsafeMutablePointer<Entry>
  private var places: UnsafeMutablePointer<UInt32>
  private var records: UnsafeMutablePointer<Record?>
  private(set) var count = 0
  private var capacity: Int
  /// The first of the slots that were given back, which are linked through `places`.
  private var free = Self.none
  private var slots: UInt32 = 0

  init(capacity: Int = 64) {
    // SAFETY: new blocks, released by deallocate().
    self.capacity = capacity
    unsafe entries = Self.allocateEntries(capacity)
    unsafe places = .allocate(capacity: capacity)
    unsafe records = .allocate(capacity: capacity)
  }

  /// Releases the memory. Nothing else may be called after.
  func deallocate() {
    // SAFETY: the base of the block, as it was allocated.
    unsafe UnsafeMutableRawPointer(entries - Self.front).deallocate()
    unsafe places.deallocate()
    unsafe records.deallocate()
  }

  private static func allocateEntries(_ capacity: Int) -> UnsafeMutablePointer<Entry> {
    let bytes = (capacity + front) * MemoryLayout<Entry>.stride
    // SAFETY: a block of that many entries, on a cache line of its own.
    let block = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 64)
    return unsafe block.bindMemory(to: Entry.self, capacity: capacity + front) + front
  }

  /// When the first is due; `never` if there is none.
  // SAFETY: the first entry, if there is one.
  var nextDeadline: UInt64 { count == 0 ? never : unsafe entries[0].deadline }

  /// The one that is due first. There is one.
  // SAFETY: each slot in the heap has its fiber.
  var first: Record { unsafe records[Int(entries[0].slot)].unsafelyUnwrapped }

  /// Adds a fiber; returns its slot. COST: O(log n), one allocation when it doubles.
  mutating func insert(_ record: Record, deadline: UInt64) -> UInt32 {
    if count == capacity { grow() }
    var slot = free
    // SAFETY: as many slots as entries, below the capacity.
    if slot == Self.none {
      slot = slots
      slots += 1
    } else {
      unsafe free = places[Int(slot)]
    }
    unsafe records[Int(slot)] = record
    count += 1
    siftUp(Entry(deadline: deadline, slot: slot), from: count - 1)
    return slot
  }

  /// Takes a fiber out. COST: O(log n).
  mutating func remove(slot: UInt32) {
    // SAFETY: the slot is taken, so its place is below the count.
    let place = unsafe Int(places[Int(slot)])
    unsafe places[Int(slot)] = free
    free = slot
    count -= 1
    if place == count { return }
    let last = unsafe entries[count]
    if siftDown(last, from: place) == place { siftUp(last, from: place) }
  }

  private func put(_ entry: Entry, at place: Int) {
    // SAFETY: the place is below the count, the slot taken.
    unsafe entries[place] = entry
    unsafe places[Int(entry.slot)] = UInt32(truncatingIfNeeded: place)
  }

  private func siftUp(_ entry: Entry, from start: Int) {
    var place = start
    while place > 0 {
      let parent = (place - 1) / Self.fanOut
      // SAFETY: below the count.
      let other = unsafe entries[parent]
      if other.deadline <= entry.deadline { break }
      put(other, at: place)
      place = parent
    }
    put(entry, at: place)
  }

  /// Returns where the entry came to lie.
  private func siftDown(_ entry: Entry, from start: Int) -> Int {
    var place = start
    while true {
      let children = place * Self.fanOut + 1
      if children >= count { break }
      var least = children
      // SAFETY: below the count.
      var earliest = unsafe entries[children].deadline
      for child in children + 1..<max(children + 1, min(children + Self.fanOut, count)) {
        let deadline = unsafe entries[child].deadline
        if deadline < earliest {
          least = child
          earliest = deadline
        }
      }
      if earliest >= entry.deadline { break }
      unsafe put(entries[least], at: place)
      place = least
    }
    put(entry, at: place)
    return place
  }

  private mutating func grow() {
    let larger = capacity * 2
    // SAFETY: what is moved fits twice; the old blocks are not used after.
    let entries = unsafe Self.allocateEntries(larger)
    unsafe entries.moveInitialize(from: self.entries, count: count)
    unsafe UnsafeMutableRawPointer(self.entries - Self.front).deallocate()
    unsafe self.entries = unsafe entries
    let places = UnsafeMutablePointer<UInt32>.allocate(capacity: larger)
    unsafe places.moveInitialize(from: self.places, count: Int(slots))
    unsafe self.places.deallocate()
    unsafe self.places = unsafe places
    let records = UnsafeMutablePointer<Record?>.allocate(capacity: larger)
    unsafe records.moveInitialize(from: self.records, count: Int(slots))
    unsafe self.records.deallocate()
    unsafe self.records = unsafe records
    capacity = larger
  }
}
