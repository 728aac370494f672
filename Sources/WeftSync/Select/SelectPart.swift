import CWeft
import WeftRuntime

/// What stands in a `select`: a case, or several.
///
/// The functions are for `select` alone, which calls them with the address of the part, where it
/// stays until `finish`: what a case hands over lies in the part itself.
public protocol SelectPart {
  /// What the bodies of the cases return.
  associatedtype Output

  /// How many cases there are.
  @unsafe static func _count(_ part: UnsafeMutablePointer<Self>) -> Int
  /// How much memory the cases need for what they are handed, each place rounded up.
  @unsafe static func _bytes(_ part: UnsafeMutablePointer<Self>) -> Int
  /// Fills in what each case is, and takes its place in the memory.
  @unsafe static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer)
  /// The cases that seem ready, without their locks: a bit for each of the first 64.
  @unsafe static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64
  /// Does what a case is about if that can be done at once. Under its lock.
  @unsafe static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool
  /// Puts the case's waiter into the line of its primitive. Under its lock.
  @unsafe static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>)
  /// Runs the body of the case that won.
  @unsafe static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output
}

/// Those whom a case that was done at once lets go on. For `select` alone.
@frozen
@safe
public struct SelectClaims: ~Copyable {
  @usableFromInline var claimed = Claimed()

  @inlinable
  init() {}
}

// What a single case need not say.
extension SelectPart {
  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _count(_ part: UnsafeMutablePointer<Self>) -> Int { 1 }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _bytes(_ part: UnsafeMutablePointer<Self>) -> Int { 0 }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool { false }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {}
}

/// The address of a stored part of a part, which stays where it is.
@inlinable @inline(__always)
func address<T>(of part: inout T) -> UnsafeMutablePointer<T> {
  // SAFETY: the callers pass stored properties of what lies behind a pointer.
  unsafe withUnsafeMutablePointer(to: &part) { unsafe $0 }
}

/// Two parts, one after the other.
@frozen
public struct SelectPair<First: SelectPart, Second: SelectPart>: SelectPart
where First.Output == Second.Output {
  /// What the bodies of the cases return.
  public typealias Output = First.Output
  @usableFromInline var first: First
  @usableFromInline var second: Second

  // Consuming, here and in the builder: or each pair would copy all before it.
  @inlinable @inline(__always)
  init(_ first: consuming First, _ second: consuming Second) {
    self.first = first
    self.second = second
  }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _count(_ part: UnsafeMutablePointer<Self>) -> Int {
    // SAFETY: as in each function of this type: the caller's pointer, and places inside it.
    unsafe First._count(address(of: &part.pointee.first))
      + Second._count(address(of: &part.pointee.second))
  }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _bytes(_ part: UnsafeMutablePointer<Self>) -> Int {
    // SAFETY: as above.
    unsafe First._bytes(address(of: &part.pointee.first))
      + Second._bytes(address(of: &part.pointee.second))
  }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: as above; there is a case for each.
    let first = unsafe address(of: &part.pointee.first)
    unsafe First._describe(first, cases, &memory)
    let rest = unsafe cases + First._count(first)
    unsafe Second._describe(address(of: &part.pointee.second), rest, &memory)
  }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    // SAFETY: as above. A smart shift: what goes over the end is lost.
    let first = unsafe address(of: &part.pointee.first)
    return unsafe First._ready(first)
      | Second._ready(address(of: &part.pointee.second)) << First._count(first)
  }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    // SAFETY: as above.
    let first = unsafe address(of: &part.pointee.first)
    let count = unsafe First._count(first)
    if index < count { return unsafe First._attempt(first, index, one, &claimed) }
    return unsafe Second._attempt(
      address(of: &part.pointee.second), index - count, one, &claimed)
  }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    let first = unsafe address(of: &part.pointee.first)
    let count = unsafe First._count(first)
    if index < count { return unsafe First._enqueue(first, index, one) }
    unsafe Second._enqueue(address(of: &part.pointee.second), index - count, one)
  }

  /// For `select`.
  @inlinable @inline(__always)
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    // SAFETY: as above.
    let first = unsafe address(of: &part.pointee.first)
    let count = unsafe First._count(first)
    if index < count { return try unsafe First._finish(first, index, one) }
    return try unsafe Second._finish(address(of: &part.pointee.second), index - count, one)
  }
}

