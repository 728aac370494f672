// CommandLineTests.swift - good and bad command lines, help and colour.
import Testing

@testable import WeftTool

@Suite struct CommandLineTests {
  /// A command line, and what the message must name.
  struct Bad: CustomTestStringConvertible {
    var words: [String]
    var names: [String]
    var testDescription: String { words.joined(separator: " ") }
    init(_ line: String, _ names: String...) {
      words = line.split(separator: " ").map(String.init)
      self.names = names
    }
  }

  @Test(arguments: [
    Bad("demo smu", "'smu'", "Did you mean 'sum'?"),
    Bad("hlep", "'hlep'", "Did you mean 'help'?"),
    Bad("demo sum --setp", "--setp", "Did you mean '--step'?"),
    Bad("demo sum -x", "-x", "--help"),
    Bad("demo sum extra", "'extra'"),
    Bad("demo swap --upto 3", "--upto"),
    Bad("demo sum --upto", "--upto", "needs a value"),
    Bad("demo sum --step=3", "--step", "'3'"),
    Bad("demo sum --step --step", "twice"),
    Bad("demo sum --step --asm", "--asm", "--step"),
    Bad("demo sum --upto x", "--upto x", "not a whole number"),
    Bad("demo sum --upto 1.5", "--upto 1.5", "not a whole number"),
    Bad("demo sum --upto -", "--upto -", "not a whole number"),
    Bad("demo sum --upto -1", "--upto -1", "too small"),
    Bad("demo sum --upto=-1", "--upto -1", "too small"),
    Bad("demo sum --upto 4294967296", "overflow", "4294967295"),
    Bad("demo sum --upto 9223372036854775808", "overflow"),
    Bad("demo sum --upto 99999999999999999999999", "overflow"),
    Bad("demo sum --coroutines 0", "--coroutines 0", "too small"),
    Bad("demo sum --upto 50000 --coroutines 10001", "--coroutines 10001", "10000"),
    Bad("demo sum --upto 3 --coroutines 4", "--coroutines 4", "at most 3"),
    Bad("demo sum --upto 20000 --step", "--step", "20,003"),
    Bad("demo generator --count 94", "--count 94", "93"),
    Bad("demo primes --upto 20001", "--upto 20001", "20000"),
    Bad("demo pol", "'pol'", "Did you mean 'pool'?"),
    Bad("demo skynte", "'skynte'", "Did you mean 'skynet'?"),
    Bad("demo pool --workres 2", "--workres", "Did you mean '--workers'?"),
    Bad("demo pool --workers 0", "--workers 0", "too small", "256"),
    Bad("demo pool --workers 257", "--workers 257", "too large"),
    Bad("demo pool --fibers 0", "--fibers 0", "too small"),
    Bad("demo pool --fibers 100001", "--fibers 100001", "100000"),
    Bad("demo pool --upto 3 --fibers 4", "--fibers 4", "at most 3"),
    Bad("demo pool --upto 4294967296", "overflow", "4294967295"),
    Bad("demo pool --step --fibers 100 --upto 200", "100 fibers", "at most 99"),
    Bad("demo pool --step --workers 17", "17 workers", "16 workers"),
    Bad("demo pool --step --upto 20000", "20,008", "too many"),
    Bad("demo skynet --leaves 0", "--leaves 0", "too small"),
    Bad("demo pingpong --rounds 0", "--rounds 0", "too small"),
    Bad("demo ring --fibers 0", "--fibers 0", "too small"),
    Bad("demo seive", "'seive'", "Did you mean 'sieve'?"),
    Bad("demo sieve --count 5001", "--count 5001", "too large", "5000"),
    Bad("demo sieve --capacity -1", "--capacity -1", "too small"),
    Bad("demo pipeline --count 0", "--count 0", "too small"),
    Bad("demo pipeline --fibers 0", "--fibers 0", "too small"),
    Bad("demo pipeline --chunk x", "--chunk x", "not a whole number"),
    Bad("demo dining --rule right", "--rule right", "left", "order", "waiter"),
    Bad("demo dining --philosophers 1", "--philosophers 1", "too small"),
    Bad("demo dining --meals 0", "--meals 0", "too small"),
    Bad("info --color blue", "--color blue", "always"),
    Bad("help demo swpa", "'swpa'", "Did you mean 'swap'?"),
  ])
  func isRefused(_ bad: Bad) throws {
    let error = #expect(throws: ToolError.self) {
      let invocation = try Parser.parse(bad.words)
      _ = try invocation.command.run(invocation)
    }
    let text = [error?.message, error?.remedy].compactMap(\.self).joined(separator: "\n")
    #expect(error?.code == .usage)
    for name in bad.names { #expect(text.contains(name), "\(text)") }
  }

