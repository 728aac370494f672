import Testing
import Weft

@_exported import WeftTestSupport

/// All suites of primitives: one after the other, since some count what the process has.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct SyncTests {}

/// What a function throws, if anything.
private func thrown(by body: () throws -> Void) -> (any Error)? {
  do {
    try body()
    return nil
  } catch {
    return error
  }
}

func expectClosed(at location: SourceLocation = #_sourceLocation, _ body: () throws -> Void) {
  #expect(thrown(by: body) is ChannelClosed, sourceLocation: location)
}

func expectCancelled(at location: SourceLocation = #_sourceLocation, _ body: () throws -> Void) {
  #expect(thrown(by: body) is CancellationError, sourceLocation: location)
}

func expectLate(at location: SourceLocation = #_sourceLocation, _ body: () throws -> Void) {
  #expect(thrown(by: body) is DeadlineExceeded, sourceLocation: location)
}

/// What the process of an exit test wrote to standard error.
func errorText(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}
