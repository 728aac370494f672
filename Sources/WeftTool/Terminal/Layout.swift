// Layout.swift - boxes, and pictures that fit a screen.

/// Draws a box with a title in its upper edge.
struct Frame {
  var glyphs: Glyphs
  var tone: Tone

  /// The box, every line of it exactly `columns` wide.
  func lines(title: String, columns: Int, rows: [StyledLine]) -> [StyledLine] {
    let inside = columns - 2
    let top = edge(title: title, left: glyphs.topLeft, right: glyphs.topRight, inside)
    let bottom = edge(title: "", left: glyphs.bottomLeft, right: glyphs.bottomRight, inside)
    let middle = rows.map { row in
      StyledLine(glyphs.vertical, tone) + row.fitted(to: inside, ellipsis: glyphs.ellipsis)
        + StyledLine(glyphs.vertical, tone)
    }
    return [top] + middle + [bottom]
  }

  private func edge(title: String, left: String, right: String, _ inside: Int) -> StyledLine {
    let name = title.isEmpty ? "" : " \(title) "
    let cut = String(name.prefix(max(0, inside - 1)))
    let rest = String(repeating: glyphs.horizontal, count: max(0, inside - cut.count - 1))
    return StyledLine(left + glyphs.horizontal, tone) + StyledLine(cut, .strong)
      + StyledLine(rest + right, tone)
  }
}

extension ScreenSize {
  /// Of some arrangements, from rich to poor, the first that fits the rows, cut to the columns;
  /// without rows, the first of all. `footer` is the line at its bottom, if there is one.
  func richest(
    of count: Int, footer: StyledLine?, ellipsis: String, _ picture: (Int) -> [StyledLine]
  ) -> [StyledLine] {
    let columns = max(20, columns)
    let room = rows.map { max(1, $0 - (footer == nil ? 0 : 1)) }
    var chosen: [StyledLine] = []
    for index in 0..<count {
      chosen = picture(index)
      if let room, chosen.count > room { continue }
      break
    }
    if let room { chosen = Array(chosen.prefix(room)) }
    if let footer { chosen.append(footer) }
    return chosen.map { $0.clipped(to: columns, ellipsis: ellipsis) }
  }
}
