// StepKey.swift - what can be asked of the stepper, by key or by line.

/// A request of the user's.
enum StepKey: Equatable {
  case next, back, runOn, quit, help
  /// Only where there is something to steal.
  case steal
  /// A number key. More may follow, where there are numbers of two digits.
  case digit(Int)
  /// A whole number.
  case choose(Int)

  /// Whether only some programs have it.
  var isOwn: Bool {
    switch self {
    case .next, .back, .runOn, .quit, .help: false
    case .steal, .digit, .choose: true
    }
  }

  /// A line of a script. Nil: not understood.
  init?(line: String) {
    let word = line.split(whereSeparator: \.isWhitespace).joined()
    switch word {
    case "", "n": self = .next
    case "b": self = .back
    case "c": self = .runOn
    case "q": self = .quit
    case "?", "h": self = .help
    case "s": self = .steal
    default:
      guard word.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(word) else {
        return nil
      }
      self = .choose(number)
    }
  }

  /// The bytes of one key press. Nil: a key without a meaning here.
  init?(bytes: [UInt8]) {
    switch bytes {
    case [0x0A], [0x0D], [0x20], Array("n".utf8), Array("\u{1B}[C".utf8), Array("\u{1B}OC".utf8):
      self = .next
    case Array("b".utf8), [0x7F], [0x08], Array("\u{1B}[D".utf8), Array("\u{1B}OD".utf8):
      self = .back
    case Array("c".utf8): self = .runOn
    case Array("q".utf8), [0x04]: self = .quit
    case Array("?".utf8), Array("h".utf8): self = .help
    case Array("s".utf8): self = .steal
    default:
      guard bytes.count == 1, (0x30...0x39).contains(bytes[0]) else { return nil }
      self = .digit(Int(bytes[0]) - 0x30)
    }
  }
}

/// A key as the footer and the help name it.
struct KeyLegend: Equatable {
  var label: String
  /// In the footer.
  var word: String
  /// In the help.
  var meaning: String
}
