import CWeft
import WeftContext

/// A fiber: record, outcome and handle in one object.
///
/// Its record is the first stored property, so that a record's object is found 16 bytes before it.
/// It comes from the pool of cweft_record.h, but for sanitizers.
/// Not generic: a generic class's `deinit` is never specialised, and costs more than all the rest.
///
/// References: one for each handle, and one for the run, dropped after the last switch away.
// SAFETY: cweft_fiber.h says who may touch which field of the record, Scopes.swift the same for
// the groups of the context; the other properties are set before the fiber is first queued, or are
// the running fiber's own.
@usableFromInline
@safe
final class FiberCell: @unchecked Sendable {
  @exclusivity(unchecked)
  final var record: weft_fiber
  /// What few fibers have. A million fibers carry one word for it.
  @exclusivity(unchecked)
  final var extras: FiberExtras?
  /// The innermost group that is open around the running code (Scopes.swift).
  @exclusivity(unchecked)
  final var group: GroupCore?

  /// All zeros: the caller fills the record.
  @inline(__always)
  init() {
    // SAFETY: zeros are a value of each field of the record.
    unsafe self.record = weft_fiber()
  }

  final var name: String? { unsafe extras?.name }  // SAFETY: set before it is first queued

  deinit {
    // SAFETY: nobody else has a reference, so nothing runs or reads the record any more.
    let pointer = unsafe self.pointer
    unsafe pointer.releaseOutcome()
    if unsafe pointer.pointee.flags & UInt32(WEFT_FIBER_POOLED) != 0 {
      // What a release of these runs may let other fibers run: not once the memory is given back.
      unsafe extras = nil
      unsafe group = nil
      unsafe weft_record_release(pointer.object)
    }
  }

  /// The address of the record; valid while the cell is.
  @usableFromInline
  final var pointer: Record {
    // SAFETY: the object's header is two words, and the record follows it (checked by a test).
    unsafe Record(object: Unmanaged.passUnretained(self).toOpaque())
  }
}

extension FiberCell {
  /// Tells the pool what its objects are. Before the first fiber.
  static func prepareMemory() {
    // SAFETY: of a class that needs no set-up the metatype is the address of its metadata.
    let type: AnyObject.Type = FiberCell.self
    unsafe weft_record_prepare(unsafeBitCast(type, to: UnsafeRawPointer.self))
  }
}

extension UnsafeMutablePointer where Pointee == weft_fiber {
  /// The record of a FiberCell.
  @inlinable @inline(__always)
  init(object: UnsafeMutableRawPointer) {
    // SAFETY: the object's header is two words, and the record follows it (checked by a test).
    unsafe self = (object + Int(WEFT_OBJECT_HEADER_BYTES)).assumingMemoryBound(to: weft_fiber.self)
  }

  /// And back.
  @inlinable @inline(__always)
  var object: UnsafeMutableRawPointer {
    // SAFETY: every record but a worker's root is part of a FiberCell.
    unsafe UnsafeMutableRawPointer(self) - Int(WEFT_OBJECT_HEADER_BYTES)
  }

  /// The object that this record is part of.
  @inline(__always)
  var unmanagedCell: Unmanaged<FiberCell> {
    unsafe Unmanaged.fromOpaque(object)  // SAFETY: as above
  }

  /// Takes a reference over that the caller has.
  @inlinable @inline(__always)
  func takeCell() -> FiberCell {
    unsafe Unmanaged.fromOpaque(object).takeRetainedValue()  // SAFETY: as above
  }

  @inline(__always)
  var cell: FiberCell { unsafe unmanagedCell.takeUnretainedValue() }  // SAFETY: as above
}

/// A fiber's name, and the locals that it inherited.
// SAFETY: `locals` is written before the fiber is queued, and then by the fiber itself, which alone
// reads it.
final class FiberExtras: @unchecked Sendable {
  let name: String?
  /// Until the fiber runs: then they are in its scope (Locals.swift).
  var locals: LocalBinding?

  init(name: String?, locals: LocalBinding? = nil) {
    self.name = name
    self.locals = locals
  }
}
