// JSONTests.swift - what --json prints is JSON, one object a line, with a schema.
import Foundation
import Testing

@testable import WeftTool

@Suite struct JSONTests {
  /// The objects in some lines, by a parser that is not ours.
  private func objects(_ text: String) throws -> [[String: Any]] {
    try text.split(separator: "\n").map { line in
      let value = try JSONSerialization.jsonObject(with: Data(line.utf8))
      return try #require(value as? [String: Any])
    }
  }

  @Test(arguments: [("swap", 5), ("sum", 23)])
  func oneObjectAStep(_ demo: String, _ count: Int) throws {
    let run = try weft("demo", demo, "--step", "--json")
    let steps = try objects(run.out)
    #expect(steps.count == count)
    #expect(steps.allSatisfy { $0["schema"] as? String == "weft.demo.step/1" })
    #expect(steps.map { $0["step"] as? Int } == (1...count).map { $0 })
    #expect(steps.map { $0["finished"] as? Bool } == (1...count).map { $0 == count })
    let stacks = try #require(steps[1]["stacks"] as? [[String: Any]])
    #expect(stacks.map { $0["name"] as? String } == ["routine", "routine2"])
    let registers = try #require(stacks[0]["registers"] as? [[String: Any]])
    #expect(registers.count == StackReader.registerNames.count)
    #expect(run.status == 0)
    // The same without --step.
    #expect(try objects(try weft("demo", demo, "--json").out).count == count)
  }

  @Test func counterGoesFromZeroToNine() throws {
    let steps = try objects(try weft("demo", "sum", "--json").out)
    let leaving = steps.filter { $0["from"] as? String == "routine" }.dropLast()
    let counters = leaving.compactMap { ($0["counter"] as? [String: Any])?["value"] as? Int }
    let sums = leaving.compactMap { ($0["sum"] as? [String: Any])?["value"] as? Int }
    #expect(counters == Array(0...9))
    #expect(sums == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45])
  }

  @Test(arguments: [
    (["demo"], "weft.demos/1"), (["info"], "weft.info/1"),
    (["demo", "generator"], "weft.demo.generator/1"), (["demo", "tree"], "weft.demo.tree/1"),
    (["demo", "primes"], "weft.demo.primes/1"), (["demo", "sum", "--asm"], "weft.demo.asm/1"),
    (["demo", "sum", "--upto", "9"], "weft.demo.sum/1"),
    (["demo", "pool", "--upto", "9999"], "weft.demo.pool/1"),
    (["demo", "skynet", "--leaves", "1000"], "weft.demo.skynet/1"),
    (["demo", "pingpong", "--rounds", "1000"], "weft.demo.pingpong/1"),
    (["demo", "ring", "--rounds", "1000"], "weft.demo.ring/1"),
    (["demo", "sieve"], "weft.demo.sieve/1"), (["demo", "pipeline"], "weft.demo.pipeline/1"),
    (["demo", "dining", "--rule", "order"], "weft.demo.dining/1"),
  ])
  func oneObjectInAll(_ words: [String], _ schema: String) throws {
    let (command, first, rest) = (words[0], words.dropFirst().first, words.dropFirst(2))
    let run: Outcome
    switch (first, rest.count) {
    case (nil, _): run = try weft(command, "--json")
    case (let first?, 0): run = try weft(command, first, "--json")
    case (let first?, 1): run = try weft(command, first, words[2], "--json")
    case (let first?, _): run = try weft(command, first, words[2], words[3], "--json")
    }
    let found = try objects(run.out)
    #expect(found.count == 1)
    #expect(found.first?["schema"] as? String == schema)
    #expect(run.status == 0)
    #expect(run.err == "")
  }

  @Test func textIsQuoted() throws {
    let text = "a\"b\\c\nd\te\u{1}f\rg é→"
    let value: JSON = ["k": .string(text), "n": .int(-5), "x": .null, "l": [true, false, 1]]
    let found = try objects(value.text)
    #expect(found[0]["k"] as? String == text)
    #expect(found[0]["n"] as? Int == -5)
    #expect((found[0]["l"] as? [Any])?.count == 3)
    #expect(JSON.hex(.max).text == "\"0xffffffffffffffff\"")
  }
}
