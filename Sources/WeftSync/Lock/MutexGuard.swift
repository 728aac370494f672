import CWeft
import WeftRuntime

extension FiberMutex where Value: ~Copyable {
  /// A mutex that is held, and can be let go of for the time of a wait. See `withGuard`.
  ///
  /// An access to `value` must end before the wait, as the compiler sees to: others change the
  /// value meanwhile.
  @safe
  public struct Guard: ~Copyable {
    /// First: a thread sanitizer build notes each access to `value` where the first word points to.
    @usableFromInline let place: UnsafeMutablePointer<Value>
    @usableFromInline let gate: Gate
    /// As whom it was locked.
    @usableFromInline var owner: UInt64

    @inlinable @inline(__always)
    init(gate: Gate, place: UnsafeMutablePointer<Value>, owner: UInt64) {
      unsafe self.gate = gate
      unsafe self.place = place
      self.owner = owner
    }

    // Does nothing, but keeps the 6.3.1 compiler from crashing where withGuard is inlined: it loses
    // its way with values that can't be copied and have nothing to destroy.
    @inlinable @inline(__always)
    deinit {}

    /// What the mutex guards.
    public var value: Value {
      // SAFETY: withGuard keeps the mutex, and holds it while there is a guard.
      @inlinable @inline(__always)
      _read { yield unsafe place.pointee }
      // SAFETY: as above.
      @inlinable @inline(__always)
      mutating _modify { yield unsafe &place.pointee }
    }

    /// Lets go of the mutex until the condition is notified, and takes it again.
    ///
    /// It returns only if it was notified, never spuriously; but between that and having the mutex
    /// again others may have had it, so it belongs into a loop:
    ///
    /// ```swift
    /// let jobs = FiberMutex<[Int]>([])
    /// let notEmpty = FiberCondition()
    /// Fiber {
    ///   jobs.withLock { $0.append(7) }
    ///   notEmpty.notifyOne()
    /// }
    /// let job = try jobs.withGuard { jobs in
    ///   while jobs.value.isEmpty { try jobs.wait(on: notEmpty) }
    ///   return jobs.value.removeLast()
    /// }
    /// ```
    ///
    /// - **Suspension:** parks until notified and the mutex is free.
    /// - **Cancellation:** the mutex is held again when it throws, for which it waits its turn. No
    ///   notification is lost: one that had come is a normal return.
    /// - Throws: `CancellationError`.
    public mutating func wait(on condition: FiberCondition) throws {
      // SAFETY: as above; the caller keeps the condition.
      let ended = unsafe waitOnCondition(condition.pointer, gate, &owner, until: .max)
      withExtendedLifetime(condition) {}
      try ended.check()
    }

    /// The same for so long at most; the time that it takes to have the mutex again comes on top.
    ///
    /// - **Suspension:** as `wait(on:)`.
    /// - **Cancellation:** as `wait(on:)`.
    /// - Throws: `DeadlineExceeded` if it was not notified in time; `CancellationError`.
    public mutating func wait(on condition: FiberCondition, within duration: Duration) throws {
      // SAFETY: as in wait(on:).
      let ended = unsafe waitOnCondition(
        condition.pointer, gate, &owner, until: deadline(after: duration))
      withExtendedLifetime(condition) {}
      try ended.check()
    }
  }

  /// Runs a function that has the value to itself, and can wait until another changes it.
  ///
  /// ```swift
  /// let isOpen = FiberMutex(false)
  /// let changed = FiberCondition()
  /// Fiber {
  ///   isOpen.withLock { $0 = true }
  ///   changed.notifyAll()
  /// }
  /// try isOpen.withGuard { isOpen in
  ///   while !isOpen.value { try isOpen.wait(on: changed) }
  /// }
  /// ```
  ///
  /// - **Suspension:** as `withLock`, and in the guard's waits.
  /// - **Cancellation:** as `withLock`; the guard's waits are cancelled.
  /// - Parameter body: gets the guard, which it can't keep.
  /// - Returns: what `body` returned.
  /// - Throws: what `body` threw; the mutex is free again.
  @inlinable
  public func withGuard<R: ~Copyable, E: Error>(
    _ body: (inout sending Guard) throws(E) -> sending R
  ) throws(E) -> sending R {
    // SAFETY: `self` keeps the gate until the line in the defer; between lock and unlock the value
    // is ours.
    let gate = unsafe pointer
    var held = unsafe Guard(gate: gate, place: place, owner: lockMutex(gate))
    defer {
      // Refused by the compiler, but not in the language modes before 6.
      if unsafe held.gate != gate {
        refuse("two guards of FiberMutexes were swapped: each belongs to its own withGuard")
      }
      unsafe unlockMutex(gate, held.owner)
      withExtendedLifetime(self) {}
    }
    return try body(&held)
  }
}
