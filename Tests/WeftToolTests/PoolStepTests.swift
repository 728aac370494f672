// PoolStepTests.swift - the pool step by step: rules, choices, replay, pictures, scripts.
import Foundation
import Testing

@testable import WeftTool

@Suite struct PoolModelTests {
  private func machine(_ upto: Int64 = 12, _ fibers: Int = 4, workers: Int = 2) throws
    -> PoolMachine
  {
    try PoolMachine(PoolPlan(upto: upto, fibers: fibers), workers: workers)
  }

  /// Chooses, and gives why not if refused.
  @discardableResult
  private func choose(_ fiber: Int, _ machine: PoolMachine) throws -> String? {
    try machine.handleOwn(.choose(fiber))
  }

  @Test func oneWorkerIsRoundRobin() throws {
    let machine = try machine(6, 2, workers: 1)
    var order: [Int] = []
    while !machine.isAtEnd {
      try machine.advance()
      switch machine.model.last {
      case .ran(let fiber, _, _), .ended(let fiber, _, _, _): order.append(fiber)
      default: break
      }
    }
    // Main waits for 1, which runs first; 1 and 2 take turns; at the end of 1, main goes next.
    #expect(order == [1, 2, 1, 2, 1, 2])
    #expect(machine.output == ["sum: 21"])
  }

  @Test(arguments: [1, 2, 4, 16]) func everyRunAddsUp(_ workers: Int) throws {
    for (upto, fibers) in [(0, 1), (1, 1), (9, 9), (50, 7), (99, 99)] {
      let machine = try machine(Int64(upto), fibers, workers: workers)
      try machine.go(to: .max)
      #expect(machine.isAtEnd && machine.isCorrect)
      #expect(machine.model.workers.allSatisfy { $0.current == nil && $0.queue.isEmpty })
    }
  }

  @Test func whoeverIsChosenNextTheSumIsTheSame() throws {
    var state: UInt64 = 7
    for _ in 0..<50 {
      let machine = try machine(30, 6, workers: 3)
      while !machine.isAtEnd {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let runnable = (0..<3).flatMap { machine.model.runnable(on: $0) }
        if state >> 60 == 0, machine.model.idleWorker != nil {
          _ = try machine.handleOwn(.steal)
        } else {
          let refusal = try choose(runnable[Int((state >> 33) % UInt64(runnable.count))], machine)
          #expect(refusal == nil)
        }
        // Nobody is lost, nobody is in two places.
        let queued = machine.model.workers.flatMap { $0.queue + ($0.current.map { [$0] } ?? []) }
        let alive = machine.model.fibers.filter {
          $0.state == .fresh || $0.state == .ready
        }.map(\.id)
        #expect(queued.sorted() == alive)
      }
      #expect(machine.isCorrect)
    }
  }

  @Test func yieldTakesTheHeadAndGoesToTheTail() throws {
    let machine = try machine(12, 4, workers: 1)
    try machine.go(to: 6)
    #expect(machine.model.last == .waits(after: [], on: 1, runsFirst: true))
    #expect(machine.model.workers[0].queue == [1, 2, 3, 4])
    try choose(3, machine)
    #expect(machine.model.workers[0] == PoolWorker(current: 3, queue: [1, 2, 4]))
    try machine.advance()
    #expect(machine.model.workers[0] == PoolWorker(current: 1, queue: [2, 4, 3]))
    #expect(machine.model.moved == 3)
  }

  @Test func joinLetsItsFiberPastTheQueue() throws {
    let machine = try machine(4, 2, workers: 1)
    try machine.go(to: 4)
    // Main waits for 1, but 2 is chosen, twice: it ends first.
    try choose(2, machine)
    try choose(2, machine)
    #expect(machine.model.last == .ended(2, worker: 0, number: 4, wakes: nil))
    try choose(1, machine)
    try choose(1, machine)
    #expect(machine.model.last == .ended(1, worker: 0, number: 3, wakes: .next))
    #expect(machine.model.workers[0].favoured == 0)
    try machine.advance()
    #expect(machine.model.last == .finished(after: [1, 2]))
    #expect(machine.isCorrect)
  }

