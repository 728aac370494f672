import Testing

// Functions where the macros refuse: they do not nest, and do not take noncopyable operands.

/// What a function throws, if anything.
func thrown(by body: () throws -> Void) -> (any Error)? {
  do {
    try body()
    return nil
  } catch {
    return error
  }
}

/// Expects that a function throws this error.
func expectError<E: Error & Equatable>(
  _ error: E, at location: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
  let found = thrown(by: body)
  #expect(found as? E == error, "threw \(String(describing: found))", sourceLocation: location)
}

/// Expects that a function throws `CancellationError`.
func expectCancellation(
  at location: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
  let found = thrown(by: body)
  #expect(
    found is CancellationError, "threw \(String(describing: found))", sourceLocation: location)
}

func expect(_ condition: Bool, at location: SourceLocation = #_sourceLocation) {
  #expect(condition, sourceLocation: location)
}
