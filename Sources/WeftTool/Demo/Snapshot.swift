// Snapshot.swift - what is seen at one switch of a stepped program.
//
// The program stands still in the middle of a switch: the side that left has pushed its registers
// and its stack pointer is saved; the other side's has not been loaded yet. So all stacks can be
// read, and everything here is a copy of what really lies on them.

/// A 64-bit word on a stack.
struct StackWord: Equatable {
  var address: UInt64
  var value: UInt64
}

/// A register that the switch keeps, in the place where it lies.
struct SavedRegister: Equatable {
  var name: String
  var word: StackWord
}

/// A code address with the function that it is in.
struct CodeAddress: Equatable {
  var address: UInt64
  var function: String?
  var offset: UInt64

  var symbol: String {
    guard let function else { return "0x" + hex(address) }
    return offset == 0 ? function : "\(function)+0x\(hex(offset))"
  }
}

/// The stack of one side.
struct SideImage: Equatable {
  var side: Int
  var name: String
  var guardStart: UInt64
  var limit: UInt64
  var top: UInt64
  var stackPointer: UInt64
  /// Lowest address first.
  var registers: [SavedRegister]
  var returnWord: StackWord
  var returnsTo: CodeAddress
  /// False: it has never run, and what lies there was laid out for its first entry.
  var hasBegun: Bool
  /// The line of the source in which it waits, 0 if unknown.
  var line: Int
  /// The loop counter and the partial sum, where this side has them.
  var counter: FoundValue?
  var sum: FoundValue?

  var usedBytes: UInt64 { top - stackPointer }
  var freeBytes: UInt64 { stackPointer - limit }
}

/// A variable of the program, found on the stack.
struct FoundValue: Equatable {
  var value: Int64
  var place: Place

  enum Place: Equatable {
    /// It was in this register, which the switch has put on the stack.
    case register(String)
    /// The compiler keeps it in memory, in the routine's own frame.
    case memory(UInt64)
  }
}

/// Everything at one switch.
struct Snapshot: Equatable {
  /// Counts from 1; the end of the program is one more than the last switch.
  var step: Int
  var switches: Int
  var from: Int
  /// Nil at the end.
  var to: Int?
  /// The sides to show, `from` and `to` among them if they are not main.
  var shown: [SideImage]
  /// Main, if the switch leaves or enters it.
  var main: SideImage?
  /// Every line printed so far.
  var output: [String]

  var isEnd: Bool { to == nil }

  func image(of side: Int?) -> SideImage? {
    guard let side else { return nil }
    return side == 0 ? main : shown.first { $0.side == side }
  }
}
