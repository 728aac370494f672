// InfoTests.swift - facts about the machine and the runtime.
import Foundation
import Testing
import Weft
import WeftRuntime

@testable import WeftTool

@Suite struct InfoTests {
  @Test func jsonHasEveryGroup() throws {
    let run = try weft("info", "--json")
    let value = try JSONSerialization.jsonObject(with: Data(run.out.utf8))
    let object = try #require(value as? [String: Any])
    #expect(object["schema"] as? String == "weft.info/1")
    let system = try #require(object["system"] as? [String: Any])
    #expect(system["architecture"] as? String == RuntimeInfo.current.architecture)
    let cores = try #require(object["cores"] as? [String: Any])
    let usable = try #require(cores["usable"] as? Int)
    let configured = try #require(cores["configured"] as? Int)
    #expect(usable >= 1 && usable <= configured)
    let stacks = try #require(object["stacks"] as? [String: Any])
    #expect(stacks["defaultBytes"] as? Int == StackSize.default.bytes)
    let words = try #require(object["threadWords"] as? [String: Any])
    #expect(words["exclusiveAccess"] as? String == RuntimeInfo.current.threadWords.rawValue)
  }

  @Test func jsonKnowsTheScheduler() throws {
    let run = try weft("info", "--json", environment: ["WEFT_WORKERS": "3-5"])
    let value = try JSONSerialization.jsonObject(with: Data(run.out.utf8))
    let scheduler = try #require((value as? [String: Any])?["scheduler"] as? [String: Any])
    #expect(scheduler["workers"] as? Int == 5)
    #expect(scheduler["processors"] as? Int == PoolFacts.current.processors)
    #expect(scheduler["membarrier"] as? Bool == PoolFacts.current.usesMembarrier)
    // Whether fibers migrate is a matter of the thread that asks, which here is another one.
    #expect(scheduler["startedFibersMigrate"] is Bool)
  }

  @Test func textNamesEveryFact() throws {
    let run = try weft("info")
    for fact in (RuntimeFacts.groups + HostFacts.groups).flatMap(\.facts) {
      #expect(run.out.contains("  \(fact.label) "))
    }
    #expect(run.status == 0)
  }

  @Test(arguments: [20, 40, 80, 200]) func textFits(_ columns: Int) {
    let lines = InfoCommand.text(RuntimeFacts.groups + HostFacts.groups, columns: columns)
    #expect(lines.allSatisfy { $0.width <= columns })
  }
}
