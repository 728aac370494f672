// PoolModel.swift - the run queues of a pool, small enough to watch.
//
// The bodies are those of `weft demo pool`, run as coroutines; what the scheduler would do between
// two of their steps is done here, one step at a time and in one thread. The rules are those of
// WeftRuntime:
//
//   queue   first in, first out. A yield takes the head and goes to the tail; with nobody else in
//           the queue it returns at once.
//   spawn   to the tail of the queue of the worker that makes the fiber.
//   join    parks; if the fiber that is waited for is in the worker's own queue, it runs next.
//   end     a fiber that waited for it runs next, if it may run on that worker; else it goes to the
//           tail of its own worker's queue. At most 32 in a row go past the queue like that.
//   steal   an idle worker takes half of a queue, from the head, 32 at most. It leaves a lone fiber
//           to its worker, for some microseconds at least. Main stays on worker 0.
import Weft

/// What a body does that the scheduler has to know of.
enum PoolAct: Equatable {
  case spawns(Int)
  case joins(Int)
  case yields(sum: Int64)
}

/// A fiber: its coroutine, and what is known about it.
final class PoolFiber {
  /// 0 is main.
  let id: Int
  private var body: Coroutine<Int64, PoolAct, Int64>
  /// What it has added so far, or has been handed by joins.
  var numbers: [Int64] = []
  var sum: Int64 = 0
  var state = PoolFiberState.fresh
  /// What its body returned.
  private(set) var result: Int64?

  init(_ id: Int, _ plan: PoolPlan) throws {
    self.id = id
    // Each closure is a body of PoolSum whose calls of the scheduler stop it.
    body =
      if id == 0 {
        try Coroutine(name: "main fiber", stackSize: .kibibytes(64)) { y, _ in
          try PoolSum.main(
            plan,
            spawn: { fiber throws(CancellationError) in
              _ = try y.yield(.spawns(fiber))
              return fiber
            },
            join: { fiber throws(CancellationError) in try y.yield(.joins(fiber)) })
        }
      } else {
        try Coroutine(name: "fiber", stackSize: .kibibytes(64)) { y, _ in
          try PoolSum.add(plan.share(id)) { sum throws(CancellationError) in
            _ = try y.yield(.yields(sum: sum))
          }
        }
      }
  }

  /// Runs the body on to what it does next; nil if it has ended, with its result in `result`.
  func resume(_ input: Int64) throws -> PoolAct? {
    switch try body.resume(input) {
    case .yielded(let act): return act
    case .returned(let value):
      state = .ended
      result = value
      return nil
    }
  }

  /// Its sum is this now: the difference is the number that it has just added.
  func note(_ newSum: Int64) {
    if newSum != sum { numbers.append(newSum - sum) }
    sum = newSum
  }
}

/// Where a fiber is.
enum PoolFiberState: Equatable {
  /// Made, in a queue, and has not run.
  case fresh
  /// In a queue or on a worker, between two additions.
  case ready
  /// Waits for the end of another.
  case joining(Int)
  case ended
}

/// A worker: what it runs and what waits.
struct PoolWorker: Equatable {
  /// The fiber that is on it: it stands in a yield or, if it is main, between two calls.
  var current: Int?
  /// Head first.
  var queue: [Int] = []
  /// One in the queue that goes past the others, because of a join.
  var favoured: Int?
  /// How many have gone past the queue in a row.
  var direct = 0
}

/// What a step did.
enum PoolEvent: Equatable {
  /// `run` has put main onto worker 0.
  case begun
  case spawned(Int)
  /// Added a number and stands in its yield.
  case ran(Int, worker: Int, number: Int64)
  case ended(Int, worker: Int, number: Int64?, wakes: Wake?)
  /// Main has joined some that had ended, and waits for another.
  case waits(after: [Int], on: Int, runsFirst: Bool)
  case stole(worker: Int, from: Int, fibers: [Int], wasLone: Bool)
  case finished(after: [Int])

  /// How main goes on once the fiber that it waits for has ended.
  enum Wake: Equatable { case next, queued }
}

/// A step that can be asked for.
enum PoolChoice: Equatable {
  case run(Int)
  case steal(Int)
}

/// The pool.
final class PoolModel {
  let plan: PoolPlan
  private(set) var workers: [PoolWorker]
  private(set) var fibers: [PoolFiber] = []
  private(set) var last = PoolEvent.begun
  /// The fiber that went to the tail when the last one took its worker.
  private(set) var moved: Int?
  private(set) var result: Int64?
  /// Whose turn it is, when nobody chooses.
  private var turn = 0

  /// How many may go past a queue in a row, as in the runtime.
  static let directMost = 32
  static let stolenMost = 32

  init(_ plan: PoolPlan, workers count: Int) throws {
    self.plan = plan
    workers = Array(repeating: PoolWorker(), count: count)
    fibers = [try PoolFiber(0, plan)]
    workers[0].current = 0
  }

  // MARK: - What can be done

  /// Main does not yield: until it waits, nobody else runs on its worker.
  func isHeld(_ worker: Int) -> Bool { workers[worker].current == 0 }

  /// The fibers that a worker could run now, the scheduler's choice first.
  func runnable(on worker: Int) -> [Int] {
    let it = workers[worker]
    if isHeld(worker) { return [0] }
    let others = it.queue.filter { $0 != it.favoured }
    return (it.favoured.map { [$0] } ?? []) + others + (it.current.map { [$0] } ?? [])
  }

