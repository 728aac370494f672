// PoolTable.swift - the part of the command table that describes the demos of the scheduler.

extension CommandTable {
  static let workers = CommandOption(
    name: "workers", value: "W", summary: "run on W workers (left out: one for each processor)")

  static var poolDemos: [Command] { [pool, skynet, pingpong, ring] }

  static var pool: Command {
    Command(
      path: ["demo", "pool"], summary: "a sum by many fibers on many workers",
      details: [
        "A main fiber starts F fibers and joins them. The numbers 1 to N are dealt round over "
          + "them; each adds its share and yields between two additions. The result is checked "
          + "against N(N+1)/2.",
        "With --step you are the scheduler: every worker's run queue is shown, and you choose "
          + "which runnable fiber goes next. For that the same bodies run as coroutines, driven by "
          + "hand in one thread, under the rules of the real run queues.",
      ],
      options: [
        CommandOption(
          name: "step", summary: "choose what runs next: Enter, numbers, s steal, b back, ? help"),
        CommandOption(
          name: "upto", value: "N", summary: "add 1 to N (1,000,000; with --step 12)"),
        CommandOption(
          name: "fibers", value: "F", summary: "with F fibers (1,000; with --step 4)"),
        CommandOption(
          name: "workers", value: "W",
          summary: "on W workers (one for each processor; with --step 2)"),
        CommandOption(
          name: "json", summary: "print JSON instead of text; with --step one object a step"),
      ],
      examples: [
        CommandExample(
          line: "weft demo pool --upto 1000 --fibers 7 --workers 2", meaning: "500500"),
        CommandExample(line: "weft demo pool --step", meaning: "be the scheduler"),
        CommandExample(
          line: "printf '\\ns\\n2\\n' | weft demo pool --step",
          meaning: "scripted: next, steal, fiber 2"),
      ],
      run: PoolDemo.run)
  }

  static var skynet: Command {
    Command(
      path: ["demo", "skynet"], summary: "a tree of a million fibers",
      details: [
        "Every fiber starts ten more and adds up what they return; the leaves return their own "
          + "numbers. A million leaves come to 499999500000, by 1,111,111 fibers."
      ],
      options: [
        CommandOption(name: "leaves", value: "N", summary: "how many leaves (1,000,000)"), workers,
        json,
      ],
      examples: [
        CommandExample(line: "weft demo skynet", meaning: "a million leaves"),
        CommandExample(line: "weft demo skynet --workers 1", meaning: "on one thread"),
      ],
      run: SkynetDemo.run)
  }

  static var pingpong: Command {
    Command(
      path: ["demo", "pingpong"], summary: "two fibers wake each other in turn",
      details: [
        "Each unparks the other and parks: a round trip is two wakes and two switches."
      ],
      options: [
        CommandOption(name: "rounds", value: "N", summary: "how many round trips (1,000,000)"),
        workers, json,
      ],
      examples: [
        CommandExample(line: "weft demo pingpong --rounds 100000", meaning: "fewer of them")
      ],
      run: PingPongDemo.run)
  }

  static var ring: Command {
    Command(
      path: ["demo", "ring"], summary: "a token goes round a ring of fibers",
      details: [
        "The thread-ring benchmark: each fiber waits for the token and passes it on, one less. "
          + "Printed is who holds it when it has been passed on N times."
      ],
      options: [
        CommandOption(name: "fibers", value: "F", summary: "how many fibers (503)"),
        CommandOption(
          name: "rounds", value: "N", summary: "how often it is passed on (1,000,000)"),
        workers, json,
      ],
      examples: [
        CommandExample(line: "weft demo ring --rounds 1000", meaning: "fiber 498 holds it")
      ],
      run: RingDemo.run)
  }
}
