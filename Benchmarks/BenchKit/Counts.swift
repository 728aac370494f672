/// How many instructions each of some operations takes, and what that depends on.
///
/// The same program takes the same number on a busy machine and on an idle one, so that a few
/// instructions more show, where times say nothing.
public struct Counts: Equatable, Sendable {
  /// Grows when a reader of an older file could misread a newer one.
  public static let schema = "weft-bench-counts/1"
  /// How a baseline is made, as its file says.
  public static let command =
    "swift run -c release weft-bench --count --save-baseline Benchmarks/Baselines"

  /// What has to be the same for counts to compare.
  public struct Kind: Equatable, Sendable {
    /// `linux`.
    public let system: String
    /// `x86_64`, `aarch64`.
    public let architecture: String
    /// `swift6.3`.
    public let compiler: String
    /// `release` or `debug`.
    public let build: String

    /// A kind.
    public init(system: String, architecture: String, compiler: String, build: String) {
      self.system = system
      self.architecture = architecture
      self.compiler = compiler
      self.build = build
    }

    /// What a baseline of this kind is called in its folder.
    public var fileName: String { "\(architecture)-\(compiler).json" }
  }

  /// Where they belong.
  public let kind: Kind
  /// What may explain a difference: the C library's version, the exact compiler.
  public let notes: [String: String]
  /// Instructions for each operation.
  public let counts: [String: Double]

  /// Counts.
  public init(kind: Kind, notes: [String: String], counts: [String: Double]) {
    self.kind = kind
    self.notes = notes
    self.counts = counts
  }
}

extension Counts {
  /// As it is kept in a file.
  public var json: JSON {
    let kindOf: [JSON.Member] = [
      JSON.Member("system", .string(kind.system)),
      JSON.Member("architecture", .string(kind.architecture)),
      JSON.Member("compiler", .string(kind.compiler)),
      JSON.Member("build", .string(kind.build)),
    ]
    let noted = notes.sorted { $0.key < $1.key }.map { JSON.Member($0.key, .string($0.value)) }
    let counted = counts.sorted { $0.key < $1.key }.map { JSON.Member($0.key, .number($0.value)) }
    return .object(
      [
        JSON.Member("schema", .string(Counts.schema)),
        JSON.Member("command", .string(Counts.command)),
      ] + kindOf + [
        JSON.Member("notes", .object(noted)), JSON.Member("instructions", .object(counted)),
      ])
  }

  /// Reads a file's content.
  public init(json: JSON) throws(ReportError) {
    guard json["schema"]?.string == Counts.schema else {
      throw ReportError("no instruction counts (\(Counts.schema))")
    }
    kind = Kind(
      system: try Counts.text(json, "system"),
      architecture: try Counts.text(json, "architecture"),
      compiler: try Counts.text(json, "compiler"), build: try Counts.text(json, "build"))
    var notes: [String: String] = [:]
    for member in try Counts.members(json, "notes") { notes[member.name] = member.value.string }
    var counts: [String: Double] = [:]
    for member in try Counts.members(json, "instructions") {
      guard let count = member.value.number, count > 0 else {
        throw ReportError("\(member.name) has no number of instructions")
      }
      guard counts.updateValue(count, forKey: member.name) == nil else {
        throw ReportError("\(member.name) is there twice")
      }
    }
    self.notes = notes
    self.counts = counts
  }

  private static func text(_ json: JSON, _ name: String) throws(ReportError) -> String {
    guard let text = json[name]?.string else { throw ReportError("\(name) is missing") }
    return text
  }

  private static func members(_ json: JSON, _ name: String) throws(ReportError) -> [JSON.Member] {
    guard case .object(let members)? = json[name] else { throw ReportError("\(name) is missing") }
    return members
  }
}

/// Counts beside those of a baseline.
public struct CountComparison: Equatable, Sendable {
  /// One operation in both.
  public struct Row: Equatable, Sendable {
    /// The operation.
    public let name: String
    /// Instructions in the baseline.
    public let old: Double
    /// Instructions now.
    public let new: Double
    /// By how many percent they grew; negative if they shrank.
    public var percent: Double { (new - old) / old * 100 }
  }

