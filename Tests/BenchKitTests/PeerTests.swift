import Testing

@testable import BenchKit

/// A job in nanoseconds, for one worker.
private func peerJob(_ name: String = "pool.yield.two") -> PeerJob {
  PeerJob(name, workers: 1, rows: [1, 2], unit: "ns/yield", "Tasks yield <in> turns.")
}

private func runtime(_ name: String, jobs: Set<String> = ["pool.yield.two"]) -> PeerRuntime {
  PeerRuntime(name: name, version: "\(name) 1.0", jobs: jobs)
}

/// A row with the samples of each runtime.
private func row(_ samples: [(String, [Double])], name: String = "pool.yield.two") -> PeerRow {
  PeerRow(
    job: peerJob(name), cells: samples.compactMap { PeerCell(runtime: $0.0, samples: $0.1) })
}

private func peerReport(_ rows: [PeerRow], omissions: [PeerOmission] = []) -> PeerReport {
  PeerReport(
    version: "1", machine: machine(), rounds: 2,
    runtimes: ["weft", "go", "tokio"].map { runtime($0) }, rows: rows, omissions: omissions)
}

@Suite("Peers: what their programs print")
struct PeerProtocolTests {
  @Test func samplesAreRead() throws {
    let text = "12.5 ns/yield\n3 ns/yield\r\n\n1e2 ns/yield"
    #expect(try PeerProtocol.samples(text, of: peerJob()) == [12.5, 3, 100])
  }

  @Test func unitsMayHaveBlanks() throws {
    let job = PeerJob.all[0]
    #expect(job.unit == "ns/round trip")
    #expect(try PeerProtocol.samples("7 ns/round trip\n", of: job) == [7])
  }

  @Test(arguments: [
    ("", "it printed nothing"), ("\n \n", "' ' is no value with a unit"),
    ("12.5", "'12.5' is no value with a unit"),
    ("fast ns/yield", "'fast ns/yield' is no value with a unit"),
    ("nan ns/yield", "'nan ns/yield' is no value with a unit"),
    ("inf ns/yield", "'inf ns/yield' is no value with a unit"),
    ("-1 ns/yield", "'-1 ns/yield' is no value with a unit"),
    ("1 ns/yield\n2 ms", "it counts in 'ms', not in 'ns/yield'"),
  ])
  func nonsenseIsRefused(text: String, message: String) {
    #expect(throws: PeerError(message)) { try PeerProtocol.samples(text, of: peerJob()) }
  }

  @Test func listsAreRead() {
    #expect(PeerProtocol.list("a.b\nc\n") == ["a.b", "c"])
    #expect(PeerProtocol.list("").isEmpty)
  }

  @Test func titlesTellRowsApart() {
    let titles = PeerJob.all.map(\.title)
    #expect(Set(titles).count == titles.count)
    #expect(titles.contains("coroutine.int") && titles.contains("pool.yield.two.w2"))
  }
}

@Suite("Peers: skipping")
struct PeerRecipeTests {
  @Test func whatIsMissingIsNamed() throws {
    let java = try #require(PeerRecipe.all.first { $0.name == "java" })
    #expect(java.missing { _ in true } == nil)
    let needs = "it needs Java 21 or later to run, 17 or later to compile"
    #expect(java.missing { $0 == "java" } == "javac not found on the path; \(needs)")
    #expect(java.missing { _ in false } == "java and javac not found on the path; \(needs)")
  }

  @Test func everyPeerNeedsATool() {
    for recipe in PeerRecipe.all {
      #expect(recipe.missing { _ in false } != nil, "\(recipe.name)")
    }
  }

  @Test(arguments: [
    ("openjdk version \"25.0.2\" 2026-01-20 LTS\nOpenJDK Runtime", 25),
    ("openjdk version \"21\" 2023-09-19", 21), ("java version \"1.8.0_392\"", 1),
    ("not at all", nil), ("version \"\"", nil),
  ])
  func versionsOfJava(text: String, major: Int?) throws {
    #expect(PeerRecipe.javaMajor(text) == major)
    let java = try #require(PeerRecipe.all.first { $0.name == "java" })
    #expect((java.unsuitable(versionText: text) == nil) == ((major ?? 0) >= 21))
  }

  @Test func othersTakeAnyVersion() throws {
    let go = try #require(PeerRecipe.all.first { $0.name == "go" })
    #expect(go.unsuitable(versionText: "go version \"1\"") == nil)
  }

