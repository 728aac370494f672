// LibraryDemoTests.swift - the demos of the library check themselves.
import Testing

@testable import WeftTool

@Suite struct LibraryDemoTests {
  @Test func generatorPrintsFibonacci() throws {
    let run = try weft("demo", "generator", "--count", "8")
    #expect(run.out == "0\n1\n1\n2\n3\n5\n8\n13\n")
    #expect(run.status == 0)
    #expect(FibonacciDemo.result(count: 93).elements.last == 7_540_113_804_746_346_429)
    #expect(FibonacciDemo.result(count: 93).isCorrect)
    #expect(FibonacciDemo.result(count: 0).elements.isEmpty)
  }

  @Test(arguments: [0, 1, 12, 40, 41, 1000]) func treeIsInOrder(_ count: Int) {
    let result = TreeDemo.result(count: count, glyphs: .unicode)
    #expect(result.elements == (0..<count).map { Int64($0 + 1) })
    #expect(result.isCorrect)
    #expect(result.picture.isEmpty == (count == 0 || count > 40))
  }

  @Test func primesAreTheKnownOnes() throws {
    #expect(PrimesDemo.result(upto: 30).elements == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29])
    #expect(PrimesDemo.result(upto: 1).elements.isEmpty)
    #expect(PrimesDemo.result(upto: 2).elements == [2])
    let thousand = PrimesDemo.result(upto: 1000)
    #expect(thousand.elements.count == 168 && thousand.isCorrect)
    let run = try weft("demo", "primes", "--upto", "10")
    #expect(run.out == "2 3 5 7\n")
    #expect(run.status == 0)
  }

  @Test func aWrongResultIsAFailedCheck() throws {
    let wrong = LibraryResult(
      name: "generator", elements: [0, 1, 2], expected: [0, 1, 1], details: [], remark: "")
    #expect(!wrong.isCorrect)
    #expect(wrong.difference == "element 2 is 2, but should be 1")
    var invocation = try Parser.parse(["demo", "generator"])
    // SAFETY: the path is passed as a terminated string that lives through the call.
    let sink = unsafe open("/dev/null", O_WRONLY | O_CLOEXEC)
    defer { close(sink) }
    invocation.console.out = Output(descriptor: sink)
    let error = #expect(throws: ToolError.self) { try wrong.finish(invocation) }
    #expect(error?.code == .checkFailed)
  }
}
