import Glibc
import Testing
import Weft
import WeftTestSupport

/// Hazard 1: words that the Swift runtime keeps per thread belong to the code that runs.
@Suite struct ThreadWordsTests {
  enum Local { @TaskLocal static var value = 0 }

  /// Its properties are accessed under the runtime's exclusivity check.
  final class Cell: @unchecked Sendable {  // SAFETY: handed over by joins.
    var value = 0
    var other = 0
  }

  /// Yields while the access to its argument is open.
  @inline(never)
  static func increment(_ value: inout Int, _ y: inout Generator<Int>.Yielder) throws {
    value += 1
    try y.yield(value)
    value += 1
    try y.yield(value)
  }

  @Test func theWordIsFoundHere() throws {
    let info = RuntimeInfo.current
    #expect(info.threadWords == .found)
    onNewThread { #expect(RuntimeInfo.current.concurrencyWordsFound) }
    #expect(["x86-64", "aarch64"].contains(info.architecture))
    #expect(info.contextSwitch.hasPrefix(info.sanitizer == nil ? "inline" : "out of line"))
  }

  @Test func theConcurrencyWordsAreFoundLaterWhereABindingWasOpenAtFirst() {
    onNewThread {
      Local.$value.withValue(1) { _ = RuntimeInfo.current }
      #expect(RuntimeInfo.current.concurrencyWordsFound)
    }
  }

  @Test func anAccessHeldOverAYieldDoesNotMeetTheCallers() {
    scenarioOpenAccesses()
  }

  @Test func dropInsideAnAccessEndsIt() {
    scenarioDropInsideAnAccess()
  }

  @Test func accessesMoveBetweenThreads() {
    scenarioAccessesMove(rounds: count(200, sanitized: 10), bodies: count(100, sanitized: 20))
  }

  @Test func aCallerMayHoldAnAccessOverItsResume() throws {
    try scenarioCallerHoldsAnAccess()
  }

  @Test(arguments: 0..<4)
  func theFallbackDoesTheSame(_ scenario: Int) async {
    await #expect(processExitsWith: .success) { [scenario] in
      // SAFETY: nothing else runs in this process yet.
      unsafe setenv("WEFT_THREAD_WORDS", "fallback", 1)
      #expect(RuntimeInfo.current.threadWords == .fallback)
      #expect(RuntimeInfo.current.contextSwitch.hasPrefix("out of line"))
      switch scenario {
      case 0: scenarioOpenAccesses()
      case 1: scenarioDropInsideAnAccess()
      case 2: try scenarioCallerHoldsAnAccess()
      default: scenarioAccessesMove(rounds: 50, bodies: 20)
      }
    }
  }

