import Glibc
import Testing
import Weft
import WeftTestSupport

/// Random trees of coroutines and generators that resume, yield, throw, cancel, drop and move each
/// other, until nothing is left: no object, no stack.
///
/// `WEFT_FUZZ_SEED=n` runs one seed, `WEFT_FUZZ_ROUNDS=n` that many from it on.
@Suite struct FuzzTests {
  @Test(arguments: [environmentNumber("WEFT_FUZZ_SEED") ?? 1, UInt64.random(in: 0...(.max >> 1))])
  func randomTreesLeaveNothingBehind(_ seed: UInt64) async {
    let rounds = environmentNumber("WEFT_FUZZ_ROUNDS") ?? UInt64(count(400, sanitized: 40))
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent], "from seed \(seed) on"
    ) { [seed = seed as UInt64, rounds = rounds as UInt64] in
      let stacks = StackPool.statistics.live
      for round in 0..<rounds {
        let seed = seed &+ round
        note("seed \(seed)\n")
        let forest = Forest(seed: seed)
        onNewThread { forest.grow() }
        guard forest.counter.live == 0, StackPool.statistics.live == stacks, forest.wrong == nil
        else {
          Issue.record(
            """
            seed \(seed): \(forest.counter.live) objects and \
            \(StackPool.statistics.live - stacks) stacks are left; \(forest.wrong ?? "")
            """)
          return
        }
      }
      note("done\n")
    }
    let text = errorText(result)
    if !text.hasSuffix("done\n") { Issue.record("the last words: \(text.suffix(2_000))") }
  }
}

/// Writes at once, so that a crash leaves the seed behind.
private func note(_ text: String) {
  var text = text
  // SAFETY: the bytes live as long as the call.
  _ = text.withUTF8 { unsafe write(2, $0.baseAddress, $0.count) }
}

private struct Loaded: Error { let object: Counted }

/// What travels up a tree, numbered by who yields it.
private enum Fruit {
  case object(Counted, Int)
  case child(Node, Int)
}

/// What all nodes of a tree share. One thread at a time runs a tree.
private final class Forest: @unchecked Sendable {  // SAFETY: handed over by joins.
  var random: SplitMix64
  let counter = LiveCounter()
  /// Steps that are left, so that every round ends.
  var budget = 600
  var wrong: String?

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }
  func chance(_ percent: Int) -> Bool { pick(0..<100) < percent }

  func grow() {
    var roots = (0..<3).map { _ in Node(self, depth: 0) }
    while budget > 0, !roots.isEmpty {
      budget -= 1
      let index = pick(0..<roots.count)
      if case .child(let node, _)? = roots[index].step() { roots.append(node) }
      if chance(5) { roots.remove(at: pick(0..<roots.count)) }
      if chance(3) { roots.append(Node(self, depth: 0)) }
    }
    roots = []
  }
}

/// What a node and its body know of each other, without keeping each other alive.
private final class Link {
  weak var node: Node?
  var sent = 0
}

private final class Node: @unchecked Sendable {  // SAFETY: as for the forest.
  let forest: Forest
  let link = Link()
  var coroutine: Coroutine<Int, Fruit, Counted>?
  var generator: Generator<Fruit>?
  var throwing: ThrowingGenerator<Fruit>?
  private var received = 0

  init(_ forest: Forest, depth: Int) {
    self.forest = forest
    let link = link
    link.node = self
    switch forest.pick(0..<3) {
    case 0:
      coroutine = try? Coroutine { y, first in
        if first != link.sent { forest.wrong = "the first input" }
        return try live(forest, link, depth, mayThrow: true) { fruit in try y.yield(fruit) }
      }
    case 1:
      generator = Generator { y in
        _ = try live(forest, link, depth, mayThrow: false) { fruit in
          try y.yield(fruit)
          return link.sent
        }
      }
    default:
      throwing = ThrowingGenerator { y in
        _ = try live(forest, link, depth, mayThrow: true) { fruit in
          try y.yield(fruit)
          return link.sent
        }
      }
    }
  }

  /// One resume, whatever the node is. Its numbers must come in order.
  func step() -> Fruit? {
    link.sent = forest.pick(0..<1_000_000)
    var fruit: Fruit?
    do {
      if coroutine != nil {
        if case .yielded(let value)? = try coroutine?.resume(link.sent) { fruit = value }
      } else if let generator {
        fruit = generator.next()
      } else if let throwing {
        fruit = try throwing.next()
      }
    } catch CoroutineError.finished {
      if coroutine?.isFinished != true { forest.wrong = "finished too early" }
    } catch CoroutineError.alreadyRunning {
      forest.wrong = "running though it had yielded"
    } catch {}
    switch fruit {
    case .object(_, let number)?, .child(_, let number)?:
      received += 1
      if number != received { forest.wrong = "number \(number) instead of \(received)" }
    case nil: break
    }
    return fruit
  }

  func cancel() {
    coroutine?.cancel()
    generator = nil
    throwing = nil
  }
}

/// The body of every node.
private func live(
  _ forest: Forest, _ link: Link, _ depth: Int, mayThrow: Bool, _ yield: (Fruit) throws -> Int
) throws -> Counted {
  let local = forest.counter.make()
  var children: [Node] = []
  var number = 0
  defer {
    withExtendedLifetime(local) {}
    // Also while it unwinds, a body may use other coroutines.
    if forest.chance(20), let child = children.last { _ = child.step() }
  }
  func hand(_ fruit: (Int) -> Fruit) throws {
    number += 1
    do {
      if try yield(fruit(number)) != link.sent { forest.wrong = "an input" }
    } catch {
      // Some bodies do not take no for an answer at once.
      for _ in 0..<forest.pick(0..<4) {
        _ = try? yield(.object(forest.counter.make(), 0))
      }
      if forest.chance(20), mayThrow { throw Loaded(object: forest.counter.make()) }
      throw error
    }
  }
  for _ in 0..<forest.pick(1..<30) {
    forest.budget -= 1
    if forest.budget <= 0 { break }
    let index = children.isEmpty ? 0 : forest.pick(0..<children.count)
    switch forest.pick(0..<100) {
    case 0..<35: try hand { .object(forest.counter.make(), $0) }
    case 35..<50: if depth < 8 { children.append(Node(forest, depth: depth + 1)) }
    case 90..<92: if mayThrow { throw Loaded(object: forest.counter.make()) }
    case 92..<94: return forest.counter.make()
    case 94..<96:
      try withLargeStack(.kibibytes(64)) { try hand { .object(forest.counter.make(), $0) } }
    case 96..<98:
      guard let node = link.node, node.coroutine != nil else { continue }
      do { _ = try node.coroutine?.resume(0) } catch CoroutineError.alreadyRunning { continue }
      forest.wrong = "a coroutine resumed itself"
    case _ where children.isEmpty: continue
    case 50..<75:
      if case .child(let node, _)? = children[index].step() { children.append(node) }
    case 75..<80: children.remove(at: index)
    case 80..<84: children[index].cancel()
    case 84..<87:
      let child = children.remove(at: index)
      try hand { .child(child, $0) }
    case 87..<90:
      let child = children[index]
      if case .child(let node, _)? = onNewThread({ child.step() }) { children.append(node) }
    default:
      // The last of the children goes on another thread.
      let held = Held(children.popLast())
      onNewThread { held.value = nil }
    }
  }
  return forest.counter.make()
}
