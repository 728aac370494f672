import CWeft
import Glibc
import Testing
import Weft
import WeftTestSupport

/// How a process ends that a fault ends: by the signal, unless a sanitizer reports it and exits.
private let faultEnd: ExitTest.Condition = sanitizer == nil ? .signal(SIGSEGV) : .failure

/// A function with a frame of 60 KB, which steps over a guard of a page.
@inline(never)
private func wide(_ depth: Int) -> Int {
  var frame = InlineArray<7_680, Int>(repeating: depth)
  frame[depth & 7_679] = depth < 0 ? 0 : wide(depth + 1)
  return blackHole(frame[7_679]) + frame[0]
}

/// Recursion without end.
@inline(never)
private func endless(_ n: Int) -> Int {
  n < 0 ? 0 : (endless(n &+ 1) ^ n) &+ blackHole(1)
}

/// Writes where nothing is.
private func faultAtNull() {
  // SAFETY: it is the point of the test that this faults.
  unsafe UnsafeMutablePointer<Int>(bitPattern: 8)!.pointee = 1
}

@Suite struct OverflowTests {
  @Test func aCoroutineIsNamed() async {
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) {
      var c = try Coroutine<Void, Int, Int>(name: "deep") { y, _ in
        try y.yield(1)
        return endless(0)
      }
      _ = try c.resume()
      _ = try c.resume()
    }
    let text = errorText(result)
    #expect(
      text.contains(
        "weft: stack overflow in \"deep\" (created at WeftContextTests/OverflowTests.swift:"))
    #expect(text.contains("whose stack has 192 KiB"))
    #expect(text.contains("`stackSize:`"))
  }

  @Test func aGeneratorIsNamed() async {
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) {
      let g = Generator<Int>(name: "numbers", stackSize: .mebibytes(1)) { y in
        try y.yield(endless(0))
      }
      _ = g.next()
    }
    #expect(errorText(result).contains("weft: stack overflow in \"numbers\" (created at"))
    #expect(errorText(result).contains("whose stack has 1984 KiB"))
  }

  @Test func theInnermostOfNestedOnesIsNamed() async {
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) {
      let g = Generator<Int>(name: "outer") { y in
        let inner = Generator<Int>(name: "inner") { y in try y.yield(endless(0)) }
        try y.yield(inner.next()!)
      }
      _ = g.next()
    }
    #expect(errorText(result).contains("weft: stack overflow in \"inner\""))
    #expect(!errorText(result).contains("\"outer\""))
  }

  @Test func aLargeStackOnTheMainThreadIsNamed() async {
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) { @MainActor in
      withLargeStack(.kibibytes(512)) { _ = endless(0) }
    }
    #expect(errorText(result).contains("weft: stack overflow in \"withLargeStack\" (created at"))
    #expect(errorText(result).contains("KiB"))
  }

  @Test(arguments: [1, 256])
  func aLargeStackOnAnotherThreadIsNamed(_ mebibytes: Int) async {
    // Beyond the slabs' largest class too. Wide frames: thread sanitizer counts calls.
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) { [mebibytes] in
      onNewThread { withLargeStack(.mebibytes(mebibytes)) { _ = wide(0) } }
    }
    #expect(errorText(result).contains("weft: stack overflow in \"withLargeStack\" (created at"))
  }

  @Test func aFrameOf60KBDoesNotStepOverTheGuard() async {
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) {
      // A neighbour on each side, which the frame must not reach.
      let before = Generator<Int> { y in while true { try y.yield(1) } }
      _ = before.next()
      let g = Generator<Int>(name: "wide") { y in try y.yield(wide(0)) }
      _ = g.next()
    }
    #expect(errorText(result).contains("weft: stack overflow in \"wide\""))
  }

  @Test func aMovedCoroutineIsNamedOnItsNewThread() async {
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) {
      let held = Held(
        Generator<Int>(name: "moved") { y in
          try y.yield(1)
          try y.yield(endless(0))
        })
      onNewThread { _ = held.value.next() }
      onNewThread { _ = held.value.next() }
    }
    #expect(errorText(result).contains("weft: stack overflow in \"moved\""))
  }

  @Test func aNullPointerIsNoOverflow() async {
    for inside in [false, true] {
      let result = await #expect(
        processExitsWith: faultEnd, observing: [\.standardErrorContent]
      ) { [inside = inside as Bool] in
        let g = Generator<Int> { y in
          if inside { faultAtNull() }
          try y.yield(1)
        }
        _ = g.next()
        faultAtNull()
      }
      #expect(!errorText(result).contains("stack overflow in"))
    }
  }

  @Test func aWildPointerIntoAnothersGuardIsNoOverflow() async {
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) {
      // SAFETY: a stack is taken, and its guard is written to: that this faults is the point.
      var stack = unsafe weft_stack()
      _ = unsafe weft_stack_acquire(StackSize.default.bytes, &stack)
      let guarded = unsafe Held(stack.low! - 64)
      let g = Generator<Int> { y in
        // SAFETY: it is the point of the test that this faults.
        unsafe guarded.value.pointee = 1
        try y.yield(1)
      }
      _ = g.next()
    }
    #expect(!errorText(result).contains("stack overflow in"))
  }

  @Test func theGuardsOfBothKindsReachFromEndToEnd() async {
    // Each process touches one byte: first and last of the guard, and the first above it.
    for kind in ["madvise", "mprotect"] {
      for offset in [-65_536, -1] {
        await #expect(processExitsWith: faultEnd) {
          [kind = kind as String, offset = offset as Int] in
          try touch(offset, kind)
        }
      }
      await #expect(processExitsWith: .success) { [kind = kind as String] in try touch(0, kind) }
    }
  }

  @Test(.disabled(if: sanitizer != nil, "its handler ends the process first"))
  func aHandlerThatWasThereBeforeIsCalled() async {
    let result = await #expect(
      processExitsWith: .exitCode(43), observing: [\.standardErrorContent]
    ) {
      install(.leave)
      let g = Generator<Int>(name: "chained") { y in try y.yield(endless(0)) }
      _ = g.next()
    }
    #expect(errorText(result).contains("weft: stack overflow in \"chained\""))
    // Faults that are no overflow reach it too.
    await #expect(processExitsWith: .exitCode(43)) {
      install(.leave)
      _ = Generator<Int> { y in try y.yield(1) }.next()
      faultAtNull()
    }
  }

  @Test(.disabled(if: sanitizer != nil, "its handler ends the process first"))
  func aSecondFaultInsideAHandlerStillEndsTheProcess() async {
    await #expect(processExitsWith: .signal(SIGSEGV)) {
      install(.faultAgain)
      let g = Generator<Int> { y in try y.yield(endless(0)) }
      _ = g.next()
    }
  }

  @Test func aSignalFromOutsideEndsTheProcess() async {
    let result = await #expect(
      processExitsWith: faultEnd, observing: [\.standardErrorContent]
    ) {
      let g = Generator<Int> { y in
        kill(getpid(), SIGSEGV)
        while true { try y.yield(1) }
      }
      while true { _ = g.next() }
    }
    #expect(!errorText(result).contains("stack overflow in"))
  }

  @Test func aSignalThatWasIgnoredBeforeIsIgnoredWhenItIsSent() async {
    await #expect(processExitsWith: .exitCode(45)) {
      signal(SIGSEGV, SIG_IGN)
      _ = Generator<Int> { y in try y.yield(1) }.next()
      raise(SIGSEGV)
      exit(45)
    }
  }

  @Test(.disabled(if: sanitizer != nil, "its handler ends the process first"))
  func swiftsBacktracerStillPrints() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      restartOnce(with: "SWIFT_BACKTRACE", "enable=yes,color=no,interactive=no,output-to=stderr")
      let g = Generator<Int>(name: "traced") { y in try y.yield(endless(0)) }
      _ = g.next()
    }
    let text = errorText(result)
    #expect(text.contains("weft: stack overflow in \"traced\""))
    if text.contains("cannot find swift-backtrace") || !text.contains("Program crashed") {
      print("swift-backtrace is not available here: only the report was checked")
      return
    }
    #expect(text.contains("endless"))
  }
}

/// Makes a stack and touches a byte, `offset` from its lowest usable one.
private func touch(_ offset: Int, _ kind: String) throws {
  // SAFETY: nothing else runs in this process; that a touch of the guard faults is the point.
  unsafe setenv("WEFT_GUARD", kind, 1)
  var stack = unsafe weft_stack()
  guard unsafe weft_stack_acquire(StackSize.default.bytes, &stack) == WEFT_STACK_OK else {
    throw Oops()
  }
  unsafe stack.low![offset] = 1
}

/// What a handler of the test does.
private enum Ending { case leave, faultAgain }

/// Handles SIGSEGV from here on.
private func install(_ ending: Ending) {
  var action = sigaction()
  // SAFETY: both end the process, with what a handler may call. The old action is not asked for.
  switch ending {
  case .leave: unsafe action.__sigaction_handler.sa_sigaction = { _, _, _ in _exit(43) }
  case .faultAgain: unsafe action.__sigaction_handler.sa_sigaction = { _, _, _ in faultAtNull() }
  }
  action.sa_flags = SA_SIGINFO | SA_ONSTACK
  unsafe sigaction(SIGSEGV, &action, nil)
}
