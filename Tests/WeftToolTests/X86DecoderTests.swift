// X86DecoderTests.swift - byte strings and what objdump says of them.
import Testing

@testable import WeftTool

/// Bytes from a text such as "48 89 e5".
func bytes(_ text: String) -> [UInt8] {
  text.split(separator: " ").compactMap { UInt8($0, radix: 16) }
}

/// One row of a decoder's table.
struct DecoderCase: CustomTestStringConvertible {
  var code: String
  var text: String
  var testDescription: String { "\(code): \(text)" }
  init(_ code: String, _ text: String) {
    self.code = code
    self.text = text
  }
}

@Suite struct X86DecoderTests {
  private static let table = [
    DecoderCase("f3 0f 1e fa", "endbr64"),
    DecoderCase("55", "push %rbp"),
    DecoderCase("41 57", "push %r15"),
    DecoderCase("6a ff", "push $0xffffffffffffffff"),
    DecoderCase("5b", "pop %rbx"),
    DecoderCase("41 5c", "pop %r12"),
    DecoderCase("48 89 e5", "mov %rsp,%rbp"),
    DecoderCase("48 89 27", "mov %rsp,(%rdi)"),
    DecoderCase("48 8b 26", "mov (%rsi),%rsp"),
    DecoderCase("8b 44 24 08", "mov 0x8(%rsp),%eax"),
    DecoderCase("48 89 45 f0", "mov %rax,-0x10(%rbp)"),
    DecoderCase("4b 8b 34 e6", "mov (%r14,%r12,8),%rsi"),
    DecoderCase("48 8b 04 c5 10 00 00 00", "mov 0x10(,%rax,8),%rax"),
    DecoderCase("64 48 8b 04 25 28 00 00 00", "mov %fs:0x28,%rax"),
    DecoderCase("66 89 08", "mov %cx,(%rax)"),
    DecoderCase("40 88 37", "mov %sil,(%rdi)"),
    DecoderCase("88 27", "mov %ah,(%rdi)"),
    DecoderCase("41 bf 0a 00 00 00", "mov $0xa,%r15d"),
    DecoderCase("48 b8 88 77 66 55 44 33 22 11", "movabs $0x1122334455667788,%rax"),
    DecoderCase("48 c7 c0 ff ff ff ff", "mov $0xffffffffffffffff,%rax"),
    DecoderCase("48 c7 45 f8 00 00 00 00", "movq $0x0,-0x8(%rbp)"),
    DecoderCase("c6 00 01", "movb $0x1,(%rax)"),
    DecoderCase("48 8d 3d 8d 8c 05 00", "lea 0x58c8d(%rip),%rdi"),
    DecoderCase("4c 8d 3c d8", "lea (%rax,%rbx,8),%r15"),
    DecoderCase("48 63 1d 10 00 00 00", "movslq 0x10(%rip),%rbx"),
    DecoderCase("0f b6 c0", "movzbl %al,%eax"),
    DecoderCase("48 0f bf c9", "movswq %cx,%rcx"),
    DecoderCase("45 31 ff", "xor %r15d,%r15d"),
    DecoderCase("4c 01 fb", "add %r15,%rbx"),
    DecoderCase("48 03 45 f8", "add -0x8(%rbp),%rax"),
    DecoderCase("48 83 c4 08", "add $0x8,%rsp"),
    DecoderCase("48 05 00 01 00 00", "add $0x100,%rax"),
    DecoderCase("48 83 ec 18", "sub $0x18,%rsp"),
    DecoderCase("48 81 ec 00 10 00 00", "sub $0x1000,%rsp"),
    DecoderCase("49 83 ff 0a", "cmp $0xa,%r15"),
    DecoderCase("48 83 7d f0 0a", "cmpq $0xa,-0x10(%rbp)"),
    DecoderCase("3c 41", "cmp $0x41,%al"),
    DecoderCase("48 85 c0", "test %rax,%rax"),
    DecoderCase("f6 c1 01", "test $0x1,%cl"),
    DecoderCase("a8 01", "test $0x1,%al"),
    DecoderCase("49 ff c7", "inc %r15"),
    DecoderCase("48 ff 05 10 00 00 00", "incq 0x10(%rip)"),
    DecoderCase("49 ff cf", "dec %r15"),
    DecoderCase("f7 f9", "idiv %ecx"),
    DecoderCase("48 f7 d8", "neg %rax"),
    DecoderCase("48 0f af c1", "imul %rcx,%rax"),
    DecoderCase("6b c0 0a", "imul $0xa,%eax,%eax"),
    DecoderCase("48 c1 e0 04", "shl $0x4,%rax"),
    DecoderCase("48 d3 e8", "shr %cl,%rax"),
    DecoderCase("99", "cltd"),
    DecoderCase("48 98", "cltq"),
    DecoderCase("0f 44 d7", "cmove %edi,%edx"),
    DecoderCase("0f 94 c0", "sete %al"),
    DecoderCase("75 e5", "jne 0xfe7"),
    DecoderCase("0f 8c 00 01 00 00", "jl 0x1106"),
    DecoderCase("e9 00 01 00 00", "jmp 0x1105"),
    DecoderCase("eb fe", "jmp 0x1000"),
    DecoderCase("e8 fb ff ff ff", "call 0x1000"),
    DecoderCase("ff d3", "call *%rbx"),
    DecoderCase("ff 15 10 00 00 00", "call *0x10(%rip)"),
    DecoderCase("41 ff e3", "jmp *%r11"),
    DecoderCase("c3", "ret"),
    DecoderCase("c9", "leave"),
    DecoderCase("0f 0b", "ud2"),
    DecoderCase("cc", "int3"),
    DecoderCase("90", "nop"),
    DecoderCase("66 90", "xchg %ax,%ax"),
    DecoderCase("f3 90", "pause"),
    DecoderCase("0f 1f 44 00 00", "nopl 0x0(%rax,%rax,1)"),
    DecoderCase("66 2e 0f 1f 84 00 00 00 00 00", "nopw 0x0(%rax,%rax,1)"),
    DecoderCase("0f 57 c0", "xorps %xmm0,%xmm0"),
    DecoderCase("0f 29 45 d0", "movaps %xmm0,-0x30(%rbp)"),
    DecoderCase("44 0f 11 07", "movups %xmm8,(%rdi)"),
  ]

