import CWeft

/// How much stack a coroutine or fiber gets.
///
/// Only pages that are touched cost memory, so a generous size costs address space alone. Up to
/// 5 KiB of it hold the runtime's own control block. Below the stack lies a guard of 64 KiB, and
/// stack and guard together take the next power of two of address space: 256 KiB by default.
///
/// ```swift
/// let deep = StackSize.mebibytes(8)
/// let generator = Generator<Int>(stackSize: .kibibytes(64)) { y in try y.yield(1) }
/// ```
///
/// Ordinary Swift wants 64 KiB at least (printing a struct takes 40 KiB the first time). Sizes from
/// 16 KiB to 64 GiB are accepted; others are refused with ``StackError/Code/sizeOutOfRange`` where
/// the stack is made.
public struct StackSize: Hashable, Sendable, CustomStringConvertible {
  /// The size in bytes.
  public let bytes: Int

  @inlinable
  init(rawBytes: Int) { bytes = rawBytes }

  /// A size in bytes.
  @inlinable
  public static func bytes(_ count: Int) -> StackSize { StackSize(rawBytes: count) }

  /// A size in units of 1,024 bytes. A product that overflows is out of range, not a trap.
  @inlinable
  public static func kibibytes(_ count: Int) -> StackSize { scaled(count, by: 1 << 10) }

  /// A size in units of 1,048,576 bytes. A product that overflows is out of range, not a trap.
  @inlinable
  public static func mebibytes(_ count: Int) -> StackSize { scaled(count, by: 1 << 20) }

  /// 192 KiB, which with the guard is a stride of 256 KiB.
  @inlinable
  public static var `default`: StackSize { StackSize(rawBytes: 192 << 10) }

  @usableFromInline
  static func scaled(_ count: Int, by unit: Int) -> StackSize {
    let (product, overflow) = count.multipliedReportingOverflow(by: unit)
    return StackSize(rawBytes: overflow ? (count < 0 ? .min : .max) : product)
  }

  /// The size in the largest unit that divides it.
  public var description: String {
    if bytes != 0, bytes % (1 << 20) == 0 { return "\(bytes >> 20) MiB" }
    if bytes != 0, bytes % (1 << 10) == 0 { return "\(bytes >> 10) KiB" }
    return "\(bytes) bytes"
  }
}
