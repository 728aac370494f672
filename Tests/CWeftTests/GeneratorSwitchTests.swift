// The inline switch inside Swift functions: the compiler has to keep alive over it whatever it
// needs, in debug and in release.

import CWeft
import Testing

/// A coroutine with no comfort: two frames and a heap stack.
@safe private final class Ping {
  // SAFETY: owned by this object; the frames stay where they are while either side is suspended.
  let inside = UnsafeMutablePointer<weft_frame>.allocate(capacity: 1)
  let outside = UnsafeMutablePointer<weft_frame>.allocate(capacity: 1)
  let stack = UnsafeMutableRawPointer.allocate(byteCount: 128 * 1024, alignment: 64)
  var numbers: [Int] = []
  var text = ""
  var finished = false

  init() {
    // SAFETY: fresh memory of this object; the top is as aligned as the bottom.
    unsafe inside.initialize(to: weft_frame())
    unsafe outside.initialize(to: weft_frame())
    unsafe weft_frame_prepare(inside, stack + 128 * 1024) { own, value in
      // The last switch leaves a frame that owns nothing.
      _ = unsafe weft_switch_inline(own, Ping.run(value!), nil)
      fatalError("A finished body was resumed.")
    }
  }

  deinit {
    // SAFETY: allocated in the initial values, and the body has been run to its end.
    precondition(finished, "A suspended body would leak what its stack refers to.")
    unsafe inside.deallocate()
    unsafe outside.deallocate()
    unsafe stack.deallocate()
  }

  /// Enters the body, or continues it.
  func resume() {
    // SAFETY: the body is suspended: only `suspend` leaves it. It gets this object as its value.
    let own = unsafe Unmanaged.passUnretained(self).toOpaque()
    _ = unsafe weft_switch_inline(outside, inside, own)
  }

  /// Leaves the body.
  func suspend() {
    // SAFETY: called on this object's stack, so `outside` is suspended in `resume`.
    _ = unsafe weft_switch_inline(inside, outside, nil)
  }

  /// Runs the body, and returns where to go then.
  static func run(_ value: UnsafeMutableRawPointer) -> UnsafeMutablePointer<weft_frame> {
    // SAFETY: `resume` passes the object, and its caller keeps it.
    let ping = unsafe Unmanaged<Ping>.fromOpaque(value).takeUnretainedValue()
    ping.countToAThousand()
    return unsafe ping.outside
  }

  /// A body whose frame keeps integers, doubles and references over each switch.
  func countToAThousand() {
    var squares = 0.0
    for number in 1...1000 {
      numbers.append(number)
      text += "x"
      squares += Double(number * number)
      suspend()
    }
    precondition(squares == 333_833_500, "A double was lost over a switch.")
    finished = true
  }
}

@Suite struct GeneratorSwitchTests {
  @Test func arraysStringsAndSumsSurviveInSwiftFrames() {
    let ping = Ping()
    var sum = 0
    var mean = 0.0
    var copies: [[Int]] = []
    while true {
      ping.resume()
      guard !ping.finished else { break }
      let last = ping.numbers[ping.numbers.count - 1]
      sum += last
      mean += Double(last) / 1000
      if last % 100 == 0 { copies.append(ping.numbers) }
    }
    #expect(sum == 500_500)
    #expect(abs(mean - 500.5) < 1e-9)
    #expect(copies.map(\.count) == Array(stride(from: 100, through: 1000, by: 100)))
    #expect(ping.text.count == 1000)
  }

  @Test func bodiesInterleave() {
    let pings = (0..<50).map { _ in Ping() }
    for round in 1...1000 {
      for ping in pings { ping.resume() }
      #expect(pings.allSatisfy { $0.numbers.count == round && !$0.finished })
    }
    for ping in pings { ping.resume() }
    #expect(pings.allSatisfy { $0.finished })
  }

  @Test func finishedBodyOwnsNothing() {
    weak var gone: Ping?
    do {
      let ping = Ping()
      gone = ping
      while !ping.finished { ping.resume() }
    }
    #expect(gone == nil)
  }
}