/// Any number of parts of one type: of a loop; none or one, of an `if`.
@frozen
public struct SelectMany<Part: SelectPart>: SelectPart {
  /// What the bodies of the cases return.
  public typealias Output = Part.Output
  @usableFromInline let owner: SelectParts<Part>

  @inlinable
  init(_ parts: [Part]) { owner = SelectParts(parts) }

  /// The part that has the case, and the case's index in it.
  @inlinable
  @unsafe static func find(
    _ part: UnsafeMutablePointer<Self>, _ index: Int
  ) -> (UnsafeMutablePointer<Part>, Int) {
    // SAFETY: an index is less than the sum of the counts, so the search ends in time.
    var left = index
    var place = unsafe part.pointee.owner.parts.baseAddress.unsafelyUnwrapped
    while true {
      let count = unsafe Part._count(place)
      if left < count { return unsafe (place, left) }
      left -= count
      unsafe place += 1
    }
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _count(_ part: UnsafeMutablePointer<Self>) -> Int {
    // SAFETY: as in each function of this type: the places of the parts that the owner keeps.
    unsafe part.pointee.owner.parts.indices.reduce(0) {
      unsafe $0 + Part._count(part.pointee.owner.parts.baseAddress.unsafelyUnwrapped + $1)
    }
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _bytes(_ part: UnsafeMutablePointer<Self>) -> Int {
    // SAFETY: as above.
    unsafe part.pointee.owner.parts.indices.reduce(0) {
      unsafe $0 + Part._bytes(part.pointee.owner.parts.baseAddress.unsafelyUnwrapped + $1)
    }
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: as above; there is a case for each.
    var cases = unsafe cases
    for index in unsafe part.pointee.owner.parts.indices {
      let place = unsafe part.pointee.owner.parts.baseAddress.unsafelyUnwrapped + index
      unsafe Part._describe(place, cases, &memory)
      unsafe cases += Part._count(place)
    }
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    // SAFETY: as above.
    var (ready, count): (UInt64, Int) = (0, 0)
    for index in unsafe part.pointee.owner.parts.indices {
      let place = unsafe part.pointee.owner.parts.baseAddress.unsafelyUnwrapped + index
      unsafe ready |= Part._ready(place) << count
      unsafe count += Part._count(place)
    }
    return ready
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    // SAFETY: as above.
    let (place, index) = unsafe find(part, index)
    return unsafe Part._attempt(place, index, one, &claimed)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    let (place, index) = unsafe find(part, index)
    unsafe Part._enqueue(place, index, one)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    // SAFETY: as above.
    let (place, index) = unsafe find(part, index)
    return try unsafe Part._finish(place, index, one)
  }
}

/// Keeps the parts of a loop in one place.
@usableFromInline
@safe
final class SelectParts<Part> {
  @usableFromInline let parts: UnsafeMutableBufferPointer<Part>

  @usableFromInline
  init(_ parts: [Part]) {
    // SAFETY: freed in deinit.
    unsafe self.parts = .allocate(capacity: parts.count)
    _ = unsafe self.parts.initialize(from: parts)
  }

  deinit {
    // SAFETY: nobody else has them.
    unsafe parts.deinitialize()
    unsafe parts.deallocate()
  }
}

/// The one or the other part, of an `if` with an `else`, or of a `switch`.
@frozen
public struct SelectEither<First: SelectPart, Second: SelectPart>: SelectPart
where First.Output == Second.Output {
  /// What the bodies of the cases return.
  public typealias Output = First.Output
  @usableFromInline var first: SelectMany<First>
  @usableFromInline var second: SelectMany<Second>

  @inlinable
  init(_ first: [First], _ second: [Second]) {
    self.first = SelectMany(first)
    self.second = SelectMany(second)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _count(_ part: UnsafeMutablePointer<Self>) -> Int {
    // SAFETY: as in each function of this type: one of the two is empty.
    unsafe SelectMany._count(address(of: &part.pointee.first))
      + SelectMany._count(address(of: &part.pointee.second))
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _bytes(_ part: UnsafeMutablePointer<Self>) -> Int {
    // SAFETY: as above.
    unsafe SelectMany._bytes(address(of: &part.pointee.first))
      + SelectMany._bytes(address(of: &part.pointee.second))
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _describe(
    _ part: UnsafeMutablePointer<Self>, _ cases: UnsafeMutablePointer<weft_select_case>,
    _ memory: inout UnsafeMutableRawPointer
  ) {
    // SAFETY: as above.
    unsafe SelectMany._describe(address(of: &part.pointee.first), cases, &memory)
    unsafe SelectMany._describe(address(of: &part.pointee.second), cases, &memory)
  }

  @inlinable
  @unsafe static func isFirst(_ part: UnsafeMutablePointer<Self>) -> Bool {
    // SAFETY: as above.
    unsafe !part.pointee.first.owner.parts.isEmpty
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _ready(_ part: UnsafeMutablePointer<Self>) -> UInt64 {
    // SAFETY: as above.
    unsafe isFirst(part)
      ? SelectMany._ready(address(of: &part.pointee.first))
      : SelectMany._ready(address(of: &part.pointee.second))
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _attempt(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>, _ claimed: inout SelectClaims
  ) -> Bool {
    // SAFETY: as above.
    unsafe isFirst(part)
      ? SelectMany._attempt(address(of: &part.pointee.first), index, one, &claimed)
      : SelectMany._attempt(address(of: &part.pointee.second), index, one, &claimed)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _enqueue(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) {
    // SAFETY: as above.
    unsafe isFirst(part)
      ? SelectMany._enqueue(address(of: &part.pointee.first), index, one)
      : SelectMany._enqueue(address(of: &part.pointee.second), index, one)
  }

  /// For `select`.
  @inlinable
  @unsafe public static func _finish(
    _ part: UnsafeMutablePointer<Self>, _ index: Int,
    _ one: UnsafeMutablePointer<weft_select_case>
  ) throws -> Output {
    // SAFETY: as above.
    try unsafe isFirst(part)
      ? SelectMany._finish(address(of: &part.pointee.first), index, one)
      : SelectMany._finish(address(of: &part.pointee.second), index, one)
  }
}

/// Puts the cases of a `select` together.
@resultBuilder
public enum SelectBuilder {
  /// The first part.
  @inlinable @inline(__always)
  public static func buildPartialBlock<Part: SelectPart>(first: consuming Part) -> Part { first }

  /// One more part.
  @inlinable @inline(__always)
  public static func buildPartialBlock<First: SelectPart, Second: SelectPart>(
    accumulated: consuming First, next: consuming Second
  ) -> SelectPair<First, Second> { SelectPair(accumulated, next) }

  /// An `if` without an `else`.
  @inlinable
  public static func buildOptional<Part: SelectPart>(_ part: Part?) -> SelectMany<Part> {
    SelectMany(part.map { [$0] } ?? [])
  }

  /// The first branch of an `if` or `switch`.
  @inlinable
  public static func buildEither<First: SelectPart, Second: SelectPart>(
    first: First
  ) -> SelectEither<First, Second> { SelectEither([first], []) }

  /// The second branch of an `if` or `switch`.
  @inlinable
  public static func buildEither<First: SelectPart, Second: SelectPart>(
    second: Second
  ) -> SelectEither<First, Second> { SelectEither([], [second]) }

  /// A loop.
  @inlinable
  public static func buildArray<Part: SelectPart>(_ parts: [Part]) -> SelectMany<Part> {
    SelectMany(parts)
  }

  /// An `if #available`.
  @inlinable
  public static func buildLimitedAvailability<Part: SelectPart>(
    _ part: Part
  ) -> SelectMany<Part> { SelectMany([part]) }
}