  @Test func thiefTakesHalfFromTheHead() throws {
    let machine = try machine(20, 5, workers: 2)
    for _ in 0..<5 { try choose(0, machine) }
    #expect(machine.model.workers[0].queue == [1, 2, 3, 4, 5])
    #expect(try machine.handleOwn(.steal) == nil)
    #expect(
      machine.model.last == .stole(worker: 1, from: 0, fibers: [1, 2, 3], wasLone: false))
    #expect(machine.model.workers.map(\.queue) == [[4, 5], [1, 2, 3]])
    #expect(try machine.handleOwn(.steal) == "No worker is idle.")
  }

  @Test func loneFiberIsLeftAloneUnlessAsked() throws {
    let machine = try machine(4, 2, workers: 2)
    try machine.advance()
    #expect(machine.model.workers[0].queue == [1])
    #expect(machine.model.natural == .run(0))
    #expect(try machine.handleOwn(.steal) == nil)
    #expect(machine.model.last == .stole(worker: 1, from: 0, fibers: [1], wasLone: true))
  }

  @Test func refusalsSayWhy() throws {
    let machine = try machine()
    #expect(try choose(5, machine) == "There is no fiber 5.")
    #expect(try choose(1, machine) == "Main has not started fiber 1 yet.")
    try machine.advance()
    #expect(try choose(1, machine)?.contains("main holds") == true)
    #expect(
      try self.machine(4, 2, workers: 1).handleOwn(.steal) == "There is nobody to steal from.")
    #expect(machine.step == 2)
    try machine.go(to: .max)
    #expect(try choose(1, machine)?.contains("ended") == true)
  }

  @Test func replayGivesTheSameSteps() throws {
    let machine = try machine(20, 5, workers: 3)
    for choice in [StepKey.choose(0), .choose(0), .choose(0), .steal, .choose(2), .choose(1)] {
      _ = try machine.handleOwn(choice)
    }
    while !machine.isAtEnd { try machine.advance() }
    let steps = machine.step
    var backward = [machine.json.text]
    for step in (1..<steps).reversed() {
      try machine.go(to: step)
      #expect(machine.step == step)
      backward.append(machine.json.text)
    }
    // The same choices once more, from the beginning.
    let again = try self.machine(20, 5, workers: 3)
    #expect(again.json.text == backward.last)
    for choice in [StepKey.choose(0), .choose(0), .choose(0), .steal, .choose(2), .choose(1)] {
      _ = try again.handleOwn(choice)
      #expect(again.json.text == backward[steps - again.step])
    }
  }
}

@Suite struct PoolSessionTests {
  private func session(_ fibers: Int) throws -> StepSession<PoolMachine> {
    let plan = PoolPlan(upto: Int64(3 * fibers), fibers: fibers)
    let session = StepSession(stepping: try PoolMachine(plan, workers: 1))
    try session.machine.go(to: fibers + 2)
    return session
  }

  @Test func oneDigitChoosesOfNine() throws {
    let session = try session(9)
    try session.handle(.digit(7))
    #expect(session.machine.model.last == .ran(7, worker: 0, number: 7))
  }

  @Test func twoDigitsChooseOfMore() throws {
    let session = try session(20)
    try session.handle(.digit(1))
    #expect(session.typed == 1)
    try session.handle(.digit(3))
    #expect(session.machine.model.last == .ran(13, worker: 0, number: 13))
    try session.handle(.digit(2))
    try session.handle(.next)
    #expect(session.machine.model.last == .ran(2, worker: 0, number: 2))
    // A number that has no room for another digit is complete; Backspace takes one back.
    try session.handle(.digit(9))
    #expect(session.machine.model.last == .ran(9, worker: 0, number: 9))
    let step = session.machine.step
    try session.handle(.digit(1))
    try session.handle(.back)
    #expect(session.typed == 0 && session.machine.step == step)
  }

  @Test func refusalIsInTheFooter() throws {
    let session = try session(4)
    try session.handle(.steal)
    let size = ScreenSize(columns: 80, rows: 24)
    #expect(session.lines(glyphs: .ascii, size: size).last?.text.contains("nobody") == true)
    try session.handle(.next)
    #expect(session.lines(glyphs: .ascii, size: size).last?.text.hasPrefix("Enter next") == true)
  }

  @Test(arguments: [20, 33, 40, 60, 77, 78, 80, 100, 120, 200], [3, 10, 20, 24, 40, 60])
  func fitsTheScreen(_ columns: Int, _ rows: Int) throws {
    let size = ScreenSize(columns: columns, rows: rows)
    for (fibers, workers) in [(4, 2), (30, 16)] {
      let machine = try PoolMachine(PoolPlan(upto: 90, fibers: fibers), workers: workers)
      let session = StepSession(stepping: machine)
      while !machine.isAtEnd {
        for glyphs in [Glyphs.unicode, .ascii] {
          let lines = session.lines(glyphs: glyphs, size: size)
          #expect(lines.count <= rows)
          #expect(lines.allSatisfy { $0.width <= columns })
        }
        try machine.go(to: machine.step + 29)
      }
      #expect(session.helpLines(size).count <= rows)
    }
  }

