// GoldenTests.swift - the two programs of the article print exactly what it says.
import Testing

@Suite struct GoldenTests {
  @Test func swapPrintsItsFourLines() throws {
    let run = try weft("demo", "swap")
    #expect(run.out == "routine()\nroutine2()\nroutine() end\nmain routine\n")
    #expect(run.err == "")
    #expect(run.status == 0)
  }

  @Test func sumPrintsItsTwelveLines() throws {
    let run = try weft("demo", "sum")
    let middle = String(repeating: "routine2()\n", count: 10)
    #expect(run.out == "routine()\n" + middle + "sum: 45\n")
    #expect(run.err == "")
    #expect(run.status == 0)
  }

  @Test func demoListsEveryDemo() throws {
    let run = try weft("demo")
    for name in [
      "swap", "sum", "generator", "tree", "primes", "pool", "skynet", "pingpong", "ring",
      "sieve", "pipeline", "dining",
    ] {
      #expect(run.out.contains("weft demo \(name)"))
    }
    #expect(run.status == 0)
  }

  @Test(arguments: ["swap", "sum", "generator", "tree", "primes", "sieve", "pipeline"])
  func closedPipeEndsQuietly(_ demo: String) throws {
    let run = try weftWithClosedOutput("demo", demo)
    #expect(run.err == "")
    #expect(run.status == 0)
  }

  @Test func closedPipeEndsTheStepperQuietly() throws {
    let run = try weftWithClosedOutput("demo", "sum", "--step")
    #expect(run.err == "")
    #expect(run.status == 0)
  }
}
