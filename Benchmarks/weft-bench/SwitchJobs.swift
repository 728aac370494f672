// Supports claims: how fast the switch is next to those that were not taken, and what keeping more
// of the thread adds.

import BenchKit
import BenchVariants

/// A job over one of the C loops. Each value handed over takes two switches.
func switchJob(
  _ name: String, _ summary: String, purpose: Purpose = .claim,
  loop: @escaping @Sendable (UInt64) -> UInt64
) -> Job {
  Job(
    name, summary, unit: "ns/switch", excludes: "creation of the stack", purpose: purpose,
    perIteration: 2
  ) { count in
    try handOver(count, loop)
  }
}

/// A job that counts whole elements: deep yields are more than two switches.
func deepJob(
  _ name: String, _ summary: String, loop: @escaping @Sendable (UInt64) -> UInt64
) -> Job {
  Job(
    name, summary, unit: "ns/switch", excludes: "creation of the stack", purpose: .claim,
    perIteration: 2
  ) { count in
    try handOver(count, loop)
  }
}

private func handOver(_ count: Int, _ loop: (UInt64) -> UInt64) throws {
  let count = UInt64(count)
  try check(loop(count), is: count * (count - 1) / 2)
}

private var bareJobs: [Job] {
  var jobs = [
    switchJob("switch.textbook", "The textbook switch: six pushes, six pops, ret.") {
      bench_switch_textbook($0)
    },
    switchJob("switch.outofline", "The store-based switch, called, one jump and one ret.") {
      bench_switch_outofline($0)
    },
    switchJob(
      "switch.inline", "The inline switch, one frame for each side.", purpose: .regression
    ) { bench_switch_inline($0) },
    switchJob(
      "switch.inline.shared", "The inline switch, one frame for whichever side is suspended."
    ) { bench_switch_inline_shared($0) },
  ]
  #if arch(x86_64)
    jobs += [
      switchJob("switch.memory", "Rejected: stores first and jumps through memory.") {
        bench_switch_memory($0)
      },
      switchJob("switch.pairing", "Rejected: resume is a call, yield its ret.") {
        bench_switch_pairing($0)
      },
    ]
  #endif
  #if canImport(Glibc)
    jobs.append(
      switchJob("switch.ucontext", "glibc's swapcontext, with its system call.") {
        bench_switch_ucontext($0)
      })
  #endif
  return jobs
}

/// The bare switches.
let switchGroup = Group(
  "switch", jobs: bareJobs,
  relations: [
    .ratio(
      "switch.speedup", "switch.textbook", over: "switch.inline", goal: .atLeast(8)),
    .ratio("switch.outofline.cost", "switch.outofline", over: "switch.inline"),
    .ratio("switch.memory.cost", "switch.memory", over: "switch.inline"),
    .ratio("switch.pairing.cost", "switch.pairing", over: "switch.inline"),
    .ratio("switch.ucontext.cost", "switch.ucontext", over: "switch.inline"),
  ])

private var keptJobs: [Job] {
  var jobs = [
    switchJob(
      "switch.kept", "The library's exchange: floating-point control and the first thread word.",
      purpose: .regression
    ) { bench_switch_coroutine($0) },
    switchJob("switch.kept.fiber", "Inline with floating-point control and four thread words.") {
      bench_switch_fp_words($0)
    },
    switchJob("switch.fp.compare", "Inline, floating-point control loaded where it differs.") {
      bench_switch_fp_compare($0)
    },
    switchJob("switch.fp.always", "Inline, floating-point control loaded without a look.") {
      bench_switch_fp_always($0)
    },
    switchJob("switch.word", "Inline, the first thread word kept, zero on both sides.") {
      bench_switch_word($0)
    },
    switchJob("switch.words", "Inline, four thread words kept, zero on both sides.") {
      bench_switch_words($0)
    },
  ]
  #if arch(x86_64)
    jobs += [
      switchJob("switch.mxcsr.compare", "Inline, MXCSR only, loaded where it differs.") {
        bench_switch_mxcsr_compare($0)
      },
      switchJob("switch.mxcsr.always", "Inline, MXCSR only, loaded without a look.") {
        bench_switch_mxcsr_always($0)
      },
      switchJob("switch.x87.compare", "Inline, x87 control word only, loaded where it differs.") {
        bench_switch_x87_compare($0)
      },
      switchJob("switch.x87.always", "Inline, x87 control word only, loaded without a look.") {
        bench_switch_x87_always($0)
      },
      switchJob("switch.fp.witness", "An idea: the x87 control word tells whether MXCSR changed.") {
        bench_switch_fp_witness($0)
      },
    ]
  #endif
  return jobs
}

/// What the thread's state costs.
let keptGroup = Group(
  "kept", references: ["switch.inline"], jobs: keptJobs,
  relations: [
    .ratio("switch.kept.cost", "switch.kept", over: "switch.inline", goal: .atMost(2.2)),
    .ratio("switch.kept.fiber.cost", "switch.kept.fiber", over: "switch.inline"),
    .ratio("switch.fp.cost", "switch.fp.compare", over: "switch.fp.always"),
  ])

private var deepJobs: [Job] {
  var jobs = [
    deepJob("deep.calls", "Three calls and their returns per element, no switch: to subtract.") {
      bench_deep_calls($0)
    },
    deepJob("deep.inline", "Inline switch, yield from three calls deep.") {
      bench_deep_inline($0)
    },
    deepJob("deep.both.inline", "Inline switch, resume and yield from three calls deep.") {
      bench_deep_both_inline($0)
    },
  ]
  #if arch(x86_64)
    jobs += [
      deepJob("deep.pairing", "Call/ret pairing, yield from three calls deep.") {
        bench_deep_pairing($0)
      },
      deepJob("deep.both.pairing", "Call/ret pairing, resume and yield from three calls deep.") {
        bench_deep_both_pairing($0)
      },
    ]
  #endif
  return jobs
}

/// Yields from helper functions.
let deepGroup = Group(
  "deep", references: ["switch.inline"], jobs: deepJobs,
  relations: [
    .ratio("deep.cost", "deep.inline", over: "switch.inline"),
    .ratio("deep.pairing.cost", "deep.pairing", over: "deep.inline"),
  ])
