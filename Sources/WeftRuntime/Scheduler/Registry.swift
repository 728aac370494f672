import CWeft

/// The fibers that have parked at least once and not ended: the only ones that no queue leads to.
///
/// It is what cancellation at shutdown, dumps and deadlock reports walk. A fiber that never parks
/// never gets in, so that short ones pay nothing. Sharded by the worker of the first park.
// SAFETY: the pointers are set once, and each shard's list is guarded by its lock.
@safe
final class Registry: @unchecked Sendable {
  private let heads: UnsafeMutablePointer<Record?>
  private let locks: UnsafeMutablePointer<weft_word>
  private let shards: Int

  init(shards: Int) {
    // SAFETY: memory of our own, freed in deinit.
    self.shards = shards
    unsafe heads = .allocate(capacity: shards)
    unsafe heads.initialize(repeating: nil, count: shards)
    unsafe locks = .allocate(capacity: shards)
    unsafe locks.initialize(repeating: weft_word(), count: shards)
  }

  deinit {
    // SAFETY: nobody else has a reference, and no fiber is registered any more.
    unsafe heads.deallocate()
    unsafe locks.deallocate()
  }

  private func withLock<R>(_ shard: Int, _ body: () -> R) -> R {
    // SAFETY: callers name shards below `shards`.
    let lock = unsafe locks + shard
    var expected: UInt64 = 0
    // ORDERING: acquire in the swap, release in the store.
    while unsafe !weft_word_compare_exchange(lock, &expected, 1) {
      expected = 0
      weft_pause()
    }
    defer { unsafe weft_word_store_release(lock, 0) }
    return body()
  }

  func add(_ record: Record, shard: UInt32) {
    // SAFETY: the caller is the fiber, so its record lives; others in the list are taken out before
    // they end. The shard's lock guards the links.
    withLock(Int(shard)) {
      let head = unsafe heads[Int(shard)]
      unsafe record.pointee.cold.pointee.registry_next = head
      unsafe record.pointee.cold.pointee.registry_previous = nil
      unsafe head?.pointee.cold.pointee.registry_previous = record
      unsafe heads[Int(shard)] = record
      unsafe record.pointee.cold.pointee.registry_shard = shard + 1
    }
  }

  func remove(_ record: Record) {
    // SAFETY: the caller is the fiber, whose own shard number does not change any more. The shard's
    // lock guards the links, also those of the neighbours, which are registered and so alive.
    let shard = unsafe Int(record.pointee.cold.pointee.registry_shard) - 1
    if shard < 0 { return }
    withLock(shard) {
      let next = unsafe record.pointee.cold.pointee.registry_next
      let previous = unsafe record.pointee.cold.pointee.registry_previous
      unsafe next?.pointee.cold.pointee.registry_previous = previous
      if let previous = unsafe previous {
        unsafe previous.pointee.cold.pointee.registry_next = next
      } else {
        unsafe heads[shard] = next
      }
    }
  }

  /// References to all of them, so that they outlive the walk. A fiber that is ending is left out.
  func cells() -> [FiberCell] {
    var all: [FiberCell] = []
    for shard in 0..<shards {
      withLock(shard) {
        // SAFETY: the shard's lock is held.
        var record = unsafe heads[shard]
        while let found = unsafe record {
          // SAFETY: it is registered, so its run still holds a reference.
          unsafe all.append(found.cell)
          unsafe record = found.pointee.cold.pointee.registry_next
        }
      }
    }
    return all
  }
}
