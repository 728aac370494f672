// ArmDecoderTests.swift - instruction words and what objdump says of them.
import Testing

@testable import WeftTool

@Suite struct ArmDecoderTests {
  @Test(arguments: [
    DecoderCase("5f 24 03 d5", "hint #34"),
    DecoderCase("1f 20 03 d5", "nop"),
    DecoderCase("c0 03 5f d6", "ret"),
    DecoderCase("20 00 20 d4", "brk #1"),
    DecoderCase("60 02 3f d6", "blr x19"),
    DecoderCase("00 02 1f d6", "br x16"),
    DecoderCase("ff 83 02 d1", "sub sp,sp,#160"),
    DecoderCase("ff 83 02 91", "add sp,sp,#160"),
    DecoderCase("e8 27 00 6d", "stp d8,d9,[sp]"),
    DecoderCase("ec 37 42 6d", "ldp d12,d13,[sp, #32]"),
    DecoderCase("f3 53 04 a9", "stp x19,x20,[sp, #64]"),
    DecoderCase("fd 7b 49 a9", "ldp x29,x30,[sp, #144]"),
    DecoderCase("fd 7b bf a9", "stp x29,x30,[sp, #-16]!"),
    DecoderCase("fd 7b c1 a8", "ldp x29,x30,[sp], #16"),
    DecoderCase("e9 03 00 91", "mov x9,sp"),
    DecoderCase("3f 01 00 91", "mov sp,x9"),
    DecoderCase("09 00 00 f9", "str x9,[x0]"),
    DecoderCase("29 00 40 f9", "ldr x9,[x1]"),
    DecoderCase("fd 03 1f aa", "mov x29,xzr"),
    DecoderCase("e1 03 02 aa", "mov x1,x2"),
    DecoderCase("00 00 00 00", ".word 0x00000000"),
  ])
  func decodes(_ row: DecoderCase) {
    let code = bytes(row.code)
    let instruction = ArmDecoder.decode((code + [0, 0, 0, 0])[...], at: 0x1000)
    let text = instruction.text.split(separator: " ", maxSplits: 1)
      .map { $0.drop { $0 == " " } }.joined(separator: " ")
    #expect(text == row.text)
    #expect(instruction.bytes == code)
  }

  @Test func branchesKnowTheirTargets() {
    let back = ArmDecoder.decode(bytes("ff ff ff 17")[...], at: 0x1000)
    #expect(back.target == 0xFFC && back.flow == .jump)
    let call = ArmDecoder.decode(bytes("01 00 00 94")[...], at: 0x1000)
    #expect(call.target == 0x1004 && call.flow == .call)
    let unequal = ArmDecoder.decode(bytes("41 00 00 54")[...], at: 0x1000)
    #expect(unequal.text == "b.ne   0x1008" && unequal.flow == .conditional)
    let nonzero = ArmDecoder.decode(bytes("53 00 00 b5")[...], at: 0x1000)
    #expect(nonzero.mnemonic == "cbnz" && nonzero.target == 0x1008)
  }

  @Test func fewerThanFourBytesAreSurvived() {
    let instruction = ArmDecoder.decode(bytes("1f 20")[...], at: 0)
    #expect(instruction.mnemonic == ".word")
    #expect(instruction.bytes.count == 2)
  }
}
