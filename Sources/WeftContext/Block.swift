import CWeft

/// The control block of a coroutine, at the top of its stack.
@usableFromInline
typealias Block = UnsafeMutablePointer<weft_coroutine>

// A closure that is stored through a generic parameter is stored behind a conversion thunk, which
// allocates. Inside a struct of its own it keeps its two words, so that the block can hold it, and
// bodies whose yielders differ only in their generic parameter can be run by one function.

/// The body of a generator, whatever its element is.
@usableFromInline
@safe
struct GeneratorBody {
  @usableFromInline let call: (inout RawYielder) throws -> Void
}

/// What every `Yielder` is: the address of the block.
@usableFromInline
@safe
struct RawYielder: ~Copyable {
  @usableFromInline let block: Block

  @inlinable
  init(block: Block) { unsafe self.block = block }
}

/// A function that knows the types of a coroutine's body. It captures nothing but them, so that
/// where they are known at compile time it has no context to allocate.
@usableFromInline
@safe
struct CoroutineRunner {
  @usableFromInline let call: (Block) -> Void

  @inlinable
  init(call: @escaping (Block) -> Void) { unsafe self.call = call }
}

/// Bytes for a value of this type below the block, in multiples of 16.
@inlinable @inline(__always)
func slotBytes<T>(for type: T.Type) -> Int {
  let size = MemoryLayout<T>.size
  let alignment = MemoryLayout<T>.alignment
  return ((size + 15) & ~15) + (alignment > 16 ? alignment : 0)
}

extension UnsafeMutablePointer where Pointee == weft_coroutine {
  /// Where the values that travel with a switch lie: right below the block.
  ///
  ///     |  block  | slot (T)  | first frame ...
  ///     ^ self    ^ self - slotBytes        (high addresses on the left)
  @inlinable @inline(__always)
  func slot<T>(of type: T.Type, bytes: Int) -> UnsafeMutablePointer<T> {
    // SAFETY: weft_coroutine_create left `bytes` free below the block, which is 64-aligned.
    var raw = unsafe UnsafeMutableRawPointer(self) - bytes
    if MemoryLayout<T>.alignment > 16 {
      unsafe raw = raw.alignedUp(toMultipleOf: MemoryLayout<T>.alignment)
    }
    return unsafe raw.assumingMemoryBound(to: T.self)
  }

  /// Where the body's closure lies until it starts.
  @inlinable @inline(__always)
  func body<T>(as type: T.Type) -> UnsafeMutablePointer<T> {
    // SAFETY: two words for a struct of one closure; the same type is stored and taken.
    unsafe UnsafeMutableRawPointer(weft_coroutine_body(self)).assumingMemoryBound(to: T.self)
  }

  /// Where the function that runs a coroutine's body lies.
  var runner: UnsafeMutablePointer<CoroutineRunner> {
    // SAFETY: two words for a struct of one closure.
    unsafe UnsafeMutableRawPointer(weft_coroutine_runner(self))
      .assumingMemoryBound(to: CoroutineRunner.self)
  }

  /// Where the error that a generator's body threw lies; the word is null where it threw none.
  private var errorSlot: UnsafeMutableRawPointer {
    // SAFETY: one word, the size of `any Error`.
    unsafe UnsafeMutableRawPointer(weft_coroutine_error(self))
  }

  func store(error: any Error) {
    // SAFETY: written once, by the body's end; taken once, by takeError().
    unsafe errorSlot.initializeMemory(as: (any Error).self, to: error)
  }

  func takeError() -> (any Error)? {
    // SAFETY: not null exactly where store(error:) put an owned error.
    guard unsafe pointee.error != nil else { return nil }
    let error = unsafe errorSlot.assumingMemoryBound(to: (any Error).self).move()
    unsafe pointee.error = nil
    return error
  }
}

extension weft_site {
  /// A name and the place of a call, as the compiler's constants.
  @inlinable
  package init(name: StaticString, fileID: StaticString, line: UInt) {
    // SAFETY: pointers to the program's constants, which live for ever.
    unsafe self.init(
      name: name.hasPointerRepresentation ? name.utf8Start : nil,
      file: fileID.hasPointerRepresentation ? fileID.utf8Start : nil,
      name_bytes: UInt16(truncatingIfNeeded: name.utf8CodeUnitCount),
      file_bytes: UInt16(truncatingIfNeeded: fileID.utf8CodeUnitCount),
      line: UInt32(truncatingIfNeeded: line))
  }
}

/// A body that swallows its cancellation and yields again is asked this often.
let cancelRoundsMax: UInt64 = 1_000

/// Throws cancellation at a suspended body until it ends. `release` drops what it yields meanwhile.
@usableFromInline
func unwind(_ block: Block, release: (Block) -> Void) {
  repeat {
    // SAFETY: the block lives until the body has ended.
    unsafe block.pointee.cancel_rounds += 1
    if unsafe block.pointee.cancel_rounds > cancelRoundsMax {
      unsafe refuse(
        block, "a body caught its cancellation and yielded again, 1,000 times",
        remedy: "Let the error of `yield` leave the body, or return after catching it.")
    }
    assert(unsafe noteResume(block))
    if unsafe weft_coroutine_resume(block, WEFT_CANCEL) == WEFT_ENDED { return }
    unsafe release(block)
  } while true
}
