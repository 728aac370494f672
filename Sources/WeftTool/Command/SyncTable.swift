// SyncTable.swift - the part of the command table that describes the demos of channels and locks.

extension CommandTable {
  static var syncDemos: [Command] { [sieve, pipeline, dining] }

  static var sieve: Command {
    Command(
      path: ["demo", "sieve"], summary: "the sieve, as a chain of fibers and channels",
      details: [
        "A fiber sends 2, 3, 4 and so on. The first number that comes out of the chain is a prime, "
          + "and adds a fiber to it that drops its multiples. When there are enough, the group of "
          + "all these fibers is cancelled. The primes are checked by trial division.",
        "It is no fast way to find primes, but one with much sending: the K-th prime comes through "
          + "K channels.",
      ],
      options: [
        CommandOption(name: "count", value: "N", summary: "how many primes (30)"),
        CommandOption(
          name: "capacity", value: "C",
          summary: "how many numbers each channel holds (0: a send waits for its receiver)"),
        workers, json,
      ],
      examples: [
        CommandExample(line: "weft demo sieve --count 10", meaning: "2 to 29"),
        CommandExample(
          line: "weft demo sieve --count 1000 --capacity 64", meaning: "fewer switches"),
      ],
      run: SieveDemo.run)
  }

  static var pipeline: Command {
    Command(
      path: ["demo", "pipeline"], summary: "stages of fibers that keep the order of what flows",
      details: [
        "Numbers go through a pipeline: map (how many steps Collatz's rule takes to 1), by F "
          + "fibers at once; filter (the odd ones), by F fibers; chunks of C; their sums. Each "
          + "line is what went through the channel after that stage.",
        "Some numbers take much longer than those after them, but nothing overtakes: what is "
          + "printed is the same with any number of fibers and workers, and is checked by a loop.",
      ],
      options: [
        CommandOption(name: "count", value: "N", summary: "the numbers 1 to N (20)"),
        CommandOption(
          name: "fibers", value: "F", summary: "how many work on elements of a stage at once (4)"),
        CommandOption(name: "chunk", value: "C", summary: "how many elements make a chunk (3)"),
        workers, json,
      ],
      examples: [
        CommandExample(line: "weft demo pipeline", meaning: "element by element"),
        CommandExample(
          line: "weft demo pipeline --count 100000 --fibers 64 --chunk 1000", meaning: "sums only"),
      ],
      run: PipelineDemo.run)
  }

  static var dining: Command {
    Command(
      path: ["demo", "dining"], summary: "philosophers, forks, a deadlock and two ways out",
      details: [
        "P philosophers sit round a table, with a fork (a FiberMutex) between any two; each needs "
          + "both of his to eat. If all take the left one first, and each has it before any goes "
          + "on, nobody will ever eat: that is run in a process of its own, which Weft ends with a "
          + "report of who waits for what.",
        "Two ways out follow: the fork with the lower number first, or a waiter (a FiberSemaphore) "
          + "who lets all but one to the table. Both must end with N meals for each, and each fork "
          + "used 2N times.",
      ],
      options: [
        CommandOption(name: "philosophers", value: "P", summary: "how many (5)"),
        CommandOption(name: "meals", value: "N", summary: "how often each wants to eat (100)"),
        CommandOption(
          name: "rule", value: "RULE",
          summary: "only one of them: left (a deadlock, here: exit code 2), order or waiter",
          choices: DiningDemo.Rule.allCases.map(\.rawValue)),
        workers, json,
      ],
      examples: [
        CommandExample(line: "weft demo dining", meaning: "the deadlock, and both ways out"),
        CommandExample(
          line: "weft demo dining --rule left", meaning: "Weft's report, and the end"),
      ],
      run: DiningDemo.run)
  }
}
