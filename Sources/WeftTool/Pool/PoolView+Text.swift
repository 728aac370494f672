// PoolView+Text.swift - a step of the pool as a sentence, and as JSON.

extension PoolView {
  /// What the last step did.
  var sentence: String {
    let moved =
      machine.model.moved.map {
        " \(PoolMachine.name($0).capitalizedFirst) went to the tail of the queue."
      } ?? ""
    return PoolView.text(machine.model.last) + moved
  }

  private static func text(_ event: PoolEvent) -> String {
    switch event {
    case .begun: return "Main is on worker 0; the queues are empty."
    case .spawned(let fiber):
      return "Main spawned fiber \(fiber): to the tail of the queue of worker 0."
    case .ran(let fiber, let worker, let number):
      return "Fiber \(fiber) ran on worker \(worker): added \(number), and yields."
    case .ended(let fiber, let worker, let number, let wakes):
      let added = number.map { "added \($0), and " } ?? ""
      let woken =
        switch wakes {
        case .next: " Main waited for it and goes next, past the queue."
        case .queued: " Main waited for it and goes to the tail of the queue of worker 0."
        case nil: ""
        }
      return "Fiber \(fiber) ran on worker \(worker): \(added)ended.\(woken)"
    case .waits(let after, let fiber, let runsFirst):
      let how =
        runsFirst ? "; it is in this worker's queue, and goes next." : ", which is elsewhere."
      return joined(after) + "Main waits for fiber \(fiber)" + how
    case .stole(let worker, let victim, let fibers, let wasLone):
      let names = fibers.map { "\($0)" }.joined(separator: ", ")
      let what =
        wasLone
        ? "the lone fiber \(names), which it would leave alone for some microseconds"
        : "\(fibers.count == 1 ? "fiber" : "fibers") \(names), half of it, from the head"
      return "Worker \(worker) was idle and stole from the queue of worker \(victim): \(what)."
    case .finished(let after): return joined(after) + "Main has them all and returns."
    }
  }

  private static func joined(_ fibers: [Int]) -> String {
    guard !fibers.isEmpty else { return "" }
    let names = fibers.map { "\($0)" }.joined(separator: ", ")
    return "Main joined \(fibers.count == 1 ? "fiber" : "fibers") \(names). "
  }

  // MARK: - JSON

  var json: JSON {
    let model = machine.model
    let runnable = model.workers.indices.flatMap { model.runnable(on: $0) }
    return [
      "schema": "weft.demo.pool.step/1", "step": .int(machine.step),
      "finished": .bool(machine.isAtEnd), "upto": .int(machine.plan.upto),
      "event": PoolView.json(model.last), "text": .string(sentence),
      "movedToTail": .optional(model.moved),
      "workers": .array(
        model.workers.enumerated().map { index, worker in
          [
            "worker": .int(index), "runs": .optional(worker.current),
            "queue": .array(worker.queue.map { .int($0) }),
            "goesPastTheQueue": .optional(worker.favoured),
          ]
        }),
      "fibers": .array(model.fibers.map(PoolView.json)),
      "runnable": machine.isAtEnd ? [] : .array(runnable.map { .int($0) }),
      "next": PoolView.json(model.natural),
      "sum": model.result.map { .int($0) } ?? .null, "expected": .int(machine.plan.expected),
    ]
  }

  private static func json(_ choice: PoolChoice?) -> JSON {
    switch choice {
    case .run(let fiber): ["runs": .int(fiber)]
    case .steal(let worker): ["steals": .int(worker)]
    case nil: .null
    }
  }

  private static func json(_ fiber: PoolFiber) -> JSON {
    let state: (String, Int?) =
      switch fiber.state {
      case .fresh: ("new", nil)
      case .ready: ("ready", nil)
      case .joining(let other): ("joining", other)
      case .ended: ("ended", nil)
      }
    return [
      "fiber": .int(fiber.id), "state": .string(state.0), "waitsFor": .optional(state.1),
      "numbers": .array(fiber.numbers.map { .int($0) }), "sum": .int(fiber.sum),
    ]
  }

  private static func json(_ event: PoolEvent) -> JSON {
    switch event {
    case .begun: ["kind": "begun", "worker": 0, "fiber": 0]
    case .spawned(let fiber): ["kind": "spawned", "worker": 0, "fiber": .int(fiber)]
    case .ran(let fiber, let worker, let number):
      ["kind": "ran", "worker": .int(worker), "fiber": .int(fiber), "added": .int(number)]
    case .ended(let fiber, let worker, let number, let wakes):
      [
        "kind": "ended", "worker": .int(worker), "fiber": .int(fiber),
        "added": number.map { .int($0) } ?? .null, "wakesMain": .bool(wakes != nil),
      ]
    case .waits(let after, let fiber, _):
      [
        "kind": "waits", "worker": 0, "fiber": 0, "waitsFor": .int(fiber),
        "joined": .array(after.map { .int($0) }),
      ]
    case .stole(let worker, let victim, let fibers, _):
      [
        "kind": "stole", "worker": .int(worker), "from": .int(victim),
        "fibers": .array(fibers.map { .int($0) }),
      ]
    case .finished(let after):
      ["kind": "finished", "worker": 0, "fiber": 0, "joined": .array(after.map { .int($0) })]
    }
  }
}
