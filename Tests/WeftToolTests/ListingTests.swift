// ListingTests.swift - the listings of the functions that really run.
import Testing

@testable import WeftTool

extension InProcessTests {
  @Suite struct ListingTests {
    @Test func functionsEndWhereNothingGoesOn() {
      // A branch forward over a ret: the function ends at the second one.
      let code = bytes("74 01 c3 90 c3 55")
      let function = DecodedFunction.decode(name: "f", start: 0x100, with: X86Decoder.self) {
        Array(code.dropFirst(Int($0 - 0x100)))
      }
      #expect(function.instructions.map(\.mnemonic) == ["je", "ret", "nop", "ret"])
      #expect(function.end == 0x105)
    }

    @Test func runawayFunctionsAreCut() {
      let function = DecodedFunction.decode(name: "f", start: 0, with: X86Decoder.self) { _ in
        [0x90]
      }
      #expect(function.end == DecodedFunction.bytesMax)
    }

    #if arch(x86_64)
      @Test func switchIsPushSaveLoadPopRet() throws {
        let machine = try Machine(.sum)
        let function = try #require(CodeReader.function("weft_swapcontext", in: machine.program))
        let groups = SwitchAnnotator.annotate(function).map(\.group)
        let expected: [Annotation.Group] =
          [.none] + Array(repeating: .push, count: 6) + [.save, .load]
          + Array(repeating: .pop, count: 6) + [.ret]
        #expect(groups == expected)
        let pushed = function.instructions[1...6].map { $0.operands[0] }
        let popped = function.instructions[9...14].map { $0.operands[0] }
        #expect(pushed == popped.reversed())
        #expect(pushed.map { String($0.dropFirst()) } == StackReader.registerNames.reversed())
      }
    #endif

    @Test func nothingInTheRoutinesIsUnknown() throws {
      for program in [Program.swap, .sum, .deal(upto: 5, coroutines: 2)] {
        let machine = try Machine(program)
        for name in [program.loopFunction, "weft_swapcontext", "main_routine"] {
          let function = try #require(CodeReader.function(name, in: machine.program))
          #expect(function.instructions.count > 3)
          #expect(!function.instructions.contains { $0.flow == .unknown })
        }
      }
    }

    @Test func bothSourcesAreShown() {
      let x86 = SwitchSource.textbook(.x86).lines.joined(separator: "\n")
      #expect(x86.contains("pushq   %rbp") && x86.contains("retq"))
      #expect(x86.hasPrefix("/* void weft_swapcontext("))
      let arm = SwitchSource.textbook(.arm).lines.joined(separator: "\n")
      #expect(arm.contains("stp     x29, x30, [sp, #144]") && arm.contains("ret"))
      #expect(!SwitchSource.instructions(.x86).contains { $0.contains(".cfi_") })
    }
  }
}

@Suite struct ListingCommandTests {
  @Test func listingNamesTheGroups() throws {
    let run = try weft("demo", "sum", "--asm")
    for part in [
      "routine of sum.c", "sum += i", "loop counter", "call the switch", "weft_swapcontext",
      "1 push", "2 save", "3 load", "4 pop", "5 ret", "asm/x86_64/switch.S",
      "asm/aarch64/switch.S", "stp     x29, x30",
    ] {
      #expect(run.out.contains(part), "\(part) is missing in\n\(run.out)")
    }
    #expect(run.status == 0)
    #expect(run.err == "")
  }

  @Test(arguments: ["40", "80", "120"]) func listingFits(_ columns: String) throws {
    let run = try weft("demo", "sum", "--asm", environment: ["COLUMNS": columns])
    #expect(run.lines.allSatisfy { $0.count <= Int(columns) ?? 0 })
    #expect(run.out.contains("call"))
  }
}
