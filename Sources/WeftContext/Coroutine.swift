import CWeft

/// A function that can stop in the middle, hand out a value, and go on when it is resumed with
/// another.
///
/// ```swift
/// var c = try Coroutine<Int, String, Double> { y, first in
///   let second = try y.yield("got \(first)")
///   return Double(first + second)
/// }
/// switch try c.resume(1) { case .yielded(let s): print(s); case .returned(let d): print(d) }
/// switch try c.resume(2) { case .yielded(let s): print(s); case .returned(let d): print(d) }
/// ```
///
/// The body runs on a stack of its own and as whoever resumes it: no scheduler, no thread. It may
/// yield from any depth of calls.
///
///                   init                 resume                 return, throw
///      (nothing) ─────────▶ fresh ─────────────────▶ running ─────────────────▶ finished
///                             │                      │     ▲                       ▲
///                             │ cancel, deinit  yield│     │resume                 │
///                             │ (closure released)   ▼     │                       │
///                             │                     suspended ── cancel, deinit ───┤
///                             │                              (CancellationError    │
///                             │                               thrown at the yield) │
///                             └────────────────────────────────────────────────────┘
///
/// A suspended coroutine that is dropped or cancelled is resumed once more, with
/// `CancellationError` thrown from its `yield`: every `defer` and `deinit` on its stack runs. A
/// body that catches the error and yields again gets it again; after 1,000 such rounds the process
/// stops with a message that names where the coroutine was created.
///
/// - **Suspension:** `resume` runs the body until it yields or ends. The body continues on the
///   thread that resumes it.
/// - **Thread safety:** one thread at a time. It may move to another thread between two resumes
///   when its captures allow it (`sending`). It must not be suspended while it holds something that
///   belongs to a thread: a `Synchronization.Mutex`, or a task-local's `withValue` (stopped with a
///   message in debug builds).
/// - **Complexity:** a resume and a yield cost a few nanoseconds and no allocation; creating one
///   takes a reused stack and no allocation but that of its closure.
@frozen
@safe
public struct Coroutine<Input, Output, Return>: ~Copyable {
  /// What a resume led to.
  @frozen
  public enum Step {
    /// The body yielded this and waits to be resumed.
    case yielded(Output)
    /// The body returned this and has finished.
    case returned(Return)
  }

  /// Null once the coroutine has finished.
  @usableFromInline var block: Block?

  /// Makes a coroutine. Its body starts at the first `resume`, whose input it gets.
  ///
  /// - Parameters:
  ///   - name: what messages call it; a constant, so that a signal handler can print it.
  ///   - stackSize: how much stack the body gets.
  ///   - fileID: where it was created, for messages.
  ///   - line: where it was created, for messages.
  ///   - body: what it runs. Released when the body ends, or when the coroutine is dropped.
  /// - Throws: `StackError` if no stack can be had.
  /// - Complexity: O(1); a reused stack, and no allocation but that of the closure.
  @inlinable
  public init(
    name: StaticString = "coroutine", stackSize: StackSize = .default,
    fileID: StaticString = #fileID, line: UInt = #line,
    _ body: @escaping (inout Yielder, Input) throws -> Return
  ) throws(StackError) {
    // SAFETY: the runner takes only what init and resume put into the block it is given.
    let runner = unsafe CoroutineRunner { block in
      // SAFETY: init put the body into the block, and the first resume the input into the slot;
      // from here on both are ours.
      unsafe Self.run(block.body(as: Body.self).move().call, block)
    }
    let block = unsafe try makeCoroutine(
      runner, slotBytes: Self.slotSize, stackSize: stackSize,
      site: weft_site(name: name, fileID: fileID, line: line))
    // SAFETY: the body's two words are empty in a new block.
    unsafe block.body(as: Body.self).initialize(to: Body(call: body))
    unsafe self.block = block
  }

  /// Runs the body, which it owns: one that is loaded and then called would be retained and
  /// released around the call too.
  @inlinable @inline(never)
  static func run(
    _ body: __owned @escaping (inout Yielder, Input) throws -> Return, _ block: Block
  ) {
    // SAFETY: the first resume put the input into the slot, which is empty whenever the body runs;
    // whoever resumed takes the result out.
    let input = unsafe Self.slot(block, as: Input.self).move()
    var yielder = unsafe Yielder(block: block)
    let result: Result<Return, any Error>
    do {
      result = .success(try body(&yielder, input))
    } catch {
      result = .failure(error)
    }
    unsafe Self.slot(block, as: Result<Return, any Error>.self).initialize(to: result)
  }

  @usableFromInline
  struct Body {
    @usableFromInline let call: (inout Yielder, Input) throws -> Return

    @inlinable
    init(call: @escaping (inout Yielder, Input) throws -> Return) { self.call = call }
  }

  /// Input, output and result share one place: never two of them are there at once.
  @inlinable @inline(__always)
  static var slotSize: Int {
    max(
      slotBytes(for: Input.self), slotBytes(for: Output.self),
      slotBytes(for: Result<Return, any Error>.self))
  }

