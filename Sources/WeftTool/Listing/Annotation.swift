// Annotation.swift - what each instruction of a listing is there for.

/// Which group an instruction belongs to, with a word on it.
struct Annotation: Equatable {
  enum Group: String {
    case push, save, load, pop, ret
    case counter = "loop counter"
    case sum, call
    case none = ""
  }

  var group: Group
  var text: String

  static let none = Annotation(group: .none, text: "")
}

/// Explains the textbook switch.
enum SwitchAnnotator {
  static func annotate(_ function: DecodedFunction) -> [Annotation] {
    var isOtherStack = false
    return function.instructions.map { instruction in
      let note = annotate(instruction, isOtherStack)
      if note.group == .load { isOtherStack = true }
      return note
    }
  }

  private static func annotate(_ instruction: Instruction, _ isOtherStack: Bool) -> Annotation {
    switch (instruction.mnemonic, instruction.operands.last ?? "") {
    case ("endbr64", _), ("hint", _):
      return Annotation(group: .none, text: "indirect branches may land here")
    case ("push", _), ("stp", _): return Annotation(group: .push, text: "1 push: callee-saved")
    case ("mov", "(%rdi)"), ("str", "[x0]"):
      return Annotation(group: .save, text: "2 save: *from = sp")
    case ("mov", "%rsp"), ("ldr", "[x1]"):
      return Annotation(group: .load, text: "3 load: sp = *to, the other stack")
    case ("pop", _), ("ldp", _): return Annotation(group: .pop, text: "4 pop: the other side's")
    case ("ret", _): return Annotation(group: .ret, text: "5 ret: to the other side's caller")
    case ("sub", _) where !isOtherStack: return Annotation(group: .push, text: "1 push: make room")
    case ("add", _) where isOtherStack: return Annotation(group: .pop, text: "4 pop: free the room")
    default: return .none
    }
  }
}

/// Explains the routine with the loop, knowing where its variables were found.
struct LoopAnnotator {
  var function: DecodedFunction
  /// The operands that stand for a variable: every name of its register, or its place in memory.
  var counter: Set<String>
  var sum: Set<String>
  var symbol: (UInt64) -> String?

  /// The instructions of the loop that calls the switch: from where a later branch goes back to,
  /// up to that branch.
  var loop: Range<Int>? {
    let list = function.instructions
    let loops = list.indices.compactMap { index -> Range<Int>? in
      guard [.jump, .conditional].contains(list[index].flow), let target = list[index].target,
        target <= list[index].address,
        let first = list.firstIndex(where: { $0.address == target })
      else { return nil }
      return first..<(index + 1)
    }
    return loops.first { range in list[range].contains(where: callsSwitch) }
  }

  func annotate() -> [Annotation] {
    let loop = loop ?? 0..<0
    var notes = function.instructions.indices.map { index in
      loop.contains(index)
        ? inside(function.instructions[index], isLast: index == loop.upperBound - 1)
        : outside(function.instructions[index])
    }
    markEdges(of: loop, &notes)
    return notes
  }

  /// Where the variables get their first values, and where the sum is taken at the end. In between,
  /// and elsewhere in the function, the compiler may use their registers for something else.
  private func markEdges(of loop: Range<Int>, _ notes: inout [Annotation]) {
    guard !loop.isEmpty else { return }
    let list = function.instructions
    func lastWrite(_ names: Set<String>) -> Int? {
      list[..<loop.lowerBound].lastIndex { $0.destination.map(names.contains) ?? false }
    }
    if let index = lastWrite(counter) {
      notes[index] = Annotation(group: .counter, text: "loop counter: starts")
    }
    if let index = lastWrite(sum) {
      notes[index] = Annotation(group: .sum, text: "sum: starts at 0")
    }
    let after = list[loop.upperBound...]
    if let index = after.firstIndex(where: { $0.operands.contains(where: sum.contains) }) {
      notes[index] = Annotation(group: .sum, text: "sum: the result")
    }
  }

  private func callsSwitch(_ instruction: Instruction) -> Bool {
    instruction.flow == .call && instruction.target.flatMap(symbol) == "weft_swapcontext"
  }

  private func outside(_ one: Instruction) -> Annotation {
    if callsSwitch(one) { return Annotation(group: .call, text: "call the switch") }
    if one.flow == .call, let name = one.target.flatMap(symbol) {
      return Annotation(group: .none, text: "call \(name)")
    }
    let isSaved = StackReader.registerNames.contains { one.operands == ["%" + $0] }
    switch one.mnemonic {
    case "push" where isSaved: return Annotation(group: .none, text: "keep the caller's")
    case "pop" where isSaved: return Annotation(group: .none, text: "give it back")
    default: return .none
    }
  }

  private func inside(_ one: Instruction, isLast: Bool) -> Annotation {
    if callsSwitch(one) { return Annotation(group: .call, text: "call the switch") }
    if isLast { return Annotation(group: .counter, text: "loop: once more?") }
    if one.operands.contains(where: sum.contains) {
      let isAddition = one.mnemonic.hasPrefix("add")
      return Annotation(group: .sum, text: isAddition ? "sum += i" : "sum")
    }
    if one.operands.contains(where: counter.contains) {
      if ["cmp", "test"].contains(where: one.mnemonic.hasPrefix) {
        return Annotation(group: .counter, text: "loop counter: at its end?")
      }
      let changes = one.destination.map(counter.contains) ?? false
      return Annotation(group: .counter, text: changes ? "loop counter: i++" : "loop counter")
    }
    switch one.destination {
    case "%rdi", "x0": return Annotation(group: .call, text: "where to save sp")
    case "%rsi", "x1": return Annotation(group: .call, text: "where to load sp from")
    default: return .none
    }
  }
}

extension Instruction {
  /// The operand that it writes: the last one in the AT&T syntax, the first one on aarch64.
  fileprivate var destination: String? {
    if operands.contains(where: { $0.contains("%") || $0.contains("$") }) {
      return ["cmp", "test", "push"].contains(where: mnemonic.hasPrefix) ? nil : operands.last
    }
    return ["cmp", "str", "stp", "stur", "cbz", "cbnz"].contains(mnemonic) ? nil : operands.first
  }
}
