/// A command line that makes no sense.
public struct UsageError: Error, Equatable, CustomStringConvertible, Sendable {
  /// A sentence for the user.
  public let description: String

  init(_ description: String) { self.description = description }
}

/// What the command line asks for.
public struct Options: Equatable, Sendable {
  /// Jobs to run; all if empty.
  public var filters: [String] = []
  /// Print the jobs instead of running them.
  public var list = false
  /// Print JSON instead of tables.
  public var json = false
  /// Write JSON to this file as well.
  public var save: String?
  /// Draw a chart into this file.
  public var chart: String?
  /// Compare with the report in this file.
  public var compare: String?
  /// What counts as slower, in percent; for counts of instructions, as more.
  public var thresholdPercent = 10.0
  /// Count instructions instead of measuring time.
  public var count = false
  /// Compare the counts with those in this file, or with the right one of this folder.
  public var baseline: String?
  /// Write the counts to this file, or into this folder.
  public var saveBaseline: String?
  /// Few and short samples.
  public var quick = false
  /// Exit with 2 if a goal is missed.
  public var strict = false
  /// Peers to run beside Weft, instead of the jobs; none if empty.
  public var peers: [String] = []
  /// How often each program of a peer is started for each of its jobs.
  public var peerRounds = 5
  /// Print the help.
  public var help = false
  /// Print the version.
  public var version = false
  /// How to sample.
  public var settings = Settings()

  /// Reads a command line, without the program's name.
  public init(_ arguments: [String]) throws(UsageError) {
    var rest = arguments[...]
    var samples: Int?
    var rounds: Int?
    var threshold: Double?
    while let argument = rest.popFirst() {
      let (name, attached) = Options.split(argument)
      guard let option = Option(rawValue: name) else { throw Options.unknown(argument) }
      var value = ""
      if option.takesValue {
        guard let given = attached ?? rest.popFirst(), !given.isEmpty else {
          throw UsageError("\(name) needs a value")
        }
        value = given
      } else if attached != nil {
        throw UsageError("\(name) takes no value")
      }
      switch option {
      case .filter: filters.append(value)
      case .list: list = true
      case .json: json = true
      case .save: save = value
      case .chart: chart = try Options.chartFile(value)
      case .compare: compare = value
      case .threshold: threshold = try Options.percent(value)
      case .count: count = true
      case .baseline: baseline = value
      case .saveBaseline: saveBaseline = value
      case .samples: samples = try Options.sampleCount(value)
      case .peers: peers += try Options.peerNames(value)
      case .peerRounds: rounds = try Options.roundCount(value)
      case .quick: quick = true
      case .strict: strict = true
      case .help, .shortHelp: help = true
      case .version: version = true
      }
    }
    // After the loop, so that --quick --samples and --samples --quick mean the same.
    if quick { settings = .quick }
    if let samples { settings.samples = samples }
    if quick { peerRounds = 1 }
    if let rounds { peerRounds = rounds }
    thresholdPercent = threshold ?? (count ? 5 : 10)
    try checkCounting()
    if !peers.isEmpty, compare != nil || strict || count {
      throw UsageError("--peers goes with neither --compare nor --strict nor --count")
    }
  }

  /// Options of one kind of run mean nothing to the other, which must not ignore them.
  private func checkCounting() throws(UsageError) {
    if !count, baseline != nil || saveBaseline != nil {
      throw UsageError("--baseline and --save-baseline go with --count")
    }
    if count, json || save != nil || chart != nil || compare != nil || strict || list {
      throw UsageError(
        "--count goes with --filter, --threshold, --baseline and --save-baseline only")
    }
    if saveBaseline != nil, !filters.isEmpty {
      throw UsageError("a baseline has every operation; --save-baseline goes without --filter")
    }
  }

  private enum Option: String, CaseIterable {
    case filter = "--filter"
    case list = "--list"
    case json = "--json"
    case save = "--save"
    case chart = "--chart"
    case compare = "--compare"
    case threshold = "--threshold"
    case count = "--count"
    case baseline = "--baseline"
    case saveBaseline = "--save-baseline"
    case samples = "--samples"
    case quick = "--quick"
    case strict = "--strict"
    case peers = "--peers"
    case peerRounds = "--peer-rounds"
    case help = "--help"
    case shortHelp = "-h"
    case version = "--version"