  @inlinable @inline(__always)
  static func slot<T>(_ block: Block, as type: T.Type) -> UnsafeMutablePointer<T> {
    // SAFETY: as for slot(of:bytes:): the block is that of a coroutine that has not finished.
    unsafe block.slot(of: type, bytes: slotSize)
  }

  /// Runs the body until it yields or ends.
  ///
  /// - Parameter input: what the body's `yield` returns (at first: its second argument).
  /// - Returns: what it yielded or returned.
  /// - Throws: `CoroutineError.finished` after the end, `CoroutineError.alreadyRunning` from inside
  ///   the body, and what the body throws, once.
  /// - Complexity: O(1), no allocation. COST: one switch each way, one load and two stores.
  @inlinable @inline(__always)
  public mutating func resume(_ input: Input) throws -> Step {
    // SAFETY: a block that is not null is that of a coroutine which has not finished.
    guard let block = unsafe block, unsafe block.pointee.running == 0 else {
      throw unsafe block == nil ? CoroutineError.finished : .alreadyRunning
    }
    assert(unsafe noteResume(block))
    unsafe block.pointee.running = 1
    unsafe Self.slot(block, as: Input.self).initialize(to: input)
    if unsafe weft_coroutine_resume(block, WEFT_GO) == WEFT_YIELDED {
      unsafe block.pointee.running = 0
      return .yielded(unsafe Self.slot(block, as: Output.self).move())
    }
    return .returned(unsafe try takeResult(block))
  }

  /// After the end: takes the result and gives the stack back.
  @inlinable
  mutating func takeResult(_ block: Block) throws -> Return {
    // SAFETY: the body has ended and left its result in the slot. The block comes from resume, not
    // from `self`: the body may have moved the coroutine elsewhere meanwhile.
    let result = unsafe Self.slot(block, as: Result<Return, any Error>.self).move()
    unsafe self.block = nil
    unsafe weft_coroutine_destroy(block)
    return try result.get()
  }

  /// Whether the body has returned, thrown or been cancelled.
  @inlinable
  public var isFinished: Bool { unsafe block == nil }

  /// Ends the coroutine now: a suspended body gets `CancellationError` from its `yield` until it
  /// has left every frame, and what it returns, yields or throws meanwhile is released.
  ///
  /// Does nothing after the end. From inside the body it stops the process with a message.
  @inlinable
  public mutating func cancel() {
    // SAFETY: a block that is there is that of a coroutine that has not finished: it is ours until
    // weft_coroutine_destroy.
    guard let block = unsafe block else { return }
    if unsafe beginCancelling(block) {
      unsafe block.body(as: Body.self).deinitialize(count: 1)
      unsafe discardRunner(block)
    } else {
      unsafe unwind(block) { unsafe Self.slot($0, as: Output.self).deinitialize(count: 1) }
      unsafe Self.slot(block, as: Result<Return, any Error>.self).deinitialize(count: 1)
    }
    unsafe self.block = nil
    unsafe weft_coroutine_destroy(block)
  }

  @inlinable
  deinit {
    // SAFETY: the block is not used after this. A finished one has none.
    guard let block = unsafe block else { return }
    var last = unsafe Coroutine(adopting: block)
    last.cancel()
  }

  @inlinable
  init(adopting block: Block) { unsafe self.block = block }

  /// How deep the stack was used, to a page, since the kernel last got its pages back; nil after
  /// the end.
  ///
  /// - Complexity: a system call.
  public var stackBytesUsed: Int? {
    // SAFETY: a block that is there is that of a coroutine that has not finished: it is ours.
    guard let block = unsafe block else { return nil }
    return unsafe withUnsafePointer(to: block.pointee.stack) { stack in
      Int(unsafe weft_stack_high_water(stack))
    }
  }
}

extension Coroutine where Input == Void {
  /// Runs the body until it yields or ends.
  ///
  /// - Returns: what it yielded or returned.
  /// - Throws: as `resume(_:)` does.
  @inlinable @inline(__always)
  public mutating func resume() throws -> Step { try resume(()) }
}

extension Coroutine {
  /// The body's end of a coroutine: hands values out and gets others in.
  ///
  /// It is valid inside the body only, and passed on as `inout`, so that no closure that outlives
  /// the body can keep it.
  @frozen
  @safe
  public struct Yielder: ~Copyable {
    @usableFromInline let block: Block

    @inlinable
    init(block: Block) { unsafe self.block = block }

    /// Hands a value to whoever resumed, and waits to be resumed again.
    ///
    /// - Parameter output: what `resume` returns.
    /// - Returns: the input of the next `resume`.
    /// - Throws: `CancellationError` when the coroutine is dropped or cancelled meanwhile.
    /// - Complexity: O(1), no allocation. COST: one switch.
    @inlinable @inline(__always)
    public func yield(_ output: consuming Output) throws(CancellationError) -> Input {
      // SAFETY: the yielder exists only while the body runs, so the block is there and the slot
      // is empty.
      assert(unsafe checkYield(block))
      unsafe Coroutine.slot(block, as: Output.self).initialize(to: output)
      if unsafe weft_coroutine_yield(block) != WEFT_GO {
        throw CancellationError()
      }
      return unsafe Coroutine.slot(block, as: Input.self).move()
    }
  }
}
