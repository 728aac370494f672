import Glibc
import Testing
import Weft
import WeftTestSupport

private typealias Backtrace =
  @convention(c) (UnsafeMutablePointer<UnsafeMutableRawPointer?>, Int32) -> Int32

/// Frames from here to the end of the stack, at most `room`.
@inline(never)
private func frameCount(room: Int) -> Int {
  // SAFETY: backtrace() has this type, and fills no more than the room that is stated. The
  // importer does not know its header.
  guard let symbol = unsafe dlsym(nil, "backtrace") else { return -1 }
  let backtrace = unsafe unsafeBitCast(symbol, to: Backtrace.self)
  var addresses = unsafe [UnsafeMutableRawPointer?](repeating: nil, count: room)
  return Int(unsafe backtrace(&addresses, Int32(room)))
}

@inline(never)
private func dive(_ depth: Int, _ y: inout Generator<Int>.Yielder) throws -> Int {
  if depth == 0 {
    try y.yield(frameCount(room: 1_000))
    return 0
  }
  return try dive(depth - 1, &y) &+ blackHole(depth)
}

/// Hazard 8: the first frame of a coroutine has an undefined return address. Without it unwinders
/// walk off the stack.
@Suite struct BacktraceTests {
  @Test func itEndsAtTheFirstFrameOfACoroutine() {
    func measure(_ depth: Int) -> Int {
      Generator<Int> { y in _ = try dive(depth, &y) }.next() ?? -1
    }
    let shallow = measure(0)
    #expect((3...40).contains(shallow))
    #expect(measure(50) == shallow + 50)
    #expect(withLargeStack(.default) { frameCount(room: 1_000) } < 60)
  }

  @Test func itEndsInASecondResumeAndOnAnotherThread() {
    let held = Held(
      Generator<Int> { y in while true { try y.yield(frameCount(room: 1_000)) } })
    let first = held.value.next()
    #expect(held.value.next() == first)
    onNewThread { #expect(held.value.next() == first) }
  }

  @Test func aTrapInsideACoroutineIsReportedAsAnywhere() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let g = Generator<Int> { y in
        try y.yield(1)
        fatalError("inside a coroutine")
      }
      _ = g.next()
      _ = g.next()
    }
    #expect(errorText(result).contains("inside a coroutine"))
    #expect(!errorText(result).contains("stack overflow in"))
  }

  @Test(.disabled(if: sanitizer != nil, "its handler ends the process first"))
  func swiftsBacktracerShowsTheFramesOfACoroutine() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      restartOnce(with: "SWIFT_BACKTRACE", "enable=yes,color=no,interactive=no,output-to=stderr")
      let g = Generator<Int> { y in
        _ = try dive(5, &y)
        fatalError("inside a coroutine")
      }
      _ = g.next()
      _ = g.next()
    }
    let text = errorText(result)
    #expect(text.contains("inside a coroutine"))
    guard text.contains("Program crashed") else {
      print("swift-backtrace is not available here")
      return
    }
    #expect(text.contains("coroutine_main"))
  }
}