    var takesValue: Bool {
      switch self {
      case .filter, .save, .chart, .compare, .threshold, .samples, .baseline, .saveBaseline,
        .peers, .peerRounds:
        true
      case .list, .json, .quick, .strict, .count, .help, .shortHelp, .version: false
      }
    }
  }

  private static func split(_ argument: String) -> (name: String, value: String?) {
    guard argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") else {
      return (argument, nil)
    }
    return (String(argument[..<equals]), String(argument[argument.index(after: equals)...]))
  }

  private static func unknown(_ argument: String) -> UsageError {
    guard argument.hasPrefix("-") else {
      return UsageError("unexpected '\(argument)'; to choose jobs, use --filter \(argument)")
    }
    let name = split(argument).name
    let near = nearest(to: name, among: Option.allCases.map(\.rawValue))
    return UsageError("unknown option '\(name)'" + (near.map { "; did you mean \($0)?" } ?? ""))
  }

  private static func chartFile(_ value: String) throws(UsageError) -> String {
    guard value.hasSuffix(".svg") || value.hasSuffix(".html") else {
      throw UsageError("--chart draws .svg and .html; '\(value)' ends in neither")
    }
    return value
  }

  private static func percent(_ value: String) throws(UsageError) -> Double {
    guard let number = Double(value), number.isFinite, number >= 0 else {
      throw UsageError("--threshold needs a percentage, not '\(value)'")
    }
    return number
  }

  /// The names in a list with commas, each once and in the order of the table.
  private static func peerNames(_ value: String) throws(UsageError) -> [String] {
    let known = PeerRecipe.all.map(\.name)
    let asked = value.split(separator: ",").map(String.init)
    for name in asked where name != "all" && !known.contains(name) {
      throw UsageError(
        "no peer is called '\(name)'; there are \(known.joined(separator: ", ")) and all")
    }
    guard !asked.isEmpty else { throw UsageError("--peers needs a peer, not '\(value)'") }
    return asked.contains("all") ? known : known.filter(asked.contains)
  }

  private static func roundCount(_ value: String) throws(UsageError) -> Int {
    guard let number = Int(value), (1...1000).contains(number) else {
      throw UsageError("--peer-rounds needs a number from 1 to 1000, not '\(value)'")
    }
    return number
  }

  private static func sampleCount(_ value: String) throws(UsageError) -> Int {
    guard let number = Int(value), (1...100_000).contains(number) else {
      throw UsageError("--samples needs a number from 1 to 100000, not '\(value)'")
    }
    return number
  }
}

extension Options {
  /// Whether a job's name is asked for. A filter that ends in `*` is a prefix, any other a
  /// part of the name; one of several is enough.
  public func accepts(_ name: String) -> Bool {
    filters.isEmpty
      || filters.contains { filter in
        filter.hasSuffix("*") ? name.hasPrefix(filter.dropLast()) : contains(name, filter)
      }
  }
}

/// Whether `text` contains `part`; the library's own search would need another module.
private func contains(_ text: String, _ part: String) -> Bool {
  var rest = Substring(text)
  while true {
    if rest.hasPrefix(part) { return true }
    if rest.popFirst() == nil { return false }
  }
}

/// The candidate that differs least from a misspelt word, if it differs by little.
func nearest(to word: String, among candidates: [String]) -> String? {
  let ranked = candidates.map { (candidate: $0, distance: editDistance(word, $0)) }
  guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
  return best.distance <= max(1, word.count / 3) ? best.candidate : nil
}

/// How many single characters have to be inserted, deleted or replaced (Levenshtein).
func editDistance(_ first: String, _ second: String) -> Int {
  let target = Array(second)
  var row = Array(0...target.count)
  for (index, character) in first.enumerated() {
    var diagonal = row[0]
    row[0] = index + 1
    for (column, other) in target.enumerated() {
      let replaced = diagonal + (character == other ? 0 : 1)
      diagonal = row[column + 1]
      row[column + 1] = min(replaced, diagonal + 1, row[column] + 1)
    }
  }
  return row[target.count]
}
