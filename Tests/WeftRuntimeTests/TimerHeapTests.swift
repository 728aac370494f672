// Supports the claim that sleepers wake in the order of their deadlines, whoever leaves meanwhile.

import CWeft
import Testing

@testable import WeftRuntime

@Suite struct TimerHeapTests {
  /// A model: the deadlines and numbers of all that are in the heap, by slot.
  @Test(arguments: [1, 5, 64, 1_000, 5_000]) func agreesWithAModel(count: Int) {
    var random = SplitMix64(seed: stressSeed())
    // SAFETY: the records are only told apart by their addresses.
    let records = UnsafeMutablePointer<weft_fiber>.allocate(capacity: count)
    defer { unsafe records.deallocate() }
    var heap = TimerHeap(capacity: 2)
    defer { heap.deallocate() }
    var model: [UInt32: (deadline: UInt64, number: Int)] = [:]
    for step in 0..<count * 4 {
      if model.count < count && Bool.random(using: &random) || model.isEmpty {
        let deadline = UInt64.random(in: 0..<UInt64(count), using: &random)
        let number = step % count
        let slot = unsafe heap.insert(records + number, deadline: deadline)
        #expect(model.updateValue((deadline, number), forKey: slot) == nil)
      } else if Bool.random(using: &random), let slot = model.keys.randomElement(using: &random) {
        // One from the middle, as a cancelled sleeper leaves.
        heap.remove(slot: slot)
        model[slot] = nil
      } else {
        let least = model.values.map(\.deadline).min()
        #expect(heap.nextDeadline == least)
        // SAFETY: as above.
        let number = unsafe heap.first - records
        let slot = model.first { $1.deadline == least && $1.number == number }?.key
        guard let slot else {
          Issue.record("the first is none of the earliest")
          return
        }
        heap.remove(slot: slot)
        model[slot] = nil
      }
      #expect(heap.count == model.count)
    }
  }

  @Test func anEmptyOneHasNoDeadline() {
    let heap = TimerHeap()
    #expect(heap.nextDeadline == never && heap.count == 0)
    heap.deallocate()
  }
}