  @Test(arguments: [
    ("In file x:\nx:5: fatal error: boost/fiber/all.hpp: No such file\n", 1),
    ("warning: terrors\nlinker said no\n", 1), ("only this", 0),
  ])
  func theTellingLineOfABuild(text: String, line: Int) {
    let expected = text.split(separator: "\n")[line]
    #expect(PeerRecipe.failureLine(text) == expected)
  }

  @Test func aSilentBuildIsNamedToo() {
    #expect(PeerRecipe.failureLine("\n") == "the build printed nothing")
    #expect(PeerRecipe.versionLine("Picked up options\ngo 1.27\n") == "go 1.27")
    #expect(PeerRecipe.versionLine("") == "unknown")
  }

  @Test func buildsGoWhereTheyAreSent() {
    let places = PeerPlaces(sources: "in", output: "out")
    for recipe in PeerRecipe.all {
      let words = recipe.build(places).joined().joined(separator: " ")
      #expect(words.contains("in/\(recipe.name)"), "\(recipe.name)")
      #expect(words.contains("out/\(recipe.name)"), "\(recipe.name)")
    }
  }

  @Test func javaGetsItsWorkers() throws {
    let java = try #require(PeerRecipe.all.first { $0.name == "java" })
    let command = java.command(PeerPlaces(sources: "in", output: "out"), 2)
    #expect(command.contains("-Djdk.virtualThreadScheduler.parallelism=2"))
    #expect(command.contains("-Djdk.virtualThreadScheduler.maxPoolSize=2"))
  }
}

@Suite("Peers: running in turns")
struct PeerRunnerTests {
  @Test func everyRoundBeginsWithAnother() {
    var log: [String] = []
    var runner = PeerRunner(rounds: 2) { runtime, job in
      log.append("\(runtime.name) \(job.name)")
      return [Double(log.count)]
    }
    let jobs = [peerJob("a"), peerJob("b")]
    let both: Set = ["a", "b"]
    let rows = runner.run(
      jobs,
      with: [runtime("weft", jobs: both), runtime("go", jobs: both), runtime("c", jobs: ["b"])])
    #expect(
      log == [
        "weft a", "go a", "weft b", "go b", "c b",
        "go a", "weft a", "go b", "c b", "weft b",
      ])
    #expect(rows.map { $0.cells.map(\.runtime) } == [["weft", "go"], ["weft", "go", "c"]])
    #expect(rows[0]["weft"]?.samples == [1, 7])
    #expect(rows[1]["c"]?.samples == [5, 9])
  }

  @Test func aFailureCostsOneCell() {
    var tries = 0
    var runner = PeerRunner(rounds: 4) { runtime, job in
      guard runtime.name == "go", job.name == "a" else { return [5] }
      tries += 1
      if tries == 2 { throw PeerError("exit code 139") }
      return [1]
    }
    let both: Set = ["a", "b"]
    let rows = runner.run(
      [peerJob("a"), peerJob("b")], with: [runtime("weft", jobs: both), runtime("go", jobs: both)])
    #expect(tries == 2)
    #expect(rows[0]["go"] == nil && rows[0]["weft"]?.samples == [5, 5, 5, 5])
    #expect(rows[1]["go"]?.samples.count == 4)
    #expect(runner.omissions == [PeerOmission(what: "go a.w1", reason: "exit code 139")])
  }

  @Test func aRowWithoutFiguresIsNone() {
    var runner = PeerRunner(rounds: 1) { _, _ in throw PeerError("no") }
    #expect(runner.run([peerJob()], with: [runtime("weft")]).isEmpty)
  }
}

@Suite("Peers: the report")
struct PeerReportTests {
  @Test func ratioIsToTheBestPeer() {
    let row = row([("weft", [10, 12, 14]), ("go", [30, 40, 50]), ("tokio", [20, 24, 28])])
    #expect(row.bestPeer?.runtime == "tokio")
    #expect(row.ratio == 0.5)
    #expect(row.winner == "weft")
    #expect(row.spreadPercent.map { $0.rounded() } == 20)
  }

  @Test func firstIsWhoIsByBoth() {
    #expect(row([("weft", [10, 12]), ("go", [5, 30])]).winner == nil)
    #expect(row([("weft", [10, 12]), ("go", [5, 6])]).winner == "go")
    // Nobody to be ahead of.
    #expect(row([("weft", [10])]).winner == nil)
    #expect(row([("weft", [10])]).ratio == nil)
    #expect(row([("go", [10]), ("tokio", [11])]).ratio == nil)
  }

