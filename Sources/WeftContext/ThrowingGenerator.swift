import CWeft

/// A ``Generator`` whose body may fail: `next()` throws what the body throws.
///
/// ```swift
/// struct Malformed: Error {}
/// let numbers = ThrowingGenerator<Int> { y in
///   for word in ["1", "2", "x"] {
///     guard let number = Int(word) else { throw Malformed() }
///     try y.yield(number)
///   }
/// }
/// do {
///   while let number = try numbers.next() { print(number) }
/// } catch {
///   print(error)  // Malformed(), after 1 and 2
/// }
/// ```
///
/// It is no `Sequence`, since a `for` loop has no room for an error. Everything else is as with
/// ``Generator``: lazy, single-pass, unwound when dropped, one thread at a time.
@safe
public final class ThrowingGenerator<Element> {
  /// The body's end: the same as that of a ``Generator``, so that helpers serve both.
  public typealias Yielder = Generator<Element>.Yielder

  @exclusivity(unchecked)
  @usableFromInline final var core: GeneratorCore

  /// Makes a generator. Its body starts at the first `next()`.
  ///
  /// - Parameters:
  ///   - name: what messages call it; a constant, so that a signal handler can print it.
  ///   - stackSize: how much stack the body gets. Where none can be had, the first `next()` throws
  ///     a ``StackError``, and the following one tries again.
  ///   - fileID: where it was created, for messages.
  ///   - line: where it was created, for messages.
  ///   - body: what it runs.
  @inlinable
  public init(
    name: StaticString = "generator", stackSize: StackSize = .default,
    fileID: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping (inout Yielder) throws -> Void
  ) {
    // SAFETY: the core belongs to this object, and one thread at a time uses it.
    unsafe core = GeneratorCore(
      body: Generator<Element>.erase(body), slotBytes: slotBytes(for: Element.self),
      stackSize: stackSize, site: weft_site(name: name, fileID: fileID, line: line))
  }

  /// The element after the last, or nil after the end.
  ///
  /// - Throws: what the body throws, once; nil follows.
  /// - Complexity: O(1), no allocation. COST: one switch each way, a load and two stores.
  @inlinable @inline(__always)
  public final func next() throws -> Element? {
    // SAFETY: as in Generator.next().
    var suspended = unsafe core.suspended
    if unsafe suspended == nil { unsafe suspended = try core.startOrThrow() }
    guard let block = unsafe suspended else { return nil }
    assert(unsafe noteResume(block))
    unsafe core.suspended = nil
    if unsafe weft_coroutine_resume(block, WEFT_GO) == WEFT_YIELDED {
      unsafe core.suspended = block
      // The element is taken out before a generator that is not used again may be dropped, since
      // its body may put another one there as it unwinds. The optimizer does not know that the slot
      // is a part of this object, and did it the other way round where the element is discarded.
      let element = unsafe block.slot(of: Element.self, bytes: slotBytes(for: Element.self)).move()
      withExtendedLifetime(element) {}
      withExtendedLifetime(self) {}
      return element
    }
    if let error = unsafe core.end(block) { throw error }
    return nil
  }

  deinit {
    // SAFETY: nobody else has this object any more.
    unsafe core.drop { block in
      // SAFETY: as in Generator.
      unsafe block.slot(of: Element.self, bytes: slotBytes(for: Element.self))
        .deinitialize(count: 1)
    }
  }

  /// How deep the stack was used, to a page, since the kernel last got its pages back; nil while
  /// the generator has no stack.
  ///
  /// - Complexity: a system call.
  public final var stackBytesUsed: Int? {
    // SAFETY: nothing else touches the core during this call; one thread at a time.
    unsafe core.stackBytesUsed
  }
}
