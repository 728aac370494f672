import CWeft
import Testing
import Weft

@testable import WeftSync

/// How many are in the lines of a gate.
func waiters(in gate: Gate) -> Int {
  // SAFETY: the caller keeps the gate; under its lock those in the lines are there.
  unsafe gate.lock()
  defer { unsafe gate.unlock() }
  return unsafe length(gate.pointee.line.first) + length(gate.pointee.other.first)
}

private func length(_ first: Waiter?) -> Int {
  // SAFETY: as above.
  var (count, next) = unsafe (0, first)
  while let waiter = unsafe next {
    count += 1
    unsafe next = waiter.pointee.next
  }
  return count
}

/// Checks that the gate of an object is where its pointer says.
func expectGate(_ gate: inout weft_gate, at pointer: Gate) {
  // SAFETY: addresses are compared.
  unsafe withUnsafeMutablePointer(to: &gate) { #expect(unsafe $0 == pointer) }
}

/// Whether a wait was cancelled.
func isCancelled(_ body: () throws -> Void) -> Bool {
  do { try body() } catch is CancellationError { return true } catch {
    Issue.record("\(error)")
  }
  return false
}

/// Whether a wait timed out.
func isTimedOut(_ body: () throws -> Void) -> Bool {
  do { try body() } catch is DeadlineExceeded { return true } catch {
    Issue.record("\(error)")
  }
  return false
}

/// Runs actors at the same time, the even ones as fibers, the odd ones as plain threads, and waits
/// for all of them.
func together(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let ended = Counter()
  let threads = stride(from: 1, to: count, by: 2).map { index in
    PlainThread {
      body(index)
      ended.add()
    }
  }
  for index in stride(from: 0, to: count, by: 2) {
    Fiber {
      body(index)
      ended.add()
    }
  }
  // A thread's join would block the worker, which has to run the fibers.
  waitUntil { ended.value == count }
  for thread in threads { thread.join() }
}