  @Test func refusalsGoToStandardErrorWithCode64() throws {
    let run = try weft("demo", "sum", "--upto", "4294967296")
    #expect(run.status == 64)
    #expect(run.out == "")
    #expect(run.err.hasPrefix("weft: --upto 4294967296: too large"))
  }

  @Test func helpOfEveryCommandNamesItsOptionsAndChildren() throws {
    for command in CommandTable.all {
      let text = Help.text(for: command, Console(color: .never)).map(\.text).joined(separator: "\n")
      for option in command.options + CommandTable.common {
        #expect(text.contains("--" + option.name))
      }
      for child in CommandTable.children(of: command.path) {
        #expect(text.contains(child.summary))
      }
      for example in command.examples { #expect(text.contains(example.line)) }
    }
  }

  /// Examples in the help are command lines that are understood.
  @Test func examplesParse() throws {
    for example in CommandTable.all.flatMap(\.examples) {
      let line = example.line.split(separator: "|").last ?? ""
      let words = line.split(separator: " ").map(String.init)
      #expect(words.first == "weft")
      _ = try Parser.parse(Array(words.dropFirst()))
    }
  }

  @Test(arguments: [
    ["--help"], ["demo", "--help"], ["demo", "sum", "--help"], ["-h"], ["help", "info"],
    ["demo", "sum", "--upto", "x", "--help"],
  ])
  func helpIsData(_ words: [String]) throws {
    let invocation = try Parser.parse(words)
    #expect(invocation.has("help") || invocation.command.path == ["help"])
  }

  @Test func versionAndBareCommand() throws {
    #expect(try weft("--version").out == "weft \(CommandTable.version)\n")
    let bare = try weft()
    #expect(bare.out.contains("Usage:"))
    #expect(bare.status == 0)
  }

  @Test func optionsMayStandAnywhere() throws {
    let invocation = try Parser.parse(["--color", "never", "demo", "--upto=7", "sum"])
    #expect(invocation.command.path == ["demo", "sum"])
    #expect(invocation.values["upto"] == "7")
    #expect(invocation.values["color"] == "never")
  }

  @Test func colourFollowsTheRules() {
    let none: (String) -> String? = { _ in nil }
    let noColor: (String) -> String? = { $0 == "NO_COLOR" ? "1" : nil }
    let dumb: (String) -> String? = { $0 == "TERM" ? "dumb" : nil }
    #expect(ColorChoice.auto.allows(terminal: true, none))
    #expect(!ColorChoice.auto.allows(terminal: false, none))
    #expect(!ColorChoice.auto.allows(terminal: true, noColor))
    #expect(!ColorChoice.auto.allows(terminal: true, dumb))
    #expect(ColorChoice.always.allows(terminal: false, noColor))
    #expect(!ColorChoice.never.allows(terminal: true, none))
  }

  @Test func noEscapesWithoutATerminalUnlessAsked() throws {
    #expect(!(try weft("demo", "swap", "--step").out.contains("\u{1B}")))
    #expect(!(try weft("--help").out.contains("\u{1B}")))
    #expect(try weft("--help", "--color", "always").out.contains("\u{1B}[1m"))
  }
}
