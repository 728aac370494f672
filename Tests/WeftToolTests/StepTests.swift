// StepTests.swift - the stepper without a terminal. One test at a time: the C programs share state.
import Foundation
import Testing

@testable import WeftTool

/// The suites that step the C programs within this process.
@Suite(.serialized) struct InProcessTests {
  @Suite struct MachineTests {
    private func snapshots(_ program: Program) throws -> [Snapshot] {
      let machine = try Machine(program)
      var all = [machine.snapshot()]
      while !machine.isAtEnd {
        machine.advance()
        all.append(machine.snapshot())
      }
      return all
    }

    @Test func swapGoesRound() throws {
      let all = try snapshots(.swap)
      #expect(all.map(\.from) == [0, 1, 2, 1, 0])
      #expect(all.map(\.to) == [1, 2, 1, 0, nil])
      #expect(all.map(\.output.count) == [0, 1, 2, 3, 4])
      #expect(all.last?.output == ["routine()", "routine2()", "routine() end", "main routine"])
    }

    @Test func sourceLinesAreThoseOfTheSwitches() throws {
      let all = try snapshots(.swap)
      let lines = SourceFile.swap.lines
      // Before it is entered a side stands at its first statement; later in a switch.
      #expect(lines[all[0].shown[0].line - 1].contains("say(\"routine()\")"))
      #expect(lines[all[1].shown[0].line - 1].contains("SWAP(routine, routine2)"))
      #expect(lines[all[1].shown[1].line - 1].contains("say(\"routine2()\")"))
      #expect(lines[all[2].shown[1].line - 1].contains("SWAP(routine2, routine)"))
      #expect(lines[all[3].shown[0].line - 1].contains("SWAP(routine, main)"))
    }

    @Test func stacksHoldWhatTheSwitchPushed() throws {
      for snapshot in try snapshots(.sum).dropLast() {
        for image in snapshot.shown {
          #expect(image.stackPointer > image.limit && image.stackPointer < image.top)
          #expect(image.limit - image.guardStart == 65_536)
          #expect(image.stackPointer.isMultiple(of: 8))
          #expect(image.returnsTo.function == image.name)
          #expect((image.returnsTo.offset == 0) == !image.hasBegun)
          let words = image.registers.map(\.word.address)
          #expect(words == words.indices.map { image.stackPointer + 8 * UInt64($0) })
        }
      }
    }

    @Test func counterAndSumAreFound() throws {
      let leaving = try snapshots(.sum).filter { $0.from == 1 && $0.to == 2 }
      #expect(leaving.map { $0.shown[0].counter?.value } == (0...9).map { Int64($0) })
      #expect(leaving.map { $0.shown[0].sum?.value } == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45])
      for image in leaving.map({ $0.shown[0] }) {
        switch image.counter?.place {
        case .register(let name):
          let register = image.registers.first { $0.name == name }
          #expect(register?.word.value == image.counter.map { UInt64($0.value) })
        case .memory(let address):
          #expect(HostFacts.isDebugBuild)
          #expect(address > image.stackPointer && address < image.top)
        case nil: Issue.record("no counter")
        }
      }
    }

    /// What the article is about: in an optimised build the counter is in a register that the
    /// switch keeps.
    @Test(.enabled(if: !HostFacts.isDebugBuild)) func releaseCounterIsInARegister() throws {
      for program in [Program.sum, .deal(upto: 10, coroutines: 2)] {
        guard case .register = try Locations.find(in: program).counter else {
          Issue.record("the counter is in memory")
          continue
        }
      }
    }

    @Test func dealtNumbersGoRound() throws {
      let all = try snapshots(.deal(upto: 7, coroutines: 3))
      // Main to 1; seven additions, each with a switch; three ends; main again.
      #expect(all.map(\.from) == [0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 0])
      let adding = all[1...7].map { snapshot in snapshot.image(of: snapshot.from)?.counter?.value }
      #expect(adding == [1, 2, 3, 4, 5, 6, 7])
      #expect(all.last?.output == ["sum: 28"])
    }

    @Test(arguments: [Program.deal(upto: 0, coroutines: 1), .deal(upto: 3, coroutines: 1)])
    func oneCoroutineSwitchesToItself(_ program: Program) throws {
      let all = try snapshots(program)
      #expect(all.last?.output == [program == .deal(upto: 0, coroutines: 1) ? "sum: 0" : "sum: 6"])
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/maps")))
    func guardsAreReal() throws {
      let machine = try Machine(.swap)
      let maps = fileLines("/proc/self/maps")
      for image in machine.snapshot().shown {
        // The range that starts at the guard may not be touched, the one after it may.
        let start = hex(image.guardStart)
        #expect(maps.contains { $0.hasPrefix(start) && $0.contains(" ---p ") })
        #expect(maps.contains { $0.hasPrefix(hex(image.limit)) && $0.contains(" rw-p ") })
      }
    }

    @Test func replayGivesTheSameSteps() throws {
      let machine = try Machine(.sum)
      var forward = [machine.snapshot()]
      while !machine.isAtEnd {
        machine.advance()
        forward.append(machine.snapshot())
      }
      for step in forward.indices.reversed() {
        try machine.go(to: step + 1)
        #expect(machine.snapshot() == forward[step])
      }
    }
  }

