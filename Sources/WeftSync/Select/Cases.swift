import CWeft
import WeftRuntime

/// In a `select`: wins if no other case was ready for so long. Zero and less is ready at once.
///
/// - Parameters:
///   - duration: from the moment when `select` was called.
///   - body: runs then.
@inlinable @inline(__always)
public func after<Output>(
  _ duration: Duration, _ body: @escaping () throws -> Output
) -> AfterCase<Output> {
  AfterCase(deadline: duration <= .zero ? 0 : deadline(after: duration), body: body)
}

/// In a `select`: wins if at one moment no other case was ready, so that the `select` never waits.
///
/// - Parameter body: runs then.
@inlinable @inline(__always)
public func otherwise<Output>(
  _ body: @escaping () throws -> Output
) -> OtherwiseCase<Output> {
  OtherwiseCase(body: body)
}

extension Fiber {
  /// In a `select`: waits for the fiber's end.
  ///
  /// - Parameter body: runs with its result. What the fiber threw comes out of the `select`.
  @inlinable @inline(__always)
  public func onJoin<Output>(
    _ body: @escaping (Success) throws -> Output
  ) -> JoinCase<Success, Failure, Output> {
    JoinCase(fiber: self, body: body)
  }
}

/// A case of the time.
@frozen
@safe
public struct AfterCase<Output>: SelectPart {
  @usableFromInline let deadline: UInt64
  @usableFromInline let body: () throws -> Output

  @inlinable @inline(__always)
  init(deadline: UInt64, body: @escaping () throws -> Output) {
    self.deadline = deadline
    self.body = body
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the caller's places.
    unsafe cases.pointee.kind = UInt32(WEFT_CASE_AFTER)
    unsafe cases.pointee.deadline = part.pointee.deadline
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    unsafe part.pointee.deadline == 0 ? 1 : 0  // SAFETY: as above
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    try unsafe part.pointee.body()  // SAFETY: as above
  }
}

/// The case for when no other is ready.
@frozen
@safe
public struct OtherwiseCase<Output>: SelectPart {
  @usableFromInline let body: () throws -> Output

  @inlinable @inline(__always)
  init(body: @escaping () throws -> Output) { self.body = body }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the caller's place.
    unsafe cases.pointee.kind = UInt32(WEFT_CASE_OTHERWISE)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 { 0 }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    try unsafe part.pointee.body()  // SAFETY: as above
  }
}

/// A case of a fiber's end.
@frozen
@safe
public struct JoinCase<Success: Sendable, Failure: Error, Output>: SelectPart {
  @usableFromInline let fiber: Fiber<Success, Failure>
  @usableFromInline let body: (Success) throws -> Output

  @inlinable @inline(__always)
  init(fiber: Fiber<Success, Failure>, body: @escaping (Success) throws -> Output) {
    self.fiber = fiber
    self.body = body
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: the part keeps the fiber's record.
    unsafe cases.pointee.kind = UInt32(WEFT_CASE_JOIN)
    unsafe cases.pointee.target = part.pointee.fiber.record
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    unsafe part.pointee.fiber.isFinished ? 1 : 0  // SAFETY: as above
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    try unsafe part.pointee.body(part.pointee.fiber.outcome())  // SAFETY: as above
  }
}
