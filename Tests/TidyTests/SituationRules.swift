// The table of situations in Tests/README.md, and whether the tests that it names are there.

extension Rules {
  static let situationsPath = "Tests/README.md"
  /// The last number of the table, and those that were never given out.
  static let lastSituation = 102
  static let unusedSituations: Set = [27, 54, 57, 58, 71, 74, 76, 78, 80, 85, 88, 93, 96]
  /// Files of tests that are still being written: names of tests in them are taken on trust until
  /// they are there.
  static let testsToCome: Set<String> = []
  /// How the third column of a situation begins that needs no test.
  static let noTest = "none: "

  /// A row of the table: its number, and what stands in its columns.
  private struct Situation {
    let line: Int
    let number: Int
    let columns: [Substring]
    /// The parts in backquotes of the last column that name a test.
    var references: [Substring] {
      columns[2].split(separator: "`", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 && $0.element.contains(".swift") }.map(\.element)
    }
  }

  /// Numbers that are missing or come twice, rows that name no test and give no reason, and tests
  /// that are not there.
  static func situations(_ table: SourceFile, in files: [SourceFile]) -> [Finding] {
    let rows = table.lines.enumerated().compactMap(situation)
    let expected = (1...lastSituation).filter { !unusedSituations.contains($0) }
    var findings: [Finding] = []
    func add(_ line: Int, _ message: String) {
      findings.append(Finding(path: table.path, line: line, message: message))
    }
    let byNumber = Dictionary(grouping: rows, by: \.number)
    for number in expected where byNumber[number] == nil {
      add(1, "situation \(number) is missing")
    }
    for row in rows {
      if !expected.contains(row.number) { add(row.line, "there is no situation \(row.number)") }
      if byNumber[row.number]?.first?.line != row.line {
        add(row.line, "situation \(row.number) comes twice")
      }
      if row.columns[1].isEmpty { add(row.line, "situation \(row.number) is not described") }
      let hasReason = row.columns[2].hasPrefix(noTest) && row.columns[2].count > noTest.count
      if row.references.isEmpty && !hasReason {
        add(row.line, "situation \(row.number) names no test and does not say why")
      }
      for reference in row.references {
        if let reason = missing(reference, in: files) { add(row.line, reason) }
      }
    }
    return findings
  }

  /// `| 1 | what went wrong | the test |`
  private static func situation(_ index: Int, _ line: String) -> Situation? {
    guard line.hasPrefix("| ") else { return nil }
    let columns = line.split(separator: "|", omittingEmptySubsequences: false)
      .dropFirst().dropLast().map { column in
        let start = column.drop { $0 == " " }
        return start.dropLast(start.reversed().prefix { $0 == " " }.count)
      }
    guard columns.count == 3, let number = Int(columns[0]) else { return nil }
    return Situation(line: index + 1, number: number, columns: columns)
  }

  /// Why `Module/File.swift: test` names no test; nil if it does.
  private static func missing(_ reference: Substring, in files: [SourceFile]) -> String? {
    let parts = reference.split(separator: ":").map { $0.drop { $0 == " " } }
    guard parts.count == 2 else { return "\(reference) is not `Module/File.swift: test`" }
    let path = "Tests/" + parts[0]
    guard let file = files.first(where: { $0.path == path }) else {
      return testsToCome.contains(path) ? nil : "there is no \(path)"
    }
    // The attribute may stand in lines of its own, with arguments, above the function.
    let start = file.code.firstIndex { contains(word: "func \(parts[1])", in: $0) }
    guard let start else { return "\(path) has no \(parts[1])" }
    let above = file.code[...start].reversed().prefix(6).prefix { line in
      line == file.code[start] || !line.allSatisfy { $0 == " " || $0 == "}" }
    }
    return above.contains { $0.contains("@Test") } ? nil : "\(parts[1]) of \(path) is no test"
  }
}
