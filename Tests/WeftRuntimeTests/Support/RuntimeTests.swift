import Testing

@_exported import WeftTestSupport

/// All suites of fibers: one after the other, since many count the threads, descriptors and stacks
/// of the process.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct RuntimeTests {}
