// SwitchSource.swift - the textbook switch in the sources of both architectures.

/// The part of a switch.S that is the textbook switch.
enum SwitchSource {
  /// From the comment above the function to its end.
  static func textbook(_ file: SourceFile) -> (firstLine: Int, lines: [String]) {
    let lines = file.lines
    guard
      let first = lines.firstIndex(where: { $0.contains("/* void weft_swapcontext(") }),
      let last = lines[first...].firstIndex(where: { $0.contains("WEFT_END weft_swapcontext") })
    else { return (1, []) }
    return (first + 1, Array(lines[first...last]))
  }

  /// Without the unwind tables, which say the same in another language.
  static func instructions(_ file: SourceFile) -> [String] {
    let lines = textbook(file).lines
    let start = lines.firstIndex { $0.contains("WEFT_FUNCTION") } ?? 0
    return lines[start...].filter { !$0.contains(".cfi_") }.map { line in
      line.hasPrefix("        ") ? String(line.dropFirst(6)) : line
    }
  }
}
