// Suggestion.swift - "did you mean".

/// Finds what somebody probably wanted to type.
enum Suggestion {
  /// The name that is nearest, if one is near enough to be a slip of the finger.
  static func closest(to word: String, among names: [String]) -> String? {
    let word = word.lowercased()
    let scored = names.map { (name: $0, distance: distance(word, $0.lowercased())) }
    guard let best = scored.min(by: { $0.distance < $1.distance }) else { return nil }
    if best.distance <= max(1, min(word.count, best.name.count) / 3 + 1), best.distance < word.count
    {
      return best.name
    }
    // A beginning of just one name counts as well.
    let begun = names.filter { $0.lowercased().hasPrefix(word) && !word.isEmpty }
    return begun.count == 1 ? begun[0] : nil
  }

  static func remedy(for word: String, among names: [String]) -> String? {
    closest(to: word, among: names).map { "Did you mean '\($0)'?" }
  }

  /// How many letters have to be added, dropped, changed or exchanged with their neighbour.
  static func distance(_ left: String, _ right: String) -> Int {
    let (a, b) = (Array(left), Array(right))
    var rows = [[Int]](repeating: [Int](repeating: 0, count: b.count + 1), count: a.count + 1)
    for i in 0...a.count { rows[i][0] = i }
    for j in 0...b.count { rows[0][j] = j }
    guard !a.isEmpty, !b.isEmpty else { return max(a.count, b.count) }
    for i in 1...a.count {
      for j in 1...b.count {
        let change = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
        var best = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, change)
        if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
          best = min(best, rows[i - 2][j - 2] + 1)
        }
        rows[i][j] = best
      }
    }
    return rows[a.count][b.count]
  }
}