  /// 80 by 24 is the screen that everybody has: all that matters must be on it.
  @Test func ordinaryScreenShowsEverything() throws {
    let machine = try PoolMachine(PoolPlan(upto: 12, fibers: 4), workers: 2)
    try machine.go(to: 13)
    let size = ScreenSize(columns: 80, rows: 23)
    let lines = machine.lines(glyphs: .unicode, size: size, footer: nil).map(\.text)
    let text = lines.joined(separator: "\n")
    for part in [
      "step 13", "Fiber 4 ran on worker 0: added 4, and yields.", "worker 0: runs fiber 4",
      "worker 1: between two fibers", "queue ►main 2", "added 15 = 1+5+9", "new, queue 1",
      "added so far: 21 of 78", "Enter: fiber 3 on worker 1", "runnable: main (0) 2 3 4",
    ] { #expect(text.contains(part), "\(part) is missing in\n\(text)") }
  }
}

@Suite struct PoolScriptTests {
  private func sentences(_ run: Outcome) -> [String] {
    run.lines.filter { $0.hasPrefix("Fiber ") || $0.hasPrefix("Main ") || $0.hasPrefix("Worker ") }
  }

  @Test func scriptChooses() throws {
    let run = try weft("demo", "pool", "--step", input: "\n\ns\n1\nb\n9\nx\nq\n")
    #expect(
      sentences(run).map { $0.split(separator: " ").prefix(2).joined(separator: " ") } == [
        "Main is", "Main spawned", "Main spawned", "Worker 1", "Fiber 1", "Worker 1",
      ])
    #expect(run.err.contains("There is no fiber 9."))
    #expect(run.err.contains("'x' is no key here"))
    #expect(run.status == 0)
    // The same script, the same steps.
    #expect(try weft("demo", "pool", "--step", input: "\n\ns\n1\nb\n9\nx\nq\n").out == run.out)
  }

  @Test(arguments: ["1", "2", "4"]) func emptyInputPrintsAllSteps(_ workers: String) throws {
    let run = try weft("demo", "pool", "--step", "--workers", workers)
    #expect(run.out.contains("the end, after step"))
    #expect(run.out.contains("sum: 78  N(N+1)/2 agrees"))
    #expect(run.err == "")
    #expect(run.status == 0)
  }

  @Test func numbersMeanNothingToOtherDemos() throws {
    let run = try weft("demo", "sum", "--step", input: "3\ns\nq\n")
    #expect(run.err.contains("'3' is no key here"))
    #expect(run.err.contains("'s' is no key here"))
  }

  @Test func helpIsHonest() throws {
    let run = try weft("demo", "pool", "--step", input: "?\n")
    #expect(run.out.split { $0.isWhitespace }.joined(separator: " ").contains("in one thread"))
  }

  @Test func narrowPlainAscii() throws {
    let run = try weft(
      "demo", "pool", "--step", environment: ["COLUMNS": "40", "LANG": "C"])
    #expect(run.lines.allSatisfy { $0.count <= 40 })
    #expect(run.out.utf8.allSatisfy { $0 < 0x80 })
  }

  @Test func jsonFollowsTheScript() throws {
    let run = try weft("demo", "pool", "--step", "--json", input: "0\n0\ns\nc\n")
    let steps = try run.out.split(separator: "\n").map { line in
      let value = try JSONSerialization.jsonObject(with: Data(line.utf8))
      return try #require(value as? [String: Any])
    }
    #expect(steps.allSatisfy { $0["schema"] as? String == "weft.demo.pool.step/1" })
    let kinds = steps.map { ($0["event"] as? [String: Any])?["kind"] as? String }
    #expect(kinds == ["begun", "spawned", "spawned", "stole", "finished"])
    let queues = (steps[3]["workers"] as? [[String: Any]])?.map { $0["queue"] as? [Int] }
    #expect(queues == [[2], [1]])
    #expect(steps.last?["sum"] as? Int == 78)
    #expect(steps.last?["finished"] as? Bool == true)
  }
}

@Suite(.serialized) struct PoolTerminalTests {
  @Test func keysChooseAndSteal() throws {
    let child = try TerminalChild("demo", "pool", "--step", "--workers", "2")
    #expect(try child.expect("? help").contains("the queues are empty"))
    try child.send("0")
    #expect(try child.expect("? help").contains("Main spawned fiber 1"))
    try child.send("2")
    try child.expect("Main has not started fiber 2 yet.")
    try child.send("s")
    #expect(try child.expect("? help").contains("the lone fiber 1"))
    try child.send("1")
    #expect(try child.expect("? help").contains("Fiber 1 ran on worker 1: added 1"))
    try child.send("b")
    #expect(try child.expect("? help").contains("the lone fiber 1"))
    try child.send("c")
    #expect(try child.expect("? help").contains("N(N+1)/2 agrees"))
    try child.send("q")
    #expect(child.finish() == 0)
    #expect(child.seen.hasSuffix("sum: 78\r\n"))
  }

  @Test func narrowTerminal() throws {
    let child = try TerminalChild("demo", "pool", "--step", columns: 40, rows: 12)
    try child.send("\n\n")
    let picture = try child.expect("spawned fiber 2")
    #expect(picture.split(whereSeparator: \.isNewline).allSatisfy { $0.count <= 40 })
    try child.send("q")
    #expect(child.finish() == 0)
  }
}
