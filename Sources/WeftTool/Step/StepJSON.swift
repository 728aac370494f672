// StepJSON.swift - one step as a JSON object, schema weft.demo.step/1.

extension StepView {
  var json: JSON {
    var members: [JSON.Member] = []
    func add(_ key: String, _ value: JSON) { members.append(JSON.Member(key: key, value: value)) }
    add("schema", "weft.demo.step/1")
    add("demo", .string(program.name))
    add("step", .int(snapshot.step))
    add("switches", .int(snapshot.switches))
    add("finished", .bool(snapshot.isEnd))
    add("from", snapshot.isEnd ? .null : .string(program.sideName(snapshot.from)))
    add("to", .optional(snapshot.to.map(program.sideName)))
    add("source", sourceJSON)
    add("groups", snapshot.isEnd ? [] : .array(groups.map(\.json)))
    let adding = snapshot.shown.filter { $0.counter != nil }
    let image = adding.first { $0.side == snapshot.from } ?? adding.first
    add("counter", image?.counter?.json ?? .null)
    add("sum", image?.sum?.json ?? .null)
    let stacks = snapshot.isEnd ? [] : snapshot.shown + (snapshot.main.map { [$0] } ?? [])
    add("stacks", .array(stacks.map(\.json)))
    add("output", .array(snapshot.output.map { .string($0) }))
    return .object(members)
  }

  private var sourceJSON: JSON {
    guard let image = snapshot.image(of: snapshot.to), image.line > 0 else { return .null }
    let lines = program.source.lines
    return [
      "file": .string(program.source.rawValue), "line": .int(image.line),
      "text": .optional(lines.indices.contains(image.line - 1) ? lines[image.line - 1] : nil),
    ]
  }
}

extension SwitchGroup {
  var json: JSON {
    ["name": .string(name), "state": isDone ? "ran" : "next", "text": .string(text)]
  }
}

extension FoundValue {
  var json: JSON {
    switch place {
    case .register(let name):
      ["value": .int(value), "place": "register", "register": .string(name)]
    case .memory(let address): ["value": .int(value), "place": "memory", "address": .hex(address)]
    }
  }
}

extension SideImage {
  var json: JSON {
    [
      "name": .string(name), "begun": .bool(hasBegun), "line": .int(line),
      "top": .hex(top), "limit": .hex(limit),
      "guard": ["start": .hex(guardStart), "bytes": .int(Int(limit - guardStart))],
      "stackPointer": .hex(stackPointer),
      "return": [
        "address": .hex(returnWord.address), "value": .hex(returnWord.value),
        "symbol": .string(returnsTo.symbol),
      ],
      "registers": .array(
        registers.reversed().map {
          [
            "name": .string($0.name), "address": .hex($0.word.address),
            "value": .hex($0.word.value),
          ]
        }),
      "counter": counter?.json ?? .null, "sum": sum?.json ?? .null,
    ]
  }
}
