import CWeft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The environment variables of the runtime, read in one place.
enum Environment {
  /// `WEFT_DEBUG`. Read in C (asm/common/debug.c), once for the process: coroutines and stacks have
  /// no scheduler.
  static var debugModes: DebugModes { DebugModes(rawValue: weft_debug_modes()) }

  static func value(_ name: String) -> String? {
    // SAFETY: the text is copied at once.
    guard let text = unsafe getenv(name) else { return nil }
    return unsafe String(cString: text)
  }

  /// `4` or `2-8`.
  static func range(_ text: String) -> ClosedRange<Int>? {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
    switch parts.count {
    case 1:
      guard let count = parts[0] else { return nil }
      return count...count
    case 2:
      guard let low = parts[0], let high = parts[1], low <= high else { return nil }
      return low...high
    default: return nil
    }
  }
}