  @Suite struct SessionTests {
    @Test func keysDoWhatTheySay() throws {
      let session = try StepSession(.sum)
      #expect(session.machine.step == 1)
      try session.handle(.back)
      #expect(session.machine.step == 1)
      try session.handle(.next)
      try session.handle(.next)
      #expect(session.machine.step == 3)
      try session.handle(.back)
      #expect(session.machine.step == 2)
      try session.handle(.help)
      #expect(session.showsHelp)
      try session.handle(.next)
      #expect(!session.showsHelp && session.machine.step == 2)
      try session.handle(.runOn)
      #expect(session.machine.isAtEnd && session.machine.step == 23 && !session.isOver)
      try session.handle(.back)
      #expect(session.machine.step == 22)
      try session.handle(.runOn)
      try session.handle(.next)
      #expect(session.isOver)
    }

    @Test func quitEndsIt() throws {
      let session = try StepSession(.swap)
      try session.handle(.quit)
      #expect(session.isOver)
    }

    @Test(arguments: [
      ("\n", StepKey.next), (" ", .next), ("b", .back), ("c", .runOn), ("q", .quit), ("?", .help),
      ("\u{1B}[C", .next), ("\u{1B}[D", .back), ("\u{4}", .quit), ("\u{7F}", .back),
    ])
    func bytesAreKeys(_ text: String, _ key: StepKey) {
      #expect(StepKey(bytes: Array(text.utf8)) == key)
    }

    @Test func otherBytesAreNone() {
      #expect(StepKey(bytes: Array("x".utf8)) == nil)
      #expect(StepKey(bytes: Array("\u{1B}[A".utf8)) == nil)
      #expect(StepKey(line: "-1") == nil)
      #expect(StepKey(line: "xyz") == nil)
      #expect(StepKey(line: "  ") == .next)
      #expect(StepKey(line: " b ") == .back)
    }
  }

  @Suite struct ViewTests {
    /// Every screen from tiny to huge, every step: nothing is wider or higher than the screen.
    @Test(arguments: [20, 33, 40, 60, 77, 78, 80, 100, 120, 200], [3, 10, 20, 24, 40, 60])
    func fitsTheScreen(_ columns: Int, _ rows: Int) throws {
      let session = try StepSession(.sum)
      let size = ScreenSize(columns: columns, rows: rows)
      for glyphs in [Glyphs.unicode, .ascii] {
        try session.machine.go(to: 1)
        for _ in 0...3 {
          let lines = session.lines(glyphs: glyphs, size: size)
          #expect(lines.count <= rows)
          #expect(lines.allSatisfy { $0.width <= columns })
          #expect(lines.last?.text.hasPrefix("Enter") == true)
          session.machine.advance()
        }
      }
      #expect(session.helpLines(size).count <= rows)
    }

    private func text(_ columns: Int, _ rows: Int?) throws -> [String] {
      let session = try StepSession(.sum)
      try session.machine.go(to: 4)
      let view = session.view(glyphs: .unicode, size: ScreenSize(columns: columns, rows: rows))
      return view.lines().map { $0.rendered(color: false) }
    }

    @Test func boxesStandBesideEachOtherWhereThereIsRoom() throws {
      let wide = try text(120, nil)
      #expect(
        wide.contains { $0.contains("─ routine: leaves") && $0.contains("─ routine2: goes on") })
      let narrow = try text(40, nil)
      #expect(narrow.contains { $0.contains("─ routine: leaves") })
      #expect(narrow.contains { $0.contains("─ routine2: goes on") })
      #expect(!narrow.contains { $0.contains("routine: leaves") && $0.contains("routine2") })
    }

    /// 80 by 24 is the screen that everybody has: all that matters must be on it.
    @Test func ordinaryScreenShowsEverything() throws {
      let lines = try text(80, 23).joined(separator: "\n")
      for part in [
        "switch 4 of 22", "routine: leaves", "routine2: goes on", "ret  routine+0x", "guard 64 KiB",
        "rsp = ", "SWAP(routine, routine2)", "push save", "load pop ret", "i = 1", "sum = 1",
        "printed: ", HostFacts.isDebugBuild ? "-c release" : "callee-saved",
      ] where part != "rsp = " || StackReader.registerNames.contains("rbx") {
        #expect(lines.contains(part), "\(part) is missing in\n\(lines)")
      }
    }

    /// Even the smallest ordinary window shows the stack that goes on, and where it returns to.
    @Test func smallScreenShowsOneStack() throws {
      for program in [Program.sum, .deal(upto: 9, coroutines: 3)] {
        let session = try StepSession(program)
        try session.machine.go(to: 5)
        let size = ScreenSize(columns: 40, rows: 20)
        let lines = session.lines(glyphs: .unicode, size: size).map(\.text)
        #expect(lines.contains { $0.contains(": goes on ─") })
        #expect(lines.contains { $0.contains("ret  ") })
        #expect(lines.contains { $0.contains("i = ") })
      }
    }

    @Test func saysWhoKeepsTheCounter() throws {
      let lines = try text(200, nil).joined(separator: "\n")
      if HostFacts.isDebugBuild {
        #expect(lines.contains("A debug build keeps the counter in memory"))
      } else {
        #expect(lines.contains("a callee-saved register: the caller does not store it"))
      }
    }
  }
}
