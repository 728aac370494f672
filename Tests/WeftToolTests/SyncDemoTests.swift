// SyncDemoTests.swift - the demos of channels and locks, on one, two and four workers.
import Testing
import Weft

@testable import WeftTool

@Suite struct SyncDemoTests {
  static let primes = """
    2 3 5 7 11 13 17 19 23 29 31 37 41 43 47 53 59 61 67 71 73 79 83 89 97 101 103
    107 109 113

    """

  @Test(arguments: ["1", "2", "4"]) func sievePrintsPrimes(_ workers: String) throws {
    let run = try weft("demo", "sieve", "--workers", workers)
    #expect(run.out == Self.primes)
    #expect(run.err.hasPrefix("31 fibers on \(workers) worker"))
    #expect(run.status == 0)
  }

  @Test(arguments: [1, 2, 4]) func sievesOfAllSizes(_ workers: Int) throws {
    for (count, capacity) in [(0, 0), (1, 0), (2, 1), (100, 0), (100, 16)] {
      let report = try SieveDemo.report(count: count, capacity: capacity, workers: workers)
      #expect(report.problem == nil)
      #expect(report.counters.fibersMade == count + 2)
    }
  }

  static let pipeline = """
    numbers  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
    steps    0 1 7 2 5 8 16 3 19 6 14 9 9 17 17 4 12 20 20 7
    odd      1 7 5 3 19 9 9 17 17 7
    chunks   [1 7 5] [3 19 9] [9 17 17] [7]
    sums     13 31 43 7
    total    94

    """

  @Test(arguments: ["1", "2", "4"]) func pipelineKeepsTheOrder(_ workers: String) throws {
    for fibers in ["1", "2", "4", "50"] {
      let run = try weft("demo", "pipeline", "--workers", workers, "--fibers", fibers)
      #expect(run.out == Self.pipeline)
      #expect(run.err.contains(" fibers on \(workers) worker"))
      #expect(run.status == 0)
    }
  }

  @Test func pipelineFitsNarrowScreens() throws {
    let run = try weft("demo", "pipeline", environment: ["COLUMNS": "40"])
    #expect(
      run.lines[0...3] == [
        "numbers  1 2 3 4 5 6 7 8 9 10 11 12 13",
        "         14 15 16 17 18 19 20",
        "steps    0 1 7 2 5 8 16 3 19 6 14 9 9 17",
        "         17 4 12 20 20 7",
      ])
    #expect(run.out.utf8.max() ?? 0 < 0x80)
  }

  @Test(arguments: [1, 2, 4]) func pipelinesOfAllSizes(_ workers: Int) throws {
    for (count, fibers, chunk) in [(1, 1, 1), (2, 3, 1), (40, 2, 7), (41, 4, 3), (500, 16, 1000)] {
      let plan = PipelineDemo.Plan(count: count, fibers: fibers, chunk: chunk)
      let report = try PipelineDemo.report(plan, workers: workers)
      #expect(report.problem == nil)
    }
  }

  @Test func longPipelinesAreSummedUp() throws {
    let run = try weft("demo", "pipeline", "--count", "500")
    #expect(
      run.out == """
        numbers  500 elements, sum 125250
        steps    500 elements, sum 26143
        odd      253 elements, sum 13389
        chunks   85 chunks of 3, the last of 1
        sums     85 elements, sum 13389
        total    13389

        """)
    #expect(PipelineDemo.expected(.init(count: 5, fibers: 1, chunk: 2)).chunks == [[1, 7], [5]])
  }

  static let dining = """
    Each takes the left fork first. Run in a process of its own, Weft ended it:

    deadlock: every fiber waits, and nothing is left that could wake one.
      philosopher 1 waits for a FiberMutex
      philosopher 2 waits for a FiberMutex
      philosopher 3 waits for a FiberMutex

    By two other rules nobody waits for ever. How often each has eaten:

    philosopher  order  waiter
              1     20      20
              2     20      20
              3     20      20
            all     60      60

    """

  /// The thread sanitizer has a thread that Weft does not know, so that no deadlock can be told.
  @Test(.enabled(if: RuntimeInfo.current.sanitizer != "thread"), arguments: ["1", "2", "4"])
  func diningShowsTheDeadlockAndTheWaysOut(_ workers: String) throws {
    let run = try weft(
      "demo", "dining", "--philosophers", "3", "--meals", "20", "--workers", workers)
    #expect(run.out == Self.dining)
    #expect(run.err.hasPrefix("6 fibers on \(workers) worker"))
    #expect(run.status == 0)
    let left = try weft("demo", "dining", "--rule", "left", "--workers", workers)
    #expect(left.out == "")
    #expect(left.err.hasPrefix("weft: deadlock: "))
    #expect(left.status == 2)
  }

  @Test(arguments: [1, 2, 4]) func everybodyEats(_ workers: Int) throws {
    for (philosophers, meals) in [(2, 1), (2, 300), (5, 100), (30, 20)] {
      let plan = DiningDemo.Plan(philosophers: philosophers, meals: meals)
      let report = try DiningDemo.report(plan, [.order, .waiter], workers: workers)
      #expect(report.problem == nil)
      #expect(report.counters.fibersMade == 2 * philosophers + 1)
    }
  }

  @Test func aDinnerThatIsWrongIsSaid() {
    let plan = DiningDemo.Plan(philosophers: 2, meals: 3)
    let dinner = DiningDemo.Dinner(meals: [3, 3], uses: [6, 6])
    #expect(dinner.problem(plan) == nil)
    let hungry = DiningDemo.Dinner(meals: [3, 2], uses: [5, 5])
    #expect(hungry.problem(plan) == "philosopher 2 ate 2 times, but should have 3")
    let shared = DiningDemo.Dinner(meals: [3, 3], uses: [6, 5])
    #expect(shared.problem(plan) == "fork 2 was used 5 times, but should be 6")
  }

  @Test func aDeadlockIsReadFromItsReport() {
    let plan = DiningDemo.Plan(philosophers: 2, meals: 1)
    var dinner = DeadlockedDinner(
      status: 2,
      report: """
        weft: deadlock: every fiber waits.
        weft:   fiber #7 "philosopher 2" (made at A/b.swift:1) waits for a FiberMutex
        weft:   fiber #2 "main" (made at A/b.swift:9) waits for the end of fiber #7 "philosopher 2"
        weft:   fiber #4 "philosopher 1" (made at A/b.swift:1) waits for the time

        """)
    #expect(dinner.title == "deadlock: every fiber waits.")
    #expect(dinner.waiting.map(\.name) == ["philosopher 1", "philosopher 2"])
    #expect(dinner.waiting.map(\.reason) == ["the time", "a FiberMutex"])
    #expect(dinner.problem(plan) == nil)
    #expect(dinner.problem(.init(philosophers: 3, meals: 1)) != nil)
    dinner.status = 0
    #expect(dinner.problem(plan)?.contains("exit code 0") == true)
    dinner.status = nil
    #expect(dinner.problem(plan)?.contains("within 10 s") == true)
    #expect(DeadlockedDinner(status: 2, report: "").problem(plan) != nil)
  }
}
