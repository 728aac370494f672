// The bugs that Tests/Planted plants, and whether they can still be planted.

extension Rules {
  /// Hunks whose old lines do not stand in their file, one after the other.
  static func stalePatches(_ patches: [SourceFile], files: [SourceFile]) -> [Finding] {
    patches.flatMap { patch in
      hunks(of: patch).filter { hunk in
        let file = files.first { $0.path == hunk.path }
        return !contains(file?.lines ?? [], hunk.old)
      }.map { Finding(path: patch.path, line: $0.line, message: "does not fit \($0.path)") }
    }
  }

  private struct Hunk {
    let path: String
    let line: Int
    var old: [String]
  }

  private static func hunks(of patch: SourceFile) -> [Hunk] {
    var hunks: [Hunk] = []
    var path = ""
    for (index, line) in patch.lines.enumerated() {
      if line.hasPrefix("+++ b/") {
        path = String(line.dropFirst(6))
      } else if line.hasPrefix("@@ ") {
        hunks.append(Hunk(path: path, line: index + 1, old: []))
      } else if line.hasPrefix(" ") || line.hasPrefix("-") && !line.hasPrefix("--- ") {
        hunks.indices.last.map { hunks[$0].old.append(String(line.dropFirst())) }
      }
    }
    return hunks
  }

  private static func contains(_ lines: [String], _ part: [String]) -> Bool {
    guard let first = part.first, lines.count >= part.count else { return false }
    return (0...(lines.count - part.count)).contains { start in
      lines[start] == first && Array(lines[start..<start + part.count]) == part
    }
  }
}
