import CWeft

/// What this build and this machine use: for start-up logs, bug reports and `weft info`.
///
/// ```swift
/// print(RuntimeInfo.current.threadWords)  // found
/// ```
///
/// - **Suspension:** never. **Thread safety:** any thread.
public struct RuntimeInfo: Sendable {
  /// How the runtime's list of open exclusive accesses is kept apart for each coroutine.
  public enum ThreadWords: String, Sendable {
    /// Its word was found on this thread and is swapped inline: a nanosecond or two a switch.
    case found
    /// Its word was not found; the runtime's own enter/exit pair is used, some 16 ns a resume.
    case fallback
    /// Exclusivity checking is off: there is nothing to keep apart.
    case untracked
  }

  /// Which guard lies below a stack.
  public enum Guard: String, Sendable {
    /// In the page tables: no limit to the number of stacks (Linux 6.13 and later).
    case madvise
    /// A mapping of its own each: `vm.max_map_count` limits the number of stacks.
    case mprotect
  }

  /// The processor architecture that the switch was built for.
  public let architecture: String
  /// Which switch coroutines use.
  public let contextSwitch: String
  /// How the first thread word is kept.
  public let threadWords: ThreadWords
  /// Whether the three words of the concurrency runtime were found on this thread.
  public let concurrencyWordsFound: Bool
  /// Which guard lies below a stack.
  public let stackGuard: Guard
  /// "address" or "thread" where a sanitizer is built in: every switch is then a slow one.
  public let sanitizer: String?

  /// Finds the words of the calling thread, so that its switches are fast from the first.
  package static func findWordsOfThisThread() {
    // SAFETY: looks at this thread's own words; the result is not used here.
    _ = unsafe weft_thread_words()
    findConcurrencyWords()
  }

  /// What the calling thread finds. The first call on a thread takes some microseconds.
  public static var current: RuntimeInfo { RuntimeInfo() }

  private init() {
    #if arch(x86_64)
      architecture = "x86-64"
    #else
      architecture = "aarch64"
    #endif
    // SAFETY: null, or a constant of the program.
    sanitizer = unsafe weft_sanitizer().map { unsafe String(cString: $0) }
    let mode = weft_words_get_mode()
    switch mode {
    case WEFT_WORDS_FOUND: threadWords = .found
    case WEFT_WORDS_UNTRACKED: threadWords = .untracked
    default: threadWords = .fallback
    }
    contextSwitch =
      sanitizer == nil && threadWords != .fallback
      ? "inline, store-based, jump through a register" : "out of line, store-based"
    findConcurrencyWords()
    // SAFETY: the record lives as long as the thread.
    concurrencyWordsFound = unsafe weft_thread_words().pointee.fallback != nil
    stackGuard = StackPool.guardKind
  }
}

/// The stacks of this process.
///
/// Stacks that end are kept for reuse: some in each thread, the rest in a shared pool, which gives
/// the pages of the coldest back to the kernel by itself once 1,024 default stacks lie idle.
///
/// - **Suspension:** never. **Thread safety:** any thread.
public enum StackPool {
  /// Counts of the moment.
  public struct Statistics: Sendable {
    /// In use, or in the cache of another thread.
    public let live: Int
    /// Idle, with pages that were used.
    public let idleDirty: Int
    /// Idle, with no memory in them.
    public let idleClean: Int
    /// Mappings made.
    public let slabs: Int
    /// Address space in them.
    public let mappedBytes: Int
  }

  /// Counts of the moment. Other threads may change them meanwhile.
  public static var statistics: Statistics {
    // SAFETY: a structure of numbers and one constant text.
    let counts = unsafe weft_stack_get_statistics()
    return unsafe Statistics(
      live: counts.live, idleDirty: counts.idle_dirty, idleClean: counts.idle_clean,
      slabs: counts.slabs, mappedBytes: counts.mapped_bytes)
  }

  /// Gives the pages of all idle stacks that this thread can reach back to the kernel.
  ///
  /// - Complexity: O(idle stacks), some 200 ns each.
  public static func trim() {
    weft_stack_trim()
    weft_record_trim()
  }

  /// Which guard this kernel allows. Makes a stack if none was made yet.
  static var guardKind: RuntimeInfo.Guard {
    // SAFETY: the stack is given back unused.
    var stack = unsafe weft_stack()
    if unsafe weft_stack_acquire(StackSize.default.bytes, &stack) == WEFT_STACK_OK {
      unsafe weft_stack_release(&stack)
    }
    let kind = unsafe String(cString: weft_stack_get_statistics().guard)
    return kind == "mprotect" ? .mprotect : .madvise
  }
}