  @Test func aRealConflictInABodyIsStillFound() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let cell = opaque(Cell())
      func modify(_ value: inout Int, _ y: inout Generator<Int>.Yielder) throws {
        value += 1
        try y.yield(1)
        opaque(cell).value += 1
        value += 1
      }
      let g = Generator<Int> { y in try modify(&cell.value, &y) }
      _ = g.next()
      _ = g.next()
    }
    #expect(errorText(result).contains("imultaneous accesses"))
  }

  @Test func theBodySeesTheTaskLocalsOfWhoeverResumes() throws {
    func check() {
      let g = Generator<Int> { y in while true { try y.yield(Local.value) } }
      #expect(g.next() == 0)
      Local.$value.withValue(1) { #expect(g.next() == 1) }
      Local.$value.withValue(2) {
        #expect(g.next() == 2)
        Local.$value.withValue(3) { #expect(g.next() == 3) }
        #expect(g.next() == 2)
      }
      #expect(g.next() == 0)
    }
    check()  // inside a task
    onNewThread { check() }
  }

  @Test func aBindingThatTheBodyClosesBeforeItYieldsIsFine() {
    onNewThread {
      let g = Generator<Int> { y in
        for i in 1...3 {
          let seen = Local.$value.withValue(i) { Local.value }
          try y.yield(seen)
          try y.yield(Local.value)
        }
      }
      #expect(Array(g) == [1, 0, 2, 0, 3, 0])
    }
  }

  @Test(.disabled(if: isRelease, "only debug builds check it"))
  func aYieldInsideItsOwnBindingStopsTheProcessAndIsNamed() async {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      onNewThread {
        let g = Generator<Int>(name: "leaky") { y in
          try Local.$value.withValue(1) { try y.yield(1) }
        }
        _ = g.next()
      }
    }
    #expect(errorText(result).contains("yielded inside a task-local `withValue` of its own"))
    #expect(
      errorText(result).contains("\"leaky\" (created at WeftContextTests/ThreadWordsTests.swift:"))
  }

  @Test func startedInOneTaskFinishedInAnother() async {
    // Situation: "freed pointer was not the last allocation".
    let cell = Cell()
    let held = Held(
      Generator<Int> { y in
        try Self.increment(&cell.value, &y)
        try y.yield(Local.value)
      })
    for i in 1...2 {
      await Task { Local.$value.withValue(i) { #expect(held.value.next() == i) } }.value
    }
    await Task.detached { Local.$value.withValue(9) { #expect(held.value.next() == 9) } }.value
    await Task.detached { #expect(held.value.next() == nil) }.value
    #expect(cell.value == 2)
  }

  @Test func theBodyRunsInTheTaskThatResumesIt() async {
    let held = Held(
      Generator<Bool> { y in while true { try y.yield(Task.isCancelled) } })
    let first = Task { held.value.next() }
    #expect(await first.value == false)
    let second = Task {
      // SAFETY: used inside the closure only.
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      return held.value.next()
    }
    #expect(await second.value == true)
    onNewThread { #expect(held.value.next() == false) }
  }
}

/// Whether this is an optimized build: its assertions are off.
let isRelease: Bool = {
  var release = true
  assert(
    {
      release = false
      return true
    }())
  return release
}()

typealias Cell = ThreadWordsTests.Cell

/// Two bodies and their caller hold accesses in every order of opening and closing.
func scenarioOpenAccesses() {
  let (a, b, mine) = (Cell(), Cell(), Cell())
  let g = Generator<Int> { y in
    try ThreadWordsTests.increment(&a.value, &y)
    try ThreadWordsTests.increment(&a.other, &y)
  }
  let h = Generator<Int> { y in try ThreadWordsTests.increment(&b.value, &y) }
  func modify(_ value: inout Int) {
    #expect(g.next() == 1)
    #expect(h.next() == 1)
    value += 1
    #expect(g.next() == 2)
    #expect(g.next() == 1)
  }
  modify(&mine.value)
  #expect(h.next() == 2)
  func again(_ value: inout Int) {
    #expect(h.next() == nil)
    value += 1
  }
  again(&mine.value)
  #expect(g.next() == 2)
  #expect(g.next() == nil)
  #expect(a.value == 2 && a.other == 2 && b.value == 2 && mine.value == 2)
}

/// A stack that goes while an access is open on it must take the access along.
func scenarioDropInsideAnAccess() {
  let cell = Cell()
  func once(_ step: Int) {
    let g = Generator<Int> { y in try ThreadWordsTests.increment(&cell.value, &y) }
    for _ in 0..<step { _ = g.next() }
  }
  for round in 0..<20 {
    once(round % 3)
    // Crashes, or reports a conflict, if the list still names the stack that is gone.
    cell.value += 1
    cell.other += 1
  }
  #expect(cell.other == 20)
}

/// Bodies that hold accesses go round among threads.
func scenarioAccessesMove(rounds: Int, bodies: Int) {
  let cells = (0..<bodies).map { _ in Cell() }
  let generators = cells.map { cell in
    Held(
      Generator<Int> { y in
        while true { try ThreadWordsTests.increment(&cell.value, &y) }
      })
  }
  // A queue of generators: whoever takes one resumes it and puts it back.
  let queue = Guarded(generators)
  onThreads(2) { _ in
    let mine = Cell()
    func step(_ value: inout Int) {
      guard let held = queue.withLock({ $0.popLast() }) else { return }
      _ = held.value.next()
      value += 1
      queue.withLock { $0.insert(held, at: 0) }
    }
    for _ in 0..<rounds * bodies { step(&mine.value) }
  }
  #expect(cells.reduce(0) { $0 + $1.value } == 2 * rounds * bodies)
}

/// `held.value.resume()` is itself an access that stays open while the body runs.
func scenarioCallerHoldsAnAccess() throws {
  let held = Held<Coroutine<Int, Int, Int>?>(nil)
  let cell = Cell()
  held.value = try Coroutine { y, first in
    var input = first
    func modify(_ value: inout Int) throws {
      for _ in 0..<3 {
        #expect(throws: CoroutineError.alreadyRunning) { _ = try held.value?.resume(0) }
        value += input
        input = try y.yield(value)
      }
    }
    try modify(&cell.value)
    return cell.value
  }
  for sum in 1...3 { #expect(try held.value?.resume(1).yielded == sum) }
  #expect(try held.value?.resume(0).returned == 3)
  held.value = nil
}
