import CWeft

// Making and ending blocks: what does not depend on a generic parameter, out of line.

/// Takes a stack and lays a coroutine on it. The caller puts the body into the block.
@usableFromInline
func makeCoroutine(
  _ runner: consuming CoroutineRunner, slotBytes: Int, stackSize: StackSize, site: weft_site
) throws(StackError) -> Block {
  // SAFETY: the block is new, and nobody else has it.
  let block = unsafe try makeBlock(slotBytes: slotBytes, stackSize: stackSize, site: site)
  // SAFETY: the runner's two words are empty in a new block; running or discarding empties them.
  unsafe block.runner.initialize(to: runner)
  unsafe block.pointee.run = { block in
    unsafe callOnce(unsafe block.runner.move().call, unsafe block)
  }
  return unsafe block
}

/// The same for a generator.
func makeGenerator(
  _ body: consuming GeneratorBody, slotBytes: Int, stackSize: StackSize, site: weft_site
) throws(StackError) -> Block {
  // SAFETY: as in makeCoroutine.
  let block = unsafe try makeBlock(slotBytes: slotBytes, stackSize: stackSize, site: site)
  // SAFETY: the body's two words are empty in a new block; running it empties them again.
  unsafe block.body(as: GeneratorBody.self).initialize(to: body)
  unsafe block.pointee.run = { block in
    unsafe generateOnce(unsafe block.body(as: GeneratorBody.self).move().call, unsafe block)
  }
  return unsafe block
}

// Both own the closure, and release it when they return, before the last switch away. One that is
// called where it was loaded would be retained and released around the call too.

@inline(never)
private func callOnce(_ body: __owned @escaping (Block) -> Void, _ block: Block) {
  // SAFETY: the runner gets the block that it lies in.
  unsafe body(block)
}

@inline(never)
private func generateOnce(
  _ body: __owned @escaping (inout RawYielder) throws -> Void, _ block: Block
) {
  // SAFETY: the block that the body was taken from, on whose stack this runs.
  var yielder = unsafe RawYielder(block: block)
  do {
    try body(&yielder)
  } catch {
    unsafe block.store(error: error)
  }
}

private func makeBlock(
  slotBytes: Int, stackSize: StackSize, site: weft_site
) throws(StackError) -> Block {
  var failure = WEFT_STACK_OK
  var errno: Int32 = 0
  var site = unsafe site
  // SAFETY: all of them are locals. A negative size becomes an enormous one, which is refused.
  guard
    let block = unsafe weft_coroutine_create(stackSize.bytes, slotBytes, &site, &failure, &errno)
  else {
    throw StackError(failure, requested: stackSize, errno: errno)
  }
  assert(findConcurrencyWords())
  return unsafe block
}

/// Before a coroutine is cancelled: true if its body never started.
@usableFromInline
func beginCancelling(_ block: Block) -> Bool {
  // SAFETY: the block is that of a coroutine which has not finished.
  if unsafe block.pointee.running != 0 {
    unsafe refuse(
      block, "a coroutine was cancelled or dropped by its own body",
      remedy: "Let the body return or throw instead.")
  }
  unsafe block.pointee.running = 1
  return unsafe block.pointee.phase == UInt16(WEFT_PHASE_FRESH.rawValue)
}

/// Releases the runner of a coroutine that never started.
@usableFromInline
func discardRunner(_ block: Block) {
  // SAFETY: a fresh block holds its runner, and nothing will call it.
  unsafe block.runner.deinitialize(count: 1)
}

// A binding that a body leaves open over a yield would leak to its caller. Both of these are called
// inside `assert`, so that debug builds alone pay for them; both return true, or not at all.

/// Remembers what the caller's task-locals are.
@usableFromInline
func noteResume(_ block: Block) -> Bool {
  // SAFETY: the caller holds the block of a coroutine that has not finished.
  unsafe weft_coroutine_note_resume(block)
  return true
}

/// Stops the process where the body's are not the caller's.
@usableFromInline
func checkYield(_ block: Block) -> Bool {
  // SAFETY: the body that yields holds its own block.
  unsafe weft_coroutine_check_yield(block)
  return true
}

/// Stops the process, naming the culprit.
func refuse(_ block: Block, _ problem: StaticString, remedy: StaticString) -> Never {
  // SAFETY: the site is copied; the strings are constants that end in zero, as C wants them.
  var site = unsafe block.pointee.site
  unsafe weft_fatal(
    UnsafeRawPointer(problem.utf8Start).assumingMemoryBound(to: CChar.self), &site,
    UnsafeRawPointer(remedy.utf8Start).assumingMemoryBound(to: CChar.self))
}