  /// What a row comes to.
  public enum Verdict: String, Sendable {
    /// Within the threshold.
    case same = ""
    /// More than it allows.
    case more = "MORE"
    /// So many fewer that the baseline guards nothing any longer.
    case fewer
  }

  /// The operations in both.
  public let rows: [Row]
  /// Operations that the baseline does not know.
  public let added: [String]
  /// Operations that only the baseline knows.
  public let missing: [String]
  /// What differs of what may explain a difference.
  public let notes: [String]
  /// What is allowed, in percent.
  public let thresholdPercent: Double

  /// Compares the operations that `filter` accepts, and refuses counts of another kind.
  public init(
    old: Counts, new: Counts, thresholdPercent: Double, filter: (String) -> Bool = { _ in true }
  ) throws(ReportError) {
    let kinds = [
      ("system", old.kind.system, new.kind.system),
      ("architecture", old.kind.architecture, new.kind.architecture),
      ("compiler", old.kind.compiler, new.kind.compiler),
      ("build", old.kind.build, new.kind.build),
    ]
    for (what, before, now) in kinds where before != now {
      throw ReportError(
        "the counts do not compare: the \(what) was \"\(before)\" and is \"\(now)\" now")
    }
    rows = new.counts.sorted { $0.key < $1.key }.compactMap { name, count in
      old.counts[name].map { Row(name: name, old: $0, new: count) }
    }
    added = new.counts.keys.filter { old.counts[$0] == nil }.sorted()
    missing = old.counts.keys.filter { filter($0) && new.counts[$0] == nil }.sorted()
    notes = Set(old.notes.keys).union(new.notes.keys).sorted()
      .filter { old.notes[$0] != new.notes[$0] }
      .map { "\($0) was \(old.notes[$0] ?? "unknown") and is \(new.notes[$0] ?? "unknown") now" }
    self.thresholdPercent = thresholdPercent
  }

  /// What a row comes to.
  public func verdict(of row: Row) -> Verdict {
    if row.percent > thresholdPercent { return .more }
    return row.percent < -thresholdPercent ? .fewer : .same
  }

  /// Whether nothing got more, and each operation was compared: one without a baseline, or one that
  /// is no longer counted, is guarded by nothing.
  public var isFine: Bool {
    added.isEmpty && missing.isEmpty && rows.allSatisfy { verdict(of: $0) != .more }
  }
}

extension Tables {
  /// Counts alone.
  public static func counts(_ counts: Counts) -> String {
    let rows = counts.counts.sorted { $0.key < $1.key }.map {
      [$0.key, fixed($0.value, decimals: 2)]
    }
    return grid([["operation", "instructions"]] + rows, numbers: 1...1)
  }

  /// A comparison, and what to do about it.
  public static func counts(_ comparison: CountComparison) -> String {
    var rows = [["operation", "instructions", "was", "", ""]]
    for row in comparison.rows {
      rows.append([
        row.name, fixed(row.new, decimals: 2), fixed(row.old, decimals: 2), signed(row.percent),
        comparison.verdict(of: row).rawValue,
      ])
    }
    var text = grid(rows, numbers: 1...3)
    let threshold = "\(compact(comparison.thresholdPercent)) %"
    for row in comparison.rows where comparison.verdict(of: row) == .more {
      text += "\(row.name) takes \(fixed(row.new, decimals: 2)) instructions, and took "
      text +=
        "\(fixed(row.old, decimals: 2)): \(signed(row.percent)), where \(threshold) is let go.\n"
    }
    for name in comparison.added { text += "\(name) is not in the baseline.\n" }
    for name in comparison.missing { text += "\(name) is in the baseline, and was not counted.\n" }
    for note in comparison.notes { text += "Note: \(note).\n" }
    if !comparison.isFine {
      text += """
        If that has to be, say why in the commit, and save the baseline anew:
          \(Counts.command)

        """
    } else if comparison.rows.contains(where: { comparison.verdict(of: $0) == .fewer }) {
      text += "Fewer than there were. To hold that, save the baseline anew:\n  \(Counts.command)\n"
    }
    return text
  }
}
