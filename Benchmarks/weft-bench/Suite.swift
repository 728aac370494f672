import BenchKit

/// What produces elements one by one: Weft, Swift's own means, and iterators written by hand.
private let elementGroup = Group(
  "element", references: ["switch.inline", "switch.kept"],
  jobs: coroutineJobs + iteratorJobs + asyncJobs,
  relations: [
    .ratio("coroutine.cost", "coroutine.int", over: "switch.kept", times: 2),
    .ratio(
      "generator.cost", "generator.int", over: "switch.kept", times: 2, goal: .atMost(1.2)),
    Relation(
      "generator.string.extra", "generator.string - string.make - generator.int", unit: "ns",
      goal: .atMost(8), jobs: ["generator.string", "string.make", "generator.int"]
    ) { $0[0] - $0[1] - $0[2] },
    .ratio("generator.deep.cost", "generator.deep", over: "generator.int"),
    .ratio("generator.two.cost", "generator.two", over: "generator.int"),
    .ratio("generator.thousand.cost", "generator.thousand", over: "generator.int"),
    .ratio("asyncstream.cost", "asyncstream.ondemand", over: "coroutine.int", goal: .atLeast(100)),
    .ratio("asyncstream.buffered.cost", "asyncstream.buffered", over: "coroutine.int"),
    .ratio("asyncstream.unfolding.cost", "asyncstream.unfolding", over: "coroutine.int"),
    .ratio("iterator.cost", "generator.int", over: "iterator.struct"),
  ])

/// Everything that can be run, in the order in which it is shown.
let suite: [Group] =
  [
    switchGroup, keptGroup, deepGroup, elementGroup, creationGroup, memoryGroup,
    poolYieldGroup, poolSpawnGroup, poolFanOutGroup, poolSkynetGroup,
    poolParkGroup, poolWakeGroup, poolArachneGroup, poolSleepGroup, poolMemoryGroup,
    syncChannelGroup, syncSelectGroup, syncStreamGroup, syncLockGroup, syncContendedGroup,
    startupGroup, boundGroup,
  ] + growthGroups

/// Jobs of many seconds, which --quick leaves out unless a filter asks for them.
let slowJobs = Set(["suspended.million", "pool.memory.million"] + growthSlowJobs)
