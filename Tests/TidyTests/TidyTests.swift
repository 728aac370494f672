// The tree checks itself: each rule on all files, and on a sample that breaks it.

import Testing

/// A rule by its name, and files that break it.
struct NamedRule: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let rule: Rule
  let samples: [Sample]

  init(_ name: String, _ rule: @escaping Rule, _ samples: Sample...) {
    testDescription = name
    self.rule = rule
    self.samples = samples
  }

  static let all = [
    NamedRule(
      "imports point downward, Foundation is for the tool", Rules.layering,
      Sample("import WeftRuntime\npublic import Weft\nimport WeftIO\nimport Glibc\n", at: 2, 3),
      Sample(
        path: "Sources/WeftIO/Sample.swift",
        "import WeftSync\nimport struct WeftTool.Tool\nimport WeftTrace\n", at: 2, 3),
      Sample("import Synchronization\n// import Foundation\nimport Foundation\n", at: 3),
      Sample(
        path: "Sources/WeftTool/Sample.swift", "import Foundation\nimport WeftCommand\n", at: 2),
      Sample(path: "Sources/New/Sample.swift", "// a module without a layer\n", at: 1)),
    NamedRule(
      "files are short", Rules.length, Sample(String(repeating: "\n", count: 601), at: 601),
      Sample(String(repeating: "\n", count: 600))),
    NamedRule(
      "lines are short", Rules.columns,
      Sample(path: "asm/sample.S", "\n" + String(repeating: "x", count: 101) + "\n", at: 2)),
    NamedRule(
      "no blanks at ends of lines", Rules.trailingBlanks,
      Sample(path: "README.md", "a\nb \n\t\n", at: 2, 3)),
    NamedRule("no tabs in Swift", Rules.tabs, Sample("a\n\tb\n", at: 2)),
    NamedRule(
      "nothing is unfinished", Rules.unfinished,
      Sample(
        path: "asm/sample.c",
        "/* " + "TO" + "DO */\nint TO" + "DOS;\n// FIX" + "ME: later\n", at: 1, 3)),
    NamedRule(
      "no path of a machine", Rules.machinePaths,
      Sample(
        path: "README.md", "see https://example.org/\ncd /" + "home/somebody\n", at: 2)),
    NamedRule(
      "unsafe code is argued for", Rules.safetyNotes,
      Sample(
        """
        // SAFETY: one note for
        let a = unsafe b()
        let c = unsafe d[0] // a run of adjacent lines.
        let text = "unsafe"; @unsafe func f() {}
        func g() {
          unsafe h()
        }
        func i() {
          // SAFETY: and one inside.
          if j { unsafe k() }
        }
        func l() { unsafe m() }
        final class N: @unchecked Sendable {}
        func o() {
          unsafe p = q
          if let r = unsafe p.s, r { return unsafe p }
          return unsafe p.pointee
        }
        """, at: 6, 12, 13, 16, 17),
      // A note does not reach far,
      Sample("// SAFETY: near.\n" + String(repeating: "\n", count: 20) + "unsafe f()\n", at: 22),
      // nor into the next function.
      Sample(
        """
        struct S {
          func f() {
            // SAFETY: here.
            unsafe g()
          }
          // nonisolated(unsafe) in a comment
          nonisolated(unsafe) static var h = 0

          func i() {
            unsafe j()
          }
        }
        """, at: 7, 10),
      // Blocks that end inside a function do not end its note.
      Sample(
        """
        // SAFETY: everywhere in here.
        func f(
          a: Int
        ) {
          if a { b() }
          for c in d {
            e()
          }
          g { h in
            unsafe i(h)
          }
        }

        func j(
          a: Int
        ) {
          unsafe k()
        }
        """, at: 17)),
    NamedRule(
      "atomics say what they pair with", Rules.orderingNotes,
      Sample(
        """
        func f() {
          // ORDERING: acquires what g() released.
          a.load(ordering: .acquiring)
        }
        func g() {
          a.store(1, ordering: .releasing)
        }
        """, at: 6),
      Sample(
        path: "asm/common/sample.c",
        "int f(void) {\n  return atomic_load_explicit(&a, memory_order_acquire);\n}\n", at: 2),
      Sample(
        path: "asm/common/sample.c",
        """
        /* ORDERING: relaxed, they order nothing. */
        static _Atomic(int) a;
        static _Atomic(int) b = 1;

        static _Atomic(int) c;
        void f(void) {
          atomic_store_explicit(&a, 1, memory_order_relaxed);
          atomic_store_explicit(&b, 1, memory_order_relaxed);
          atomic_store_explicit(&c, 1, memory_order_relaxed);
        }
        """, at: 9)),
    NamedRule(
      "a stop says why", Rules.silentStops,
      Sample("fatalError(\"no\")\nfatalError()\npreconditionFailure()\n", at: 2, 3)),
  ]
}

