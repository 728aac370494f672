import Testing

@testable import BenchKit

@Suite("Counts")
struct CountsTests {
  static func kind(
    system: String = "linux", architecture: String = "x86_64", compiler: String = "swift6.3",
    build: String = "release"
  ) -> Counts.Kind {
    Counts.Kind(system: system, architecture: architecture, compiler: compiler, build: build)
  }

  static func counts(
    _ counts: [String: Double], kind: Counts.Kind = kind(), notes: [String: String] = [:]
  ) -> Counts {
    Counts(kind: kind, notes: notes, counts: counts)
  }

  func comparison(
    from old: [String: Double], to new: [String: Double], threshold: Double = 5,
    filter: (String) -> Bool = { _ in true }
  ) throws -> CountComparison {
    try CountComparison(
      old: Self.counts(old), new: Self.counts(new), thresholdPercent: threshold, filter: filter)
  }

  // MARK: The file

  @Test func survivesTheFile() throws {
    let counts = Self.counts(
      ["yield.two": 157.125, "mutex.alone": 24], notes: ["C library": "glibc \"2.36\""])
    #expect(try Counts(json: JSON(parsing: counts.json.text)) == counts)
  }

  @Test func theFileSaysHowItWasMadeAndIsInOrder() {
    let text = Self.counts(["b": 2, "a": 1, "c": 3]).json.text
    #expect(text.contains("--count --save-baseline"))
    let names = text.split(separator: "\n").filter { $0.hasPrefix("    \"") }
    #expect(names == ["    \"a\": 1,", "    \"b\": 2,", "    \"c\": 3"])
  }

  @Test func eachArchitectureAndCompilerHasAFile() {
    #expect(Self.kind().fileName == "x86_64-swift6.3.json")
    #expect(
      Self.kind(architecture: "aarch64", compiler: "swift6.4").fileName == "aarch64-swift6.4.json")
  }

  static let head =
    "\"schema\": \"weft-bench-counts/1\", \"system\": \"l\", \"architecture\": \"x\""
  static let full = head + ", \"compiler\": \"s\", \"build\": \"r\", \"notes\": {}"

  @Test(arguments: [
    ("{}", "no instruction counts (weft-bench-counts/1)"),
    ("[]", "no instruction counts (weft-bench-counts/1)"),
    ("{\"schema\": \"weft-bench/1\"}", "no instruction counts (weft-bench-counts/1)"),
    ("{\(head)}", "compiler is missing"),
    ("{\(full)}", "instructions is missing"),
    ("{\(full), \"instructions\": [1]}", "instructions is missing"),
    ("{\(full), \"instructions\": {\"a\": 0}}", "a has no number of instructions"),
    ("{\(full), \"instructions\": {\"a\": -5}}", "a has no number of instructions"),
    ("{\(full), \"instructions\": {\"a\": \"5\"}}", "a has no number of instructions"),
    ("{\(full), \"instructions\": {\"a\": null}}", "a has no number of instructions"),
    ("{\(full), \"instructions\": {\"a\": 1, \"a\": 2}}", "a is there twice"),
  ])
  func badFilesAreNamed(text: String, message: String) {
    #expect {
      try Counts(json: JSON(parsing: text))
    } throws: { "\($0)" == message }
  }

  // MARK: Comparing

  @Test(arguments: [
    (100.0, CountComparison.Verdict.same), (105, .same), (105.1, .more), (1000, .more),
    (95, .same), (94.9, .fewer),
  ])
  func theThreshold(new: Double, verdict: CountComparison.Verdict) throws {
    let comparison = try comparison(from: ["a": 100], to: ["a": new])
    #expect(comparison.verdict(of: comparison.rows[0]) == verdict)
    #expect(comparison.isFine == (verdict != .more))
  }

  @Test func aThresholdOfZeroAllowsNothing() throws {
    #expect(try comparison(from: ["a": 100], to: ["a": 100], threshold: 0).isFine)
    #expect(try !comparison(from: ["a": 100], to: ["a": 100.01], threshold: 0).isFine)
  }

  @Test func oneOfSeveralIsEnoughToFail() throws {
    let comparison = try comparison(from: ["a": 10, "b": 10], to: ["a": 5, "b": 11])
    #expect(comparison.rows.map(\.name) == ["a", "b"])
    #expect(comparison.rows.map { comparison.verdict(of: $0) } == [.fewer, .more])
    #expect(!comparison.isFine)
  }

  @Test func whatIsNotGuardedDoesNotPass() throws {
    let added = try comparison(from: ["a": 1], to: ["a": 1, "b": 1])
    #expect(added.added == ["b"] && !added.isFine)
    let missing = try comparison(from: ["a": 1, "b": 1], to: ["a": 1])
    #expect(missing.missing == ["b"] && !missing.isFine)
    let filtered = try comparison(from: ["a": 1, "b": 1], to: ["a": 1]) { $0 == "a" }
    #expect(filtered.missing.isEmpty && filtered.isFine)
  }

  @Test(arguments: [
    (kind(system: "macos"), "the system was \"linux\" and is \"macos\" now"),
    (kind(architecture: "aarch64"), "the architecture was \"x86_64\" and is \"aarch64\" now"),
    (kind(compiler: "swift6.4"), "the compiler was \"swift6.3\" and is \"swift6.4\" now"),
    (kind(build: "debug"), "the build was \"release\" and is \"debug\" now"),
  ])
  func anotherKindIsRefused(kind: Counts.Kind, message: String) {
    #expect {
      try CountComparison(
        old: Self.counts(["a": 1]), new: Self.counts(["a": 1], kind: kind), thresholdPercent: 5)
    } throws: { "\($0)" == "the counts do not compare: " + message }
  }

  @Test func notesThatDifferAreShownAndDoNotFail() throws {
    let comparison = try CountComparison(
      old: Self.counts(["a": 1], notes: ["C library": "glibc 2.36", "same": "x"]),
      new: Self.counts(["a": 1], notes: ["C library": "glibc 2.41", "same": "x"]),
      thresholdPercent: 5)
    #expect(comparison.isFine)
    #expect(comparison.notes == ["C library was glibc 2.36 and is glibc 2.41 now"])
    #expect(Tables.counts(comparison).contains("Note: C library was glibc 2.36"))
  }

  // MARK: What is printed

  @Test func aFailureNamesTheOperationBothCountsAndTheRemedy() throws {
    let text = Tables.counts(
      try comparison(from: ["yield.two": 100, "gone": 1], to: ["yield.two": 112.5, "new": 1]))
    #expect(
      text.contains("yield.two takes 112.50 instructions, and took 100.00: +12.5 %, where 5 % is"))
    #expect(text.contains("new is not in the baseline."))
    #expect(text.contains("gone is in the baseline, and was not counted."))
    #expect(text.contains("say why in the commit, and save the baseline anew:\n  swift run"))
  }

  @Test func successAsksForNothing() throws {
    let text = Tables.counts(try comparison(from: ["a": 100], to: ["a": 101]))
    #expect(text == "operation  instructions     was\na                101.00  100.00  +1.0 %\n")
    #expect(
      Tables.counts(try comparison(from: ["a": 100], to: ["a": 50])).contains("To hold that"))
  }

  @Test func countsAlone() {
    #expect(
      Tables.counts(Self.counts(["b": 2, "a": 1.126]))
        == "operation  instructions\na                  1.13\nb                  2.00\n")
  }
}