  private func plain(_ instruction: Instruction) -> String {
    instruction.text.split(separator: " ").joined(separator: " ")
  }

  @Test(arguments: table) func decodes(_ row: DecoderCase) {
    let code = bytes(row.code)
    // Bytes of something else behind it must not be taken.
    let instruction = X86Decoder.decode((code + [0xCC, 0xCC])[...], at: 0x1000)
    #expect(plain(instruction) == row.text)
    #expect(instruction.bytes == code)
  }

  @Test(arguments: table) func cutShortIsBytes(_ row: DecoderCase) {
    let code = bytes(row.code)
    for count in 1..<max(2, code.count) where count < code.count {
      let instruction = X86Decoder.decode(code[..<count], at: 0x1000)
      #expect(instruction.bytes.count <= count)
      #expect(!instruction.bytes.isEmpty)
    }
  }

  @Test func branchesKnowTheirTargets() {
    #expect(X86Decoder.decode(bytes("eb fe")[...], at: 0x1000).target == 0x1000)
    #expect(X86Decoder.decode(bytes("eb fe")[...], at: 0x1000).flow == .jump)
    #expect(X86Decoder.decode(bytes("75 02")[...], at: 0x1000).flow == .conditional)
    #expect(X86Decoder.decode(bytes("48 8d 05 10 00 00 00")[...], at: 0x1000).target == 0x1017)
    #expect(X86Decoder.decode(bytes("c3")[...], at: 0).flow == .end)
  }

  @Test func unknownBytesAreSkippedOneByOne() {
    // vzeroupper is none of the subset; the push behind it is found again.
    var rest = bytes("06 55")[...]
    var texts: [String] = []
    while !rest.isEmpty {
      let instruction = X86Decoder.decode(rest, at: 0)
      texts.append(plain(instruction))
      rest = rest.dropFirst(instruction.bytes.count)
    }
    #expect(texts == [".byte 0x06", "push %rbp"])
  }

  /// Whatever the bytes are, decoding goes on and stays inside them.
  @Test func anyBytesAreSurvived() {
    var state: UInt64 = 1
    for _ in 0..<20_000 {
      let code = (0..<17).map { _ -> UInt8 in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 56)
      }
      let instruction = X86Decoder.decode(code[...], at: state)
      #expect((1...15).contains(instruction.bytes.count))
      #expect(instruction.bytes == Array(code.prefix(instruction.bytes.count)))
    }
  }
}
