// DemoTable.swift - the part of the command table that describes the demos.

extension CommandTable {
  static let step = CommandOption(
    name: "step", summary: "walk from switch to switch: Enter, b back, c run on, q quit, ? help")
  static let listing = CommandOption(
    name: "asm", summary: "print the compiled code and the switch, annotated", excludes: ["step"])
  static let upto = CommandOption(name: "upto", value: "N", summary: "add 1 to N instead of 0 to 9")
  static let coroutines = CommandOption(
    name: "coroutines", value: "K", summary: "deal the numbers over K coroutines (2 if left out)")

  static var demo: Command {
    Command(
      path: ["demo"], summary: "programs that show how switching works",
      options: [json],
      examples: [
        CommandExample(line: "weft demo swap", meaning: "run a demo"),
        CommandExample(line: "weft demo sum --step", meaning: "walk through it"),
      ],
      run: DemoList.run)
  }

  static var swap: Command {
    Command(
      path: ["demo", "swap"], summary: "two routines hand the processor to each other",
      details: [
        "The first program of the article that Weft grew from, in C, on the textbook switch: "
          + "push six registers, exchange stack pointers, pop, ret."
      ],
      options: [step, listing, stepJSON],
      examples: [
        CommandExample(line: "weft demo swap", meaning: "its four lines"),
        CommandExample(line: "weft demo swap --step", meaning: "both stacks, switch by switch"),
      ],
      run: { try TextbookDemo(.swap, $0).run() })
  }

  static var sum: Command {
    Command(
      path: ["demo", "sum"], summary: "a sum that is interrupted after every addition",
      details: [
        "The second program of the article: a routine adds 0 to 9 and switches away after each "
          + "addition. Its loop counter survives: it sits in a register that the switch keeps.",
        "With --upto, the numbers 1 to N are dealt round over K coroutines, which switch after "
          + "each addition; the result is checked against N(N+1)/2.",
      ],
      options: [step, listing, upto, coroutines, stepJSON],
      examples: [
        CommandExample(line: "weft demo sum --step", meaning: "watch the counter in its register"),
        CommandExample(
          line: "weft demo sum --asm", meaning: "the loop and the switch, as compiled"),
        CommandExample(
          line: "weft demo sum --upto 1000 --coroutines 7", meaning: "500500, by seven coroutines"),
        CommandExample(line: "printf '\\n\\nb\\n' | weft demo sum --step", meaning: "scripted"),
      ],
      run: { try TextbookDemo(.sum, $0).run() })
  }

  static let stepJSON = CommandOption(
    name: "json", summary: "one JSON object a step; with --asm, or --upto alone, one in all")

  /// Demos of the Swift API, each of which checks what it computed.
  static var libraryDemos: [Command] { [generator, tree, primes] }

  static var generator: Command {
    Command(
      path: ["demo", "generator"], summary: "Fibonacci numbers from an endless loop",
      details: [
        "A Generator<Int> whose body is a loop without end: it runs as far as it is asked."
      ],
      options: [
        CommandOption(name: "count", value: "N", summary: "how many numbers (10 if left out)"),
        json,
      ],
      examples: [CommandExample(line: "weft demo generator --count 20", meaning: "twenty of them")],
      run: FibonacciDemo.run)
  }

  static var tree: Command {
    Command(
      path: ["demo", "tree"], summary: "a tree, walked by a recursion that yields",
      details: [
        "The walk is a plain recursive function; as it has a stack of its own, it can yield from "
          + "any depth, and the caller sees a flat sequence."
      ],
      options: [
        CommandOption(name: "count", value: "N", summary: "how many nodes (12 if left out)"), json,
      ],
      examples: [CommandExample(line: "weft demo tree --count 30", meaning: "a bigger one")],
      run: TreeDemo.run)
  }

  static var primes: Command {
    Command(
      path: ["demo", "primes"], summary: "the sieve, as a chain of generators",
      details: [
        "Each prime adds a generator that drops its multiples from what the one before it yields."
      ],
      options: [
        CommandOption(name: "upto", value: "N", summary: "primes up to N (50 if left out)"), json,
      ],
      examples: [CommandExample(line: "weft demo primes --upto 1000", meaning: "168 primes")],
      run: PrimesDemo.run)
  }
}
