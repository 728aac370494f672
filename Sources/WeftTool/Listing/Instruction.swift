// Instruction.swift - one decoded machine instruction, of any architecture.

/// A machine instruction, or bytes that are none that the decoder knows.
struct Instruction: Equatable {
  var address: UInt64
  var bytes: [UInt8]
  var mnemonic: String
  /// In the order of the AT&T syntax on x86-64: sources first.
  var operands: [String] = []
  var flow = Flow.straight
  /// Where a branch goes, or what a rip-relative operand refers to.
  var target: UInt64?

  /// What comes after it.
  enum Flow: Equatable {
    case straight, call, jump, conditional, end, unknown
  }

  var end: UInt64 { address + UInt64(bytes.count) }

  var text: String {
    operands.isEmpty
      ? mnemonic : mnemonic.padded(to: 6) + " " + operands.joined(separator: ",")
  }
}

/// Decodes one instruction.
protocol Decoder {
  /// The instruction at the start of `bytes`, which lie at `address`. Never fails, never reads
  /// beyond `bytes`: what it does not know comes out as bytes, one unit long.
  static func decode(_ bytes: ArraySlice<UInt8>, at address: UInt64) -> Instruction
}