/// A file, and the lines in which it breaks a rule.
struct Sample: Sendable {
  let path: String
  let text: String
  let broken: [Int]

  init(path: String = "Sources/WeftSync/Sample.swift", _ text: String, at broken: Int...) {
    self.path = path
    self.text = text
    self.broken = broken
  }
}

@Suite struct TidyTests {
  @Test(arguments: NamedRule.all) func treeKeeps(rule: NamedRule) {
    let findings = SourceTree.current.files.flatMap(rule.rule)
    let isKept = findings.isEmpty
    #expect(isKept, "\n\(findings.map(\.description).joined(separator: "\n"))")
  }

  @Test(arguments: NamedRule.all) func ruleFindsWhatBreaksIt(rule: NamedRule) {
    for sample in rule.samples {
      let findings = rule.rule(SourceFile(path: sample.path, text: sample.text))
      #expect(findings.map(\.line) == sample.broken)
      #expect(findings.allSatisfy { $0.path == sample.path && !$0.message.isEmpty })
    }
    #expect(rule.samples.contains { !$0.broken.isEmpty })
  }

  @Test func topLevelHoldsOnlyWhatBelongsThere() {
    #expect(Rules.topLevelEntries(SourceTree.current.entries(of: ".")) == [])
    let sample = [".ci", "README.md", "Sources", "notes.txt"]
    #expect(Rules.topLevelEntries(sample).map(\.path) == ["notes.txt"])
  }

  @Test func everyModuleIsTested() {
    let tree = SourceTree.current
    let folders = tree.entries(of: "Tests")
    #expect(Rules.untestedModules(sources: tree.files.map(\.path), testFolders: folders) == [])
    let found = Rules.untestedModules(
      sources: ["Sources/A/a.swift", "Sources/B/b.swift", "Sources/C/c.c", "Tests/ATests/a.swift"],
      testFolders: ["ATests"])
    #expect(found.map(\.path) == ["Sources/B"])
  }

  @Test func everyTestFolderIsBuilt() throws {
    let tree = SourceTree.current
    let package = try #require(tree.files.first { $0.path == "Package.swift" })
    let text = package.lines.joined(separator: "\n")
    #expect(Rules.unbuiltTests(testFolders: tree.entries(of: "Tests"), package: text) == [])
    let found = Rules.unbuiltTests(
      testFolders: ["ATests", "BTests", "Helpers"], package: "name: \"ATests\"")
    #expect(found.map(\.path) == ["Tests/BTests"])
  }

  @Test func examplesAreRun() {
    let files = SourceTree.current.files
    let tests = files.first { $0.path == "Tests/WeftSyncTests/ExamplesTests.swift" }
    let sources = files.filter { $0.path.hasPrefix("Sources/WeftSync/") }
    #expect(sources.flatMap(Rules.examples).count > 15)
    #expect(Rules.untestedExamples(sources, tests: tests) == [])
    let kit = files.filter { $0.path.hasPrefix("Sources/WeftTesting/") }
    let kitTests = files.first { $0.path == "Tests/WeftTestingTests/ExamplesTests.swift" }
    #expect(kit.flatMap(Rules.examples).count > 7)
    #expect(Rules.untestedExamples(kit, tests: kitTests) == [])
    // Its examples are about either.
    let readme = files.filter { $0.path == "README.md" }
    let either = SourceFile(
      path: "both", text: ((tests?.lines ?? []) + (kitTests?.lines ?? [])).joined(separator: "\n"))
    #expect(readme.flatMap(Rules.examples).count > 2)
    #expect(Rules.untestedExamples(readme, tests: either) == [])
    let file = SourceFile(
      path: "a.swift",
      text: """
        /// ```swift
        /// for i in 0..<3 { print(i); stop() }  // three
        /// ```
          /// ```swift
          /// run()
          /// ```
        """)
    let matching = SourceFile(
      path: "b.swift",
      text: "  for i in 0..<3 {\n    print(i)\n    stop()\n  }\n")
    #expect(Rules.untestedExamples([file], tests: matching).map(\.line) == [4])
    #expect(Rules.untestedExamples([file], tests: nil).map(\.line) == [1, 4])
    let article = SourceFile(
      path: "a.md",
      text: "```swift\nno()\n```\n\n\(Rules.exampleMark)\n```swift\nrun()\n```\n")
    #expect(Rules.examples(in: article).map(\.text) == ["run()"])
  }

