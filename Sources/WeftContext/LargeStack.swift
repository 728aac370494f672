import CWeft

/// A call without arguments or result, as C hands it over.
private struct Thunk {
  let call: () -> Void
}

// The generic part is inlined into the caller, where its types are known; what is left has none.

/// Runs a function on a stack of the given size and returns to the caller's: for deep recursion.
///
/// ```swift
/// func depth(_ n: Int) -> Int { n == 0 ? 0 : 1 + depth(n - 1) }
/// let d = withLargeStack(.mebibytes(512)) { depth(1_000_000) }
/// ```
///
/// It is a call: the body runs before this returns, on the same thread, and sees the same task,
/// task-locals and open accesses. It nests, throws, and works inside coroutines, which may yield
/// from it.
///
/// - **Suspension:** none of its own.
/// - **Thread safety:** any thread. Stacks are reused, so that a second call costs some 20 ns.
/// - Parameters:
///   - size: how much stack the body gets. Only what it touches costs memory.
///   - fileID: where it was called, for messages.
///   - line: where it was called, for messages.
///   - body: what to run.
/// - Returns: what the body returns.
/// - Throws: what the body throws. Where no stack can be had the process stops with a message that
///   names the reason, since a body that throws nothing leaves no room for another error.
@inlinable
public func withLargeStack<T, E: Error>(
  _ size: StackSize, fileID: StaticString = #fileID, line: UInt = #line,
  _ body: () throws(E) -> T
) throws(E) -> T {
  var result: Result<T, E>?
  let call = {
    do throws(E) {
      result = .success(try body())
    } catch {
      result = .failure(error)
    }
  }
  withoutActuallyEscaping(call) { call in
    // SAFETY: the site points to constants of the program.
    unsafe callOnStack(
      size, site: weft_site(name: "withLargeStack", fileID: fileID, line: line), call)
  }
  guard let result else {
    preconditionFailure("withLargeStack returned before its body did. Please report this bug.")
  }
  return try result.get()
}

@usableFromInline
func callOnStack(_ size: StackSize, site: weft_site, _ call: @escaping () -> Void) {
  var thunk = Thunk(call: call)
  var errno: Int32 = 0
  // SAFETY: the thunk and the site outlive the call, which returns after the body has.
  let failure = unsafe withUnsafeMutablePointer(to: &thunk) { thunk in
    unsafe withUnsafePointer(to: site) { site in
      unsafe weft_call_on_stack(
        size.bytes, site,
        { unsafe $0.unsafelyUnwrapped.assumingMemoryBound(to: Thunk.self).pointee.call() },
        thunk, &errno)
    }
  }
  if failure != WEFT_STACK_OK {
    fatalError("withLargeStack: \(StackError(failure, requested: size, errno: errno))")
  }
}
