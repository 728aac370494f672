import CWeft

/// A fiber's record, inside its object.
@usableFromInline package typealias Record = UnsafeMutablePointer<weft_fiber>
/// A worker of the pool.
@usableFromInline package typealias Worker = UnsafeMutablePointer<weft_worker>

extension UInt32 {
  /// A flag of a record, with the type that C gives the field.
  static var pinned: UInt32 { UInt32(WEFT_FIBER_PINNED) }
  static var high: UInt32 { UInt32(WEFT_FIBER_HIGH) }
  static var started: UInt32 { UInt32(WEFT_FIBER_STARTED) }
  static var main: UInt32 { UInt32(WEFT_FIBER_MAIN) }
  @usableFromInline static var root: UInt32 { UInt32(WEFT_FIBER_ROOT) }
  @usableFromInline static var succeeded: UInt32 { UInt32(WEFT_FIBER_SUCCEEDED) }
  @usableFromInline static var failed: UInt32 { UInt32(WEFT_FIBER_FAILED) }
  @usableFromInline static var boxed: UInt32 { UInt32(WEFT_FIBER_BOXED) }
  @usableFromInline static var owns: UInt32 { UInt32(WEFT_FIBER_OWNS) }
  static var joined: UInt32 { UInt32(WEFT_FIBER_JOINED) }
  static var exclusive: UInt32 { UInt32(WEFT_FIBER_EXCLUSIVE) }
  static var child: UInt32 { UInt32(WEFT_FIBER_CHILD) }
  @usableFromInline static var provoked: UInt32 { UInt32(WEFT_FIBER_PROVOKED) }
  static var enlisted: UInt32 { UInt32(WEFT_FIBER_ENLISTED) }
  static var inJob: UInt32 { UInt32(WEFT_FIBER_IN_JOB) }
  static var bound: UInt32 { UInt32(WEFT_FIBER_BOUND) }
  static var due: UInt32 { UInt32(WEFT_FIBER_DUE) }
  static var locals: UInt32 { UInt32(WEFT_FIBER_LOCALS) }
  static var named: UInt32 { UInt32(WEFT_FIBER_NAMED) }
  static var migrates: UInt32 { UInt32(WEFT_FIBER_MIGRATES) }
  static var simulated: UInt32 { UInt32(WEFT_FIBER_SIMULATED) }
}

extension UnsafeMutablePointer where Pointee == weft_fiber {
  var isRoot: Bool { unsafe pointee.flags & .root != 0 }  // SAFETY: set before it runs

  /// Where a closure or an outcome of up to two words lies.
  @inlinable @inline(__always)
  func body<T>(as type: T.Type) -> UnsafeMutablePointer<T> {
    // SAFETY: two words; the same type is stored and taken.
    unsafe UnsafeMutableRawPointer(weft_fiber_body(self)).assumingMemoryBound(to: T.self)
  }

  /// Where the function that knows the types lies: first how to run, then how to release.
  @inlinable @inline(__always)
  var runner: UnsafeMutablePointer<FiberRunner> {
    // SAFETY: two words for a struct of one closure.
    unsafe UnsafeMutableRawPointer(weft_fiber_runner(self))
      .assumingMemoryBound(to: FiberRunner.self)
  }

  /// Where the outcome lies: in the record if it fits, else on the heap.
  @inlinable @inline(__always)
  func outcome<T>(as type: T.Type) -> UnsafeMutablePointer<T> {
    // SAFETY: exactly the outcomes that do not fit are boxed, and their box lives as long as the
    // record.
    if fitsInRecord(type) { return unsafe body(as: type) }
    return unsafe pointee.body.0.unsafelyUnwrapped.assumingMemoryBound(to: T.self)
  }

  /// Stores the outcome. The closure has been taken out of its place before.
  @inlinable @inline(__always)
  func storeOutcome<T>(_ value: consuming T, flag: UInt32) {
    // SAFETY: the fiber that runs writes it once, before it publishes its end.
    var flags = flag
    if !fitsInRecord(T.self) {
      let box = UnsafeMutableRawPointer.allocate(
        byteCount: MemoryLayout<T>.size, alignment: MemoryLayout<T>.alignment)
      unsafe pointee.body.0 = box
      flags |= .boxed
    }
    unsafe outcome(as: T.self).initialize(to: value)
    if !_isPOD(T.self) || !fitsInRecord(T.self) {
      flags |= .owns
      unsafe runner.initialize(
        to: FiberRunner { record in
          unsafe record.outcome(as: T.self).deinitialize(count: 1)
          if !fitsInRecord(T.self) { unsafe record.pointee.body.0?.deallocate() }
        })
    }
    unsafe pointee.flags |= flags
  }
}

extension UnsafeMutablePointer where Pointee == weft_fiber {
  /// Stores what the fiber threw. Unlike other outcomes it is reported when it is released, if
  /// nobody took it.
  @inlinable @inline(never)
  func storeFailure<E: Error>(_ error: E) {
    // SAFETY: the fiber that runs writes its outcome once, before it publishes its end; the
    // runner's two words are empty, or hold what storeOutcome put there.
    unsafe storeOutcome(error, flag: .failed)
    if unsafe pointee.flags & .owns != 0 { unsafe runner.deinitialize(count: 1) }
    unsafe pointee.flags |= .owns
    unsafe runner.initialize(
      to: FiberRunner { record in
        // SAFETY: stored above as this type.
        let place = unsafe record.outcome(as: E.self)
        unsafe reportIfUnjoined(record, place.pointee)
        unsafe place.deinitialize(count: 1)
        if !fitsInRecord(E.self) { unsafe record.pointee.body.0?.deallocate() }
      })
    unsafe noteCancellation()
  }
}

extension UnsafeMutablePointer where Pointee == weft_fiber {
  /// Before it runs: leaves room for its name on the stack that the fiber has just got.
  @inline(never)
  func reserveName() {
    // SAFETY: the fiber is the caller's.
    unsafe weft_fiber_reserve_name(self, UInt64((cell.name ?? "").utf8.count))
  }

  /// A stack overflow is reported with the name that the fiber was given.
  @inline(never)
  func nameStack() {
    // SAFETY: the fiber itself calls. The name is copied to its stack, where there is room for it.
    var name = unsafe cell.name ?? ""
    name.withUTF8 { bytes in
      guard let start = bytes.baseAddress else { return }
      unsafe start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
        unsafe weft_fiber_name(self, $0, UInt64(bytes.count))
      }
    }
  }
}

/// Whether an outcome of this type lies in the record itself.
@inlinable @inline(__always)
func fitsInRecord<T>(_ type: T.Type) -> Bool {
  MemoryLayout<T>.size <= 16 && MemoryLayout<T>.alignment <= 8
}

/// A function that knows the types of a fiber. It captures nothing but them, so that where they
/// are known at compile time it has no context to allocate.
@usableFromInline
@safe
struct FiberRunner {
  @usableFromInline let call: (Record) -> Void

  @inlinable
  init(call: @escaping (Record) -> Void) { unsafe self.call = call }
}
