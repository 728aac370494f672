import CWeft

/// A lazy sequence whose elements a function yields one by one.
///
/// ```swift
/// let fib = Generator<Int> { y in
///   var (a, b) = (0, 1)
///   while true {
///     try y.yield(a)
///     (a, b) = (b, a + b)
///   }
/// }
/// print(Array(fib.prefix(10)))
/// ```
///
/// The body starts at the first `next()` and runs as whoever calls it, until it yields. It may
/// yield from any depth of calls, which makes walking a tree a plain recursion:
///
/// ```swift
/// indirect enum Tree { case leaf, node(Tree, Int, Tree) }
/// func walk(_ tree: Tree, _ y: inout Generator<Int>.Yielder) throws {
///   guard case .node(let left, let value, let right) = tree else { return }
///   try walk(left, &y)
///   try y.yield(value)
///   try walk(right, &y)
/// }
/// let tree = Tree.node(.node(.leaf, 1, .leaf), 2, .leaf)
/// print(Array(Generator<Int> { y in try walk(tree, &y) }))  // [1, 2]
/// ```
///
/// It is single-pass: it is its own iterator. Dropping it while it is suspended throws
/// `CancellationError` from its `yield`, so that every `defer` and `deinit` on its stack runs; see
/// ``Coroutine`` for the states.
///
/// - **Suspension:** `next()` runs the body until it yields or ends, on the calling thread.
/// - **Thread safety:** one thread at a time; not `Sendable`.
/// - **Complexity:** an element costs one switch each way, a few nanoseconds, and no allocation;
///   a generator costs two allocations (itself, its closure), and a stack while it is suspended.
@safe
public final class Generator<Element>: Sequence, IteratorProtocol {
  @exclusivity(unchecked)
  @usableFromInline final var core: GeneratorCore

  /// Makes a generator. Its body starts at the first `next()`.
  ///
  /// - Parameters:
  ///   - name: what messages call it; a constant, so that a signal handler can print it.
  ///   - stackSize: how much stack the body gets. Where none can be had, `next()` stops the process
  ///     with a message that names the reason.
  ///   - fileID: where it was created, for messages.
  ///   - line: where it was created, for messages.
  ///   - body: what it runs. An error other than `CancellationError` that leaves it stops the
  ///     process, naming the error: ``ThrowingGenerator`` is for those.
  @inlinable
  public init(
    name: StaticString = "generator", stackSize: StackSize = .default,
    fileID: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping (inout Yielder) throws -> Void
  ) {
    // SAFETY: the core belongs to this object, and one thread at a time uses it.
    unsafe core = GeneratorCore(
      body: Self.erase(body), slotBytes: slotBytes(for: Element.self), stackSize: stackSize,
      site: weft_site(name: name, fileID: fileID, line: line))
  }

  /// The element after the last, or nil after the end.
  ///
  /// - Complexity: O(1), no allocation. COST: one switch each way, a load and two stores.
  @inlinable @inline(__always)
  public final func next() -> Element? {
    // SAFETY: a suspended block is there until its body ends; its slot then holds one element.
    guard let block = unsafe core.suspended ?? core.start() else { return nil }
    assert(unsafe noteResume(block))
    // While the body runs there is no suspended block, so that a nested next() is noticed.
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
    unsafe core.endOrTrap(block)
    return nil
  }

  deinit {
    // SAFETY: nobody else has this object any more.
    unsafe core.drop { block in
      // SAFETY: the body has just yielded an element, which nobody will take.
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

  /// The body with its type; ``GeneratorBody`` is the same two words.
  @usableFromInline
  struct TypedBody {
    @usableFromInline let call: (inout Yielder) throws -> Void

    @inlinable
    init(call: @escaping (inout Yielder) throws -> Void) { self.call = call }
  }

  /// The same closure, as if its yielder had no element type.
  @inlinable @inline(__always)
  static func erase(_ body: @escaping (inout Yielder) throws -> Void) -> GeneratorBody {
    // SAFETY: both are structs of one closure, and both yielders are structs of one pointer that is
    // passed by its address: the same two words, called the same way.
    unsafe unsafeBitCast(TypedBody(call: body), to: GeneratorBody.self)
  }

  /// The body's end of a generator: hands elements out.
  ///
  /// It is valid inside the body only, and passed on as `inout`, so that no closure that outlives
  /// the body can keep it.
  @frozen
  @safe
  public struct Yielder: ~Copyable {
    @usableFromInline let block: Block

    /// Hands an element to whoever called `next()`, and waits for the following call.
    ///
    /// - Throws: `CancellationError` when the generator is dropped meanwhile.
    /// - Complexity: O(1), no allocation. COST: one switch.
    @inlinable @inline(__always)
    public func yield(_ element: consuming Element) throws(CancellationError) {
      // SAFETY: the yielder exists only while the body runs, so the block is there and the slot
      // is empty.
      assert(unsafe checkYield(block))
      unsafe block.slot(of: Element.self, bytes: slotBytes(for: Element.self))
        .initialize(to: element)
      if unsafe weft_coroutine_yield(block) != WEFT_GO {
        throw CancellationError()
      }
    }

    /// The same as `yield(_:)`, for bodies that like it short: `try y(1)`.
    @inlinable @inline(__always)
    public func callAsFunction(_ element: consuming Element) throws(CancellationError) {
      try self.yield(element)
    }
  }
}