  @Test func plantedBugsApply() throws {
    let files = SourceTree.current.files
    let patches = files.filter { $0.path.hasSuffix(".patch") }
    #expect(patches.count >= 20)
    #expect(Rules.stalePatches(patches, files: files) == [])
    let patch = SourceFile(
      path: "x.patch",
      text: "Why.\n\n--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@ f\n one\n-two\n+2\n three\n")
    let fits = SourceFile(path: "a.c", text: "zero\none\ntwo\nthree\n")
    let changed = SourceFile(path: "a.c", text: "zero\none\nTWO\nthree\n")
    #expect(Rules.stalePatches([patch], files: [fits]) == [])
    #expect(Rules.stalePatches([patch], files: [changed]).map(\.line) == [5])
    #expect(Rules.stalePatches([patch], files: []).map(\.line) == [5])
  }

  @Test func situationsAreTested() throws {
    let files = SourceTree.current.files
    let table = try #require(files.first { $0.path == Rules.situationsPath })
    let findings = Rules.situations(table, in: files)
    #expect(findings.isEmpty, "\n\(findings.map(\.description).joined(separator: "\n"))")
  }

  @Test func situationsThatAreNotTestedAreFound() {
    let tests = SourceFile(
      path: "Tests/ATests/A.swift",
      text: """
        @Suite struct ATests {
          @Test func one() {}
          @Test(
            arguments: [1])
          func two() {}

          func helper() {}
        }
        """)
    func row(_ number: Int, _ test: String) -> String { "| \(number) | it crashed | \(test) |" }
    let good = (1...Rules.lastSituation).filter { !Rules.unusedSituations.contains($0) }
      .map { row($0, $0 % 2 == 0 ? "none: no sockets" : "`ATests/A.swift: one`") }
    func found(_ change: (inout [String]) -> Void) -> [String] {
      var lines = good
      change(&lines)
      let table = SourceFile(path: "table.md", text: lines.joined(separator: "\n"))
      return Rules.situations(table, in: [tests]).map { "\($0.line) \($0.message)" }
    }
    #expect(found { _ in } == [])
    #expect(found { $0[4] = row(5, "`ATests/A.swift: two`, and `ATests/A.swift: one`") } == [])
    let coming = Rules.testsToCome.first?.dropFirst("Tests/".count) ?? "ATests/A.swift"
    #expect(Rules.testsToCome.isEmpty || found { $0[4] = row(5, "`\(coming): any`") } == [])
    #expect(found { $0.remove(at: 1) } == ["1 situation 2 is missing"])
    #expect(found { $0.append(row(3, "none: again")) } == ["90 situation 3 comes twice"])
    #expect(found { $0.append(row(27, "none: new")) } == ["90 there is no situation 27"])
    #expect(found { $0[0] = "| 1 |  | none: so |" } == ["1 situation 1 is not described"])
    let unnamed = ["1 situation 1 names no test and does not say why"]
    #expect(found { $0[0] = row(1, "by design") } == unnamed)
    #expect(found { $0[0] = row(1, "none: ") } == unnamed)
    #expect(found { $0[0] = row(1, "`one`") } == unnamed)
    #expect(
      found { $0[0] = row(1, "`ATests/A.swift: three`") }
        == ["1 Tests/ATests/A.swift has no three"])
    #expect(
      found { $0[0] = row(1, "`ATests/A.swift: tw`") } == ["1 Tests/ATests/A.swift has no tw"])
    #expect(
      found { $0[0] = row(1, "`ATests/A.swift: helper`") }
        == ["1 helper of Tests/ATests/A.swift is no test"])
    #expect(found { $0[0] = row(1, "`B.swift: one`") } == ["1 there is no Tests/B.swift"])
    #expect(
      found { $0[0] = row(1, "`B.swift one`") }
        == ["1 B.swift one is not `Module/File.swift: test`"])
  }

  @Test func treeIsRead() {
    // Rules find nothing in an empty tree, too.
    let paths = Set(SourceTree.current.files.map(\.path))
    #expect(paths.contains("Package.swift"))
    #expect(paths.contains("asm/include/cweft_switch.h"))
    #expect(paths.contains("Tests/TidyTests/TidyTests.swift"))
  }

  @Test func blankingKeepsCodeAndLines() {
    let text = """
      let a = "x // y" // z
      /* one /* two */ three */ let b = #"raw " \\"#
      let c = \"\"\"
        unsafe
        \"\"\"; d
      """
    let file = SourceFile(path: "a.swift", text: text)
    #expect(file.code.count == file.lines.count)
    let words = file.code.map { $0.split(separator: " ").joined(separator: " ") }
    #expect(words == ["let a =", "let b =", "let c =", "", "; d"])
  }
}
