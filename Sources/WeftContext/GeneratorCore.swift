import CWeft

/// What a generator is made of, whatever its element: shared by ``Generator`` and
/// ``ThrowingGenerator``.
///
///     state      suspended  body    phase
///     fresh      nil        there   .fresh
///     running    nil        nil     .started
///     suspended  block      nil     .started
///     finished   nil        nil     .finished
@usableFromInline
@safe
struct GeneratorCore {
  @usableFromInline
  enum Phase {
    case fresh
    case started
    case finished
  }

  /// The block of a body that waits in its `yield`.
  @usableFromInline var suspended: Block?
  @usableFromInline var body: GeneratorBody?
  @usableFromInline var phase = Phase.fresh
  @usableFromInline let slotBytes: Int
  @usableFromInline let stackSize: StackSize
  @usableFromInline let site: weft_site

  @inlinable
  init(body: GeneratorBody, slotBytes: Int, stackSize: StackSize, site: weft_site) {
    unsafe self.suspended = nil
    self.body = body
    self.slotBytes = slotBytes
    self.stackSize = stackSize
    unsafe self.site = site
  }

  /// Where there is no suspended body: makes one if the generator is fresh; nil after the end.
  @usableFromInline
  mutating func start() -> Block? {
    do throws(StackError) {
      // SAFETY: the block is handed on, not used.
      return unsafe try startOrThrow()
    } catch {
      trap("the generator has no stack: \(error)")
    }
  }

  @usableFromInline
  mutating func startOrThrow() throws(StackError) -> Block? {
    switch phase {
    case .finished: return nil
    case .started: trap("next() was called by the generator's own body")
    case .fresh: break
    }
    // SAFETY: fresh, so the body is there. A failure leaves the generator fresh.
    let block = unsafe try makeGenerator(
      body.unsafelyUnwrapped, slotBytes: slotBytes, stackSize: stackSize, site: site)
    body = nil
    phase = .started
    return unsafe block
  }

  /// After the body's end: gives the stack back and takes the error, if there was one.
  @usableFromInline
  mutating func end(_ block: Block) -> (any Error)? {
    phase = .finished
    // SAFETY: the body has ended: nothing runs on its stack, and nobody else has the block.
    let error = unsafe block.takeError()
    unsafe weft_coroutine_destroy(block)
    return error
  }

  /// The same for a generator that has no way to throw.
  @usableFromInline
  mutating func endOrTrap(_ block: Block) {
    // SAFETY: as in end(_:).
    if let error = unsafe end(block), !(error is CancellationError) {
      trap("its body threw \(error); use ThrowingGenerator for a body that fails")
    }
  }

  /// At the generator's end of life: unwinds a suspended body.
  @usableFromInline
  mutating func drop(release: (Block) -> Void) {
    // SAFETY: suspended, so the block is there, and its body ends here.
    guard let block = unsafe suspended else { return }
    unsafe suspended = nil
    unsafe unwind(block, release: release)
    _ = unsafe end(block)
  }

  var stackBytesUsed: Int? {
    // SAFETY: a suspended block and its stack are there.
    guard let block = unsafe suspended else { return nil }
    return unsafe withUnsafePointer(to: block.pointee.stack) { stack in
      Int(unsafe weft_stack_high_water(stack))
    }
  }

  private func trap(_ problem: String) -> Never {
    // SAFETY: the site points to constants of the program.
    let name = unsafe text(site.name, site.name_bytes)
    let file = unsafe text(site.file, site.file_bytes)
    fatalError("weft: \"\(name)\" (created at \(file):\(unsafe site.line)): \(problem)")
  }

  private func text(_ start: UnsafePointer<UInt8>?, _ count: UInt16) -> String {
    // SAFETY: constants of the program, as long as they say.
    unsafe String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
  }
}