  @Test func tableHasARowAJobAndAColumnARuntime() {
    let text = Tables.peers(
      peerReport(
        [
          row([("weft", [10, 12, 14]), ("go", [30, 40, 50])]),
          row([("weft", [10, 20]), ("tokio", [9, 30])], name: "other"),
        ], omissions: [PeerOmission(what: "java", reason: "java not found")]))
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(
      lines[0].split(separator: " ").map(String.init) == [
        "job", "unit", "weft", "go", "tokio", "ratio", "spread", "first",
      ])
    #expect(
      lines[1].split(separator: " ").joined(separator: " ")
        == "pool.yield.two.w1 ns/yield 10.0 (12.0) 30.0 (40.0) 0.30 33 % weft")
    #expect(lines[2].hasSuffix("unclear"))
    // Empty cells keep their place: both ratios end in the same column.
    #expect(lines[1].count - "33 %  weft".count == lines[2].count - "133 %  unclear".count + 1)
    #expect(text.contains("go: go 1.0\n"))
    #expect(text.hasSuffix("Left out: java: java not found\n"))
    #expect(lines.allSatisfy { $0.last != " " })
  }

  @Test func jsonHasItAll() throws {
    let report = peerReport(
      [row([("weft", [10, 12]), ("go", [22, 22])])],
      omissions: [PeerOmission(what: "c", reason: "no compiler")])
    let json = try JSON(parsing: report.json.text)
    #expect(json["schema"]?.string == PeerReport.schema)
    let first = try #require(json["rows"]?.array?.first)
    #expect(first["name"]?.string == "pool.yield.two.w1")
    #expect(first["ratio"]?.number == 0.5)
    #expect(first["best_peer"]?.string == "go" && first["winner"]?.string == "weft")
    let weft = try #require(first["figures"]?.array?.first)
    #expect(weft["samples"]?.array?.compactMap(\.number) == [10, 12])
    #expect(weft["best"]?.number == 10 && weft["median"]?.number == 11)
    #expect(json["omissions"]?.array?.first?["reason"]?.string == "no compiler")
  }

  @Test func chartHasABarForEachFigure() throws {
    let report = peerReport([
      row([("weft", [10, 12]), ("go", [22, 22])]), row([("weft", [1]), ("tokio", [2])], name: "b"),
    ])
    let elements = try XMLChecker.elements(in: Chart(report.chartable).svg)
    #expect(elements.filter { $0 == "rect" }.count == 5)
  }

  @Test func listNamesRows() {
    let text = Tables.list([peerJob()])
    #expect(text == "pool.yield.two.w1  (ns/yield)\n    Tasks yield <in> turns.\n")
  }
}

@Suite("Peers: options")
struct PeerOptionsTests {
  @Test func namesComeInTheOrderOfTheTable() throws {
    let names = PeerRecipe.all.map(\.name)
    #expect(try Options(["--peers", "tokio,go"]).peers == ["go", "tokio"])
    #expect(try Options(["--peers=all"]).peers == names)
    #expect(try Options(["--peers", "go,all"]).peers == names)
    #expect(try Options([]).peers.isEmpty)
  }

  @Test func rounds() throws {
    #expect(try Options(["--peers", "go"]).peerRounds == 5)
    #expect(try Options(["--peers", "go", "--quick"]).peerRounds == 1)
    #expect(try Options(["--peer-rounds", "9", "--quick"]).peerRounds == 9)
  }

  @Test(arguments: [
    (
      ["--peers", "erlang"],
      "no peer is called 'erlang'; there are go, boost, java, tokio, c, swift and all"
    ),
    (["--peers", ","], "--peers needs a peer, not ','"),
    (["--peer-rounds", "0"], "--peer-rounds needs a number from 1 to 1000, not '0'"),
    (
      ["--peers", "go", "--strict"], "--peers goes with neither --compare nor --strict nor --count"
    ),
    (
      ["--compare", "x", "--peers", "go"],
      "--peers goes with neither --compare nor --strict nor --count"
    ),
    (["--peer", "go"], "unknown option '--peer'; did you mean --peers?"),
  ])
  func saysWhatIsWrong(arguments: [String], message: String) {
    #expect {
      try Options(arguments)
    } throws: { "\($0)" == message }
  }
}
