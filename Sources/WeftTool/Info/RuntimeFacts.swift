// RuntimeFacts.swift - what the Weft runtime does on this machine.
import CWeft
import Weft
import WeftRuntime

/// Asks the runtime.
enum RuntimeFacts {
  static var groups: [FactGroup] {
    let info = RuntimeInfo.current
    return [contextSwitch(info), stacks(info), threadWords(info), scheduler(.current)]
  }

  private static func contextSwitch(_ info: RuntimeInfo) -> FactGroup {
    FactGroup(
      key: "switch", title: "Switch",
      facts: [
        Fact(key: "inUse", label: "in use", value: .string(info.contextSwitch)),
        Fact(
          key: "demos", label: "in swap and sum", value: "textbook",
          text: "textbook: push \(WEFT_TEXTBOOK_WORDS) registers, exchange sp, pop, ret"),
        Fact(
          key: "sanitizer", label: "sanitizer", value: .optional(info.sanitizer),
          text: info.sanitizer ?? "none"),
      ])
  }

  private static func stacks(_ info: RuntimeInfo) -> FactGroup {
    let guardNote =
      switch info.stackGuard {
      case .madvise: "in the page tables: no limit to the number of stacks"
      case .mprotect: "a mapping each: vm.max_map_count limits the number of stacks"
      }
    let size = StackSize.default
    return FactGroup(
      key: "stacks", title: "Stacks",
      facts: [
        Fact(
          key: "defaultBytes", label: "default size", value: .int(size.bytes),
          text: size.description, note: "address space; only touched pages cost memory"),
        Fact(
          key: "guardBytes", label: "guard", value: .int(guardBytes),
          text: "\(guardBytes / 1024) KiB"),
        Fact(
          key: "guardKind", label: "guard kind", value: .string(info.stackGuard.rawValue),
          note: guardNote),
      ])
  }

  private static func threadWords(_ info: RuntimeInfo) -> FactGroup {
    let note =
      switch info.threadWords {
      case .found: "swapped inline at every switch"
      case .fallback: "not found; the Swift runtime's own calls are used, 16 ns a resume"
      case .untracked: "exclusivity checking is off: nothing to keep apart"
      }
    return FactGroup(
      key: "threadWords", title: "Thread words",
      facts: [
        Fact(
          key: "exclusiveAccess", label: "exclusive accesses",
          value: .string(info.threadWords.rawValue), note: note),
        Fact(
          key: "concurrency", label: "concurrency's three",
          value: .string(info.concurrencyWordsFound ? "found" : "not found")),
      ])
  }

  static func scheduler(_ facts: PoolFacts) -> FactGroup {
    let (least, most) = (facts.workers.lowerBound, facts.workers.upperBound)
    return FactGroup(
      key: "scheduler", title: "Scheduler",
      facts: [
        Fact(
          key: "processors", label: "processors", value: .int(facts.processors),
          note: "by affinity mask and cgroup quota"),
        Fact(
          key: "workers", label: "workers by default", value: .int(most),
          text: least == most ? grouped(most) : "\(grouped(least)) to \(grouped(most))",
          note: "WEFT_WORKERS changes it"),
        Fact(
          key: "startedFibersMigrate", label: "started fibers",
          value: .bool(facts.migratesStarted),
          text: facts.migratesStarted ? "may migrate" : "stay where they started",
          note: facts.migratesStarted
            ? "idle workers steal them" : "the thread words were not found on this thread"),
        Fact(
          key: "membarrier", label: "membarrier", value: .bool(facts.usesMembarrier),
          text: facts.usesMembarrier ? "in use" : "not available",
          note: facts.usesMembarrier
            ? "a worker locks its queue without an atomic operation"
            : "every look at a run queue takes an atomic operation"),
      ])
  }

  /// The C constant is a cast expression, which the importer leaves out.
  private static var guardBytes: Int { 64 << 10 }
}