  func isIdle(_ worker: Int) -> Bool {
    workers[worker].current == nil && workers[worker].queue.isEmpty
  }

  private func stealable(_ worker: Int) -> [Int] { workers[worker].queue.filter { $0 != 0 } }

  /// Whom an idle worker would steal from. A real one starts to look at a random worker.
  func victim(of thief: Int, evenLone: Bool) -> Int? {
    let others = (1..<max(1, workers.count)).map { (thief + $0) % workers.count }
    if let rich = others.first(where: { stealable($0).count >= 2 }) { return rich }
    return evenLone ? others.first { !stealable($0).isEmpty } : nil
  }

  /// What happens if nobody chooses: the workers take turns.
  var natural: PoolChoice? {
    guard result == nil else { return nil }
    for offset in 0..<workers.count {
      let worker = (turn + offset) % workers.count
      if let first = runnable(on: worker).first { return .run(first) }
      if isIdle(worker), victim(of: worker, evenLone: false) != nil { return .steal(worker) }
    }
    return nil
  }

  /// The next idle worker in turn.
  var idleWorker: Int? {
    let order = (0..<workers.count).map { (turn + $0) % workers.count }
    return order.first { isIdle($0) && victim(of: $0, evenLone: false) != nil }
      ?? order.first { isIdle($0) }
  }

  /// The worker that a fiber is on, or in whose queue it is.
  func place(of fiber: Int) -> Int? {
    workers.indices.first { workers[$0].current == fiber || workers[$0].queue.contains(fiber) }
  }

  // MARK: - Doing it

  func run(_ fiber: Int) throws {
    guard let worker = place(of: fiber), runnable(on: worker).contains(fiber) else { return }
    moved = nil
    turn = (worker + 1) % workers.count
    if workers[worker].current != fiber {
      let isDirect = workers[worker].favoured == fiber
      workers[worker].queue.removeAll { $0 == fiber }
      // As the runtime does, the head is taken before the one that leaves goes to the tail.
      if let leaving = workers[worker].current {
        workers[worker].queue.append(leaving)
        moved = leaving
      }
      workers[worker].direct = isDirect ? workers[worker].direct + 1 : 0
      workers[worker].favoured = nil
      workers[worker].current = fiber
    }
    try fiber == 0 ? runMain() : runAdder(fibers[fiber], on: worker)
  }

  private func runAdder(_ fiber: PoolFiber, on worker: Int) throws {
    let before = fiber.sum
    if case .yields(let sum)? = try fiber.resume(0) {
      fiber.state = .ready
      fiber.note(sum)
      last = .ran(fiber.id, worker: worker, number: sum - before)
      return
    }
    workers[worker].current = nil
    fiber.note(fiber.result ?? before)
    let number = fiber.sum == before ? nil : fiber.sum - before
    last = .ended(fiber.id, worker: worker, number: number, wakes: wakeMain(fiber.id, on: worker))
  }

  /// Makes main runnable again, if it waits for this fiber.
  private func wakeMain(_ ended: Int, on worker: Int) -> PoolEvent.Wake? {
    guard fibers[0].state == .joining(ended) else { return nil }
    fibers[0].state = .ready
    // It is pinned: from another worker it goes home by mail.
    if worker == 0, workers[0].direct < PoolModel.directMost {
      workers[0].queue.insert(0, at: 0)
      workers[0].favoured = 0
      return .next
    }
    workers[0].queue.append(0)
    return .queued
  }

  private func runMain() throws {
    let main = fibers[0]
    var joined: [Int] = []
    if case .joins(let fiber)? = pending, fibers[fiber].state == .ended { joined.append(fiber) }
    var act = try main.resume(handed)
    // A join of a fiber that has ended returns at once.
    while case .joins(let fiber)? = act, fibers[fiber].state == .ended {
      joined.append(fiber)
      pending = act
      act = try main.resume(handed)
    }
    for fiber in joined { main.note(main.sum + fibers[fiber].sum) }
    pending = act
    switch act {
    case .spawns(let id)?:
      fibers.append(try PoolFiber(id, plan))
      workers[0].queue.append(id)
      main.state = .ready
      last = .spawned(id)
    case .joins(let id)?:
      main.state = .joining(id)
      workers[0].current = nil
      let runsFirst =
        workers[0].queue.contains(id) && workers[0].direct < PoolModel.directMost
      workers[0].favoured = runsFirst ? id : nil
      last = .waits(after: joined, on: id, runsFirst: runsFirst)
    default:
      workers[0].current = nil
      result = main.result
      last = .finished(after: joined)
    }
  }

  /// What main does at the moment, and what it is handed when that is done.
  private var pending: PoolAct?
  private var handed: Int64 {
    if case .joins(let fiber)? = pending { return fibers[fiber].sum }
    return 0
  }

  /// Lets an idle worker steal, even a lone fiber.
  func steal(_ thief: Int) {
    guard isIdle(thief), let victim = victim(of: thief, evenLone: true) else { return }
    moved = nil
    turn = (thief + 1) % workers.count
    let all = stealable(victim)
    let taken = Array(all.prefix(min((all.count + 1) / 2, PoolModel.stolenMost)))
    workers[victim].queue.removeAll { taken.contains($0) }
    if let favoured = workers[victim].favoured, taken.contains(favoured) {
      workers[victim].favoured = nil
    }
    workers[thief].queue += taken
    last = .stole(worker: thief, from: victim, fibers: taken, wasLone: all.count == 1)
  }
}
