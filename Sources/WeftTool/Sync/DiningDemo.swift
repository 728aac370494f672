// DiningDemo.swift - `weft demo dining`: Dijkstra's philosophers, with a FiberMutex for each fork.
import Weft

/// Philosophers round a table, a fork between any two; each needs both of his to eat.
enum DiningDemo {
  static let philosophersMax: Int64 = 100
  static let mealsMax: Int64 = 1_000_000

  /// In which way they take their forks.
  enum Rule: String, CaseIterable {
    /// The left one first. All take it before anybody goes on: what else would happen by chance
    /// happens at once.
    case left
    /// The one with the lower number first, so that nobody waits for one below what he has.
    case order
    /// The left one first, but a waiter lets all but one to the table.
    case waiter
  }

  struct Plan: Equatable {
    var philosophers = 5
    var meals = 100

    func forks(of seat: Int) -> (left: Int, right: Int) { (seat, (seat + 1) % philosophers) }
  }

  /// What came of it.
  struct Dinner: Equatable {
    /// By each philosopher.
    var meals: [Int]
    /// With each fork, which counted for itself.
    var uses: [Int]

    /// What is wrong, if somebody did not eat as often as he wanted to.
    func problem(_ plan: Plan) -> String? {
      if let seat = meals.firstIndex(where: { $0 != plan.meals }) {
        return "philosopher \(seat + 1) ate \(meals[seat]) times, but should have \(plan.meals)"
      }
      if let fork = uses.firstIndex(where: { $0 != 2 * plan.meals }) {
        return "fork \(fork + 1) was used \(uses[fork]) times, but should be \(2 * plan.meals)"
      }
      return nil
    }
  }

  static func run(_ invocation: Invocation) throws -> ExitCode {
    let workers = try FiberDemo.workers(invocation)
    var plan = Plan()
    if let count = try invocation.number(
      "philosophers", in: 2...philosophersMax, why: "the table is too small")
    {
      plan.philosophers = Int(count)
    }
    if let meals = try invocation.number(
      "meals", in: 1...mealsMax, why: "this would take minutes and more")
    {
      plan.meals = Int(meals)
    }
    if let rule = invocation.values["rule"].flatMap({ Rule(rawValue: $0) }) {
      // With `left` that is the end of this process.
      return try report(plan, [rule], workers: workers).finish(invocation)
    }
    let last = try DeadlockedDinner.watch(plan, workers: workers)
    var report = try report(plan, [.order, .waiter], workers: workers)
    let columns = min(invocation.console.size.columns, 100)
    report.lines = last.lines(columns: columns) + [""] + report.lines
    report.members.insert(last.member, at: 2)
    report.problem = last.problem(plan) ?? report.problem
    return try report.finish(invocation)
  }

  static func report(_ plan: Plan, _ rules: [Rule], workers: Int?) throws -> FiberReport {
    let run = try FiberDemo.run(workers: workers) { try rules.map { try dine(plan, $0) } }
    let dinners = Array(zip(rules, run.value))
    return FiberReport(
      name: "dining", lines: table(plan, dinners),
      members: [
        JSON.Member(key: "philosophers", value: .int(plan.philosophers)),
        JSON.Member(key: "meals", value: .int(plan.meals)),
        JSON.Member(
          key: "dinners",
          value: .array(
            dinners.map { rule, dinner in
              ["rule": .string(rule.rawValue), "meals": .array(dinner.meals.map { .int($0) })]
            })),
      ],
      problem: dinners.lazy.compactMap { rule, dinner in
        dinner.problem(plan).map { "by the rule '\(rule.rawValue)' \($0)" }
      }.first,
      counters: run.counters, elapsed: run.elapsed)
  }

  // MARK: The dinner

  private static func dine(_ plan: Plan, _ rule: Rule) throws -> Dinner {
    // A fork counts what is eaten with it.
    let forks = (0..<plan.philosophers).map { _ in FiberMutex(0) }
    let waiter = FiberSemaphore(plan.philosophers - 1)
    let all = FiberBarrier(plan.philosophers)
    let philosophers = (0..<plan.philosophers).map { seat in
      Fiber(name: "philosopher \(seat + 1)") { () throws -> Int in
        var (left, right) = plan.forks(of: seat)
        if rule == .order, right < left { (left, right) = (right, left) }
        let (first, second) = (forks[left], forks[right])
        var meals = 0
        while meals < plan.meals {
          let others = rule == .left && meals == 0 ? all : nil
          if rule == .waiter {
            try waiter.withPermit { try eat(first, second, after: others) }
          } else {
            try eat(first, second, after: others)
          }
          meals += 1
        }
        return meals
      }
    }
    let meals = try philosophers.map { try $0.join() }
    return Dinner(meals: meals, uses: forks.map { $0.withLock { $0 } })
  }

  /// Takes one fork, then, after others had a chance to take theirs, the other.
  private static func eat(
    _ first: FiberMutex<Int>, _ second: FiberMutex<Int>, after others: FiberBarrier?
  ) throws {
    try first.withLock { uses in
      try others?.wait()
      Fiber.yield()
      second.withLock { $0 += 1 }
      uses += 1
    }
  }

  // MARK: What is shown

  private static func table(_ plan: Plan, _ dinners: [(Rule, Dinner)]) -> [String] {
    let rows = (0..<plan.philosophers).map { seat in
      ["\(seat + 1)"] + dinners.map { "\($1.meals[seat])" }
    }
    let total = ["all"] + dinners.map { "\($1.meals.reduce(0, +))" }
    return columns([["philosopher"] + dinners.map { $0.0.rawValue }] + rows + [total])
  }

  /// Right-aligned, two blanks between.
  private static func columns(_ rows: [[String]]) -> [String] {
    let widths = (rows.first ?? []).indices.map { column in rows.map { $0[column].count }.max() ?? 0
    }
    return rows.map { row in
      zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 }
        .joined(separator: "  ")
    }
  }
}
