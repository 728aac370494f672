import Testing

@testable import BenchKit

@Suite("Options")
struct OptionsTests {
  @Test func nothingMeansEverything() throws {
    let options = try Options([])
    #expect(options.accepts("switch.inline"))
    #expect(options.settings == Settings())
    #expect(options.thresholdPercent == 10)
  }

  @Test func readsThemAll() throws {
    let options = try Options([
      "--filter", "a", "--filter=b*", "--list", "--json", "--save", "s.json", "--chart=c.svg",
      "--compare", "o.json", "--threshold", "2.5", "--samples", "9", "--quick", "--strict", "-h",
      "--version",
    ])
    #expect(options.filters == ["a", "b*"])
    #expect(options.list && options.json && options.strict && options.help && options.version)
    #expect(options.save == "s.json" && options.chart == "c.svg" && options.compare == "o.json")
    #expect(options.thresholdPercent == 2.5)
    #expect(options.settings.samples == 9)
    #expect(options.settings.sampleNanoseconds == Settings.quick.sampleNanoseconds)
  }

  @Test func counting() throws {
    let options = try Options([
      "--count", "--baseline", "b", "--save-baseline=s.json",
    ])
    #expect(options.count && options.baseline == "b" && options.saveBaseline == "s.json")
    #expect(options.thresholdPercent == 5)
    #expect(try Options(["--threshold", "7", "--count"]).thresholdPercent == 7)
  }

  @Test func orderOfQuickAndSamplesDoesNotMatter() throws {
    #expect(try Options(["--samples", "9", "--quick"]) == Options(["--quick", "--samples", "9"]))
  }

  @Test(arguments: [
    ("inline", "switch.inline", true), ("inline", "inline", true), ("switch*", "switch.x", true),
    ("switch*", "my.switch", false), ("*", "anything", true), ("x", "switch", false),
    ("switch.inline.more", "switch.inline", false),
  ])
  func filters(filter: String, name: String, accepted: Bool) throws {
    #expect(try Options(["--filter", filter]).accepts(name) == accepted)
  }

  @Test func oneFilterOfSeveralIsEnough() throws {
    let options = try Options(["--filter", "a", "--filter", "b"])
    #expect(options.accepts("b") && options.accepts("a") && !options.accepts("c"))
  }

  @Test(arguments: [
    (["--fliter", "x"], "unknown option '--fliter'; did you mean --filter?"),
    (["--jsno"], "unknown option '--jsno'; did you mean --json?"),
    (["--strickt=1"], "unknown option '--strickt'; did you mean --strict?"),
    (["--entirely-else"], "unknown option '--entirely-else'"),
    (["switch"], "unexpected 'switch'; to choose jobs, use --filter switch"),
    (["--filter"], "--filter needs a value"),
    (["--filter="], "--filter needs a value"),
    (["--list=yes"], "--list takes no value"),
    (["--samples", "0"], "--samples needs a number from 1 to 100000, not '0'"),
    (["--samples", "many"], "--samples needs a number from 1 to 100000, not 'many'"),
    (["--threshold", "-1"], "--threshold needs a percentage, not '-1'"),
    (["--threshold", "nan"], "--threshold needs a percentage, not 'nan'"),
    (["--baseline", "b"], "--baseline and --save-baseline go with --count"),
    (["--save-baseline", "b"], "--baseline and --save-baseline go with --count"),
    (
      ["--count", "--json"],
      "--count goes with --filter, --threshold, --baseline and --save-baseline only"
    ),
    (
      ["--count", "--filter", "a", "--save-baseline", "b"],
      "a baseline has every operation; --save-baseline goes without --filter"
    ),
    (["--chart", "x.png"], "--chart draws .svg and .html; 'x.png' ends in neither"),
  ])
  func saysWhatIsWrong(arguments: [String], message: String) {
    #expect {
      try Options(arguments)
    } throws: { "\($0)" == message }
  }

  @Test(arguments: [
    ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("same", "same", 0),
    ("ab", "ba", 2),
  ])
  func distances(first: String, second: String, distance: Int) {
    #expect(editDistance(first, second) == distance)
  }
}
