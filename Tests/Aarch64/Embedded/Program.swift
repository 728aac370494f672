// A generator over the inline switch, as Embedded Swift on aarch64: the compiler that builds the
// real library, for the other architecture, without needing its standard library there.

import CWeft
import Support

/// A suspended loop that hands out one number per resume.
@safe final class Numbers {
  // SAFETY: made and freed by this object; they stay where they are while a side is suspended.
  let inside = UnsafeMutablePointer<weft_frame>.allocate(capacity: 1)
  let outside = UnsafeMutablePointer<weft_frame>.allocate(capacity: 1)
  let count: Int
  var current = 0
  var seen: [Int] = []
  var halves: [Double] = []
  var finished = false

  init(count: Int) {
    self.count = count
    // SAFETY: fresh memory; the stack belongs to one object at a time.
    unsafe weft_frame_prepare(inside, stack_top()) { own, value in
      // The last switch leaves a frame that owns nothing.
      _ = unsafe weft_switch_inline(own, Numbers.run(value!), nil)
      exit(3)
    }
  }

  deinit {
    // SAFETY: allocated with the object, and nobody is suspended in them any more.
    unsafe inside.deallocate()
    unsafe outside.deallocate()
  }

  func next() -> Int? {
    // SAFETY: the body is suspended, or has not begun.
    _ = unsafe weft_switch_inline(outside, inside, Unmanaged.passUnretained(self).toOpaque())
    return finished ? nil : current
  }

  func yield(_ number: Int) {
    current = number
    // SAFETY: called by the body only, so `outside` is suspended in `next()`.
    _ = unsafe weft_switch_inline(inside, outside, nil)
  }

  /// Runs the body, and returns where to go then.
  static func run(_ value: UnsafeMutableRawPointer) -> UnsafeMutablePointer<weft_frame> {
    // SAFETY: `next()` passes the object, and its caller keeps it.
    let numbers = unsafe Unmanaged<Numbers>.fromOpaque(value).takeUnretainedValue()
    numbers.body()
    return unsafe numbers.outside
  }

  /// Ten doubles live over each switch here and in `main`: more than d8 ... d15 can hold, so that
  /// these registers are in use on both sides.
  func body() {
    var sums = Sums(scale: 0.5)
    for number in 1...count {
      seen.append(number)
      sums.add(Double(number))
      halves.append(Double(number) * 0.5)
      yield(number)
    }
    if !sums.isRight(count: count) { exit(4) }
    finished = true
  }
}

/// Ten running sums, number * scale * (1 ... 10).
struct Sums {
  let scale: Double
  var a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0, i = 0.0, j = 0.0

  @inline(__always) init(scale: Double) { self.scale = scale }

  @inline(__always) mutating func add(_ number: Double) {
    let x = number * scale
    a += x
    b += 2 * x
    c += 3 * x
    d += 4 * x
    e += 5 * x
    f += 6 * x
    g += 7 * x
    h += 8 * x
    i += 9 * x
    j += 10 * x
  }

  @inline(__always) func isRight(count: Int) -> Bool {
    let x = Double(count * (count + 1) / 2) * scale
    let first = a == x && b == 2 * x && c == 3 * x && d == 4 * x && e == 5 * x
    return first && f == 6 * x && g == 7 * x && h == 8 * x && i == 9 * x && j == 10 * x
  }
}

/// Runs a generator to its end; 0 if everything survived.
func check(count: Int) -> Int32 {
  let numbers = Numbers(count: count)
  var sums = Sums(scale: 0.25)
  var sum = 0
  var copies: [[Int]] = []
  while let number = numbers.next() {
    sum += number
    sums.add(Double(number))
    if number % 1000 == 0 { copies.append(numbers.seen) }
  }
  if sum != count * (count + 1) / 2 { return 5 }
  if !sums.isRight(count: count) { return 6 }
  if copies.count != count / 1000 { return 7 }
  for (index, copy) in copies.enumerated() where copy.count != (index + 1) * 1000 { return 8 }
  if numbers.halves[count - 1] != Double(count) / 2 { return 9 }
  return 0
}

@main struct Program {
  static func main() {
    for _ in 0..<3 {
      let status = check(count: 5000)
      if status != 0 { exit(status) }
    }
    // Every array and object has been released, though frames were left and entered by switches.
    if bytes_in_use() != 0 { exit(10) }
    let text: StaticString = "ok\n"
    // SAFETY: a literal's bytes.
    _ = unsafe write(1, text.utf8Start, text.utf8CodeUnitCount)
  }
}
