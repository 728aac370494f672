// Program.swift - the C programs, as the tool names them.
import CWeftDemo

/// One of the C programs that run on the textbook switch.
enum Program: Equatable {
  case swap
  case sum
  case deal(upto: Int64, coroutines: Int)

  var name: String {
    switch self {
    case .swap: "swap"
    case .sum, .deal: "sum"
    }
  }

  var code: weft_demo_program {
    switch self {
    case .swap: WEFT_DEMO_SWAP
    case .sum: WEFT_DEMO_SUM
    case .deal: WEFT_DEMO_DEAL
    }
  }

  var source: SourceFile {
    switch self {
    case .swap: .swap
    case .sum: .sum
    case .deal: .deal
    }
  }

  /// The names of its sides; side 0 is main.
  func sideName(_ side: Int) -> String {
    switch (self, side) {
    case (_, 0): "main"
    case (.deal, _): "coroutine \(side)"
    case (_, 1): "routine"
    default: "routine2"
    }
  }

  /// The name of the function whose loop adds.
  var loopFunction: String {
    if case .deal = self { return "coroutine" }
    return "routine"
  }

  var hasSum: Bool { self != .swap }
}

/// A file that was embedded when the tool was built.
enum SourceFile: String {
  case swap = "swap.c"
  case sum = "sum.c"
  case deal = "deal.c"
  case x86 = "asm/x86_64/switch.S"
  case arm = "asm/aarch64/switch.S"

  /// Its lines; line 1 is at index 0.
  var lines: [String] {
    let file =
      switch self {
      case .swap: WEFT_DEMO_FILE_SWAP
      case .sum: WEFT_DEMO_FILE_SUM
      case .deal: WEFT_DEMO_FILE_DEAL
      case .x86: WEFT_DEMO_FILE_X86_64
      case .arm: WEFT_DEMO_FILE_AARCH64
      }
    var size = 0
    // SAFETY: `size` lives through the call; the result is constant data of that many bytes.
    let bytes = unsafe UnsafeRawBufferPointer(start: weft_demo_file_text(file, &size), count: size)
    // SAFETY: `bytes` spans constant data.
    let text = unsafe String(decoding: bytes, as: UTF8.self)
    return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
}
