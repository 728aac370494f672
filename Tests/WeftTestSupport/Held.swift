/// A value that several closures, threads or tasks reach, one after the other.
///
/// `@unchecked Sendable`: SAFETY: tests hand it over with a join or an await in between.
public final class Held<Value: ~Copyable>: @unchecked Sendable {
  /// The value.
  public var value: Value

  /// Holds a value.
  public init(_ value: consuming Value) { self.value = value }
}
