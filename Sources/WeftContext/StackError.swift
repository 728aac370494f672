import CWeft

/// Why a stack could not be had.
///
/// ```swift
/// do throws(StackError) {
///   _ = try Coroutine<Void, Int, Void>(stackSize: .bytes(1)) { _, _ in }
/// } catch {
///   print(error)  // a stack of 1 bytes was asked for; sizes from 16 KiB to 64 GiB are possible
/// }
/// ```
public struct StackError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What went wrong.
  public enum Code: Hashable, Sendable {
    /// The size is below 16 KiB or above 64 GiB.
    case sizeOutOfRange
    /// The kernel refused memory or address space.
    case outOfMemory
    /// The process has as many mappings as `vm.max_map_count` allows.
    case mapLimit
    /// No guard could be installed below the stack.
    case guardRefused
  }

  /// What went wrong.
  public let code: Code
  /// The size that was asked for.
  public let requested: StackSize
  /// The kernel's error number, where it gave one.
  public let errno: Int32

  package init(_ failure: weft_stack_failure, requested: StackSize, errno: Int32) {
    switch failure {
    case WEFT_STACK_SIZE_OUT_OF_RANGE: code = .sizeOutOfRange
    case WEFT_STACK_MAP_LIMIT: code = .mapLimit
    case WEFT_STACK_GUARD_REFUSED: code = .guardRefused
    default: code = .outOfMemory
    }
    self.requested = requested
    self.errno = errno
  }

  /// What went wrong and what to do about it.
  public var description: String {
    let asked = "a stack of \(requested) was asked for"
    switch code {
    case .sizeOutOfRange:
      return "\(asked); sizes from 16 KiB to 64 GiB are possible"
    case .outOfMemory:
      return
        "\(asked), but the kernel gave no memory for it (errno \(errno)); end some coroutines, "
        + "ask for less, or raise the limit (ulimit -v, the container's memory, "
        + "vm.overcommit_memory)"
    case .mapLimit:
      return
        "\(asked), but the process has reached vm.max_map_count; raise it (sysctl), or use a "
        + "kernel from 6.13 on, where guards take no mapping"
    case .guardRefused:
      return "\(asked), but the kernel refused to guard it (errno \(errno))"
    }
  }
}
