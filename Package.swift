// swift-tools-version: 6.2
// 6.2 is the first version that knows .strictMemorySafety().
import PackageDescription

let swift: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
]

let package = Package(
  name: "weft",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Weft", targets: ["Weft"]),
    .library(name: "WeftTesting", targets: ["WeftTesting"]),
    .executable(name: "weft", targets: ["WeftCommand"]),
    .executable(name: "weft-bench", targets: ["weft-bench"]),
  ],
  targets: [
    // The library, each layer importing only those above it in this list.
    .target(name: "CWeft", path: "asm", exclude: ["README.md"], publicHeadersPath: "include"),
    .target(name: "WeftContext", dependencies: ["CWeft"], swiftSettings: swift),
    .target(name: "WeftRuntime", dependencies: ["WeftContext", "CWeft"], swiftSettings: swift),
    .target(name: "WeftSync", dependencies: ["WeftRuntime", "CWeft"], swiftSettings: swift),
    .target(
      name: "WeftTesting", dependencies: ["WeftContext", "WeftRuntime", "CWeft"],
      swiftSettings: swift),
    .target(
      name: "Weft", dependencies: ["WeftContext", "WeftRuntime", "WeftSync"], swiftSettings: swift),

    // The command. CWeftDemo holds the C programs that the demos run and, embedded at build
    // time, the sources that they show.
    .target(
      name: "CWeftDemo", dependencies: ["CWeft"],
      cSettings: [.headerSearchPath("../../asm"), .headerSearchPath(".")]),
    .target(name: "WeftTool", dependencies: ["Weft", "CWeft", "CWeftDemo"], swiftSettings: swift),
    .executableTarget(name: "WeftCommand", dependencies: ["WeftTool"], swiftSettings: swift),

    // The benchmarks: harness, the switches that were measured and rejected, and the jobs.
    .target(name: "BenchKit", path: "Benchmarks/BenchKit", swiftSettings: swift),
    .target(
      name: "BenchVariants", dependencies: ["CWeft"], path: "Benchmarks/BenchVariants"),
    .executableTarget(
      name: "weft-bench", dependencies: ["Weft", "CWeft", "BenchKit", "BenchVariants"],
      path: "Benchmarks/weft-bench", swiftSettings: swift),

    // Tests. CWeftProbe checks the switch from C and assembly; its main.c is a program for
    // architectures without Swift, built by Tests/Aarch64.
    .target(
      name: "CWeftProbe", dependencies: ["CWeft"], path: "Tests/CWeftProbe",
      exclude: ["main.c"]),
    .testTarget(
      name: "CWeftTests", dependencies: ["CWeft", "CWeftProbe"], swiftSettings: swift),
    .testTarget(name: "TidyTests", swiftSettings: swift),
    .target(
      name: "WeftTestSupport", dependencies: ["Weft", "CWeft"], path: "Tests/WeftTestSupport",
      swiftSettings: swift),
    .testTarget(
      name: "WeftContextTests", dependencies: ["Weft", "CWeft", "WeftTestSupport"],
      swiftSettings: swift),
    .testTarget(
      name: "WeftRuntimeTests",
      dependencies: ["Weft", "WeftRuntime", "CWeft", "CWeftProbe", "WeftTestSupport"],
      swiftSettings: swift),
    .testTarget(
      name: "WeftSyncTests", dependencies: ["Weft", "WeftSync", "CWeft", "WeftTestSupport"],
      swiftSettings: swift),
    .target(
      name: "WeftScenarios", dependencies: ["Weft", "WeftTesting"],
      path: "Tests/WeftScenarios", swiftSettings: swift),
    .executableTarget(
      name: "weft-scenarios", dependencies: ["WeftScenarios", "WeftTesting"],
      path: "Tests/weft-scenarios", swiftSettings: swift),
    .testTarget(
      name: "WeftTestingTests",
      dependencies: [
        "Weft", "WeftTesting", "WeftRuntime", "WeftSync", "WeftScenarios", "CWeft",
        "WeftTestSupport",
      ],
      swiftSettings: swift),
    .testTarget(
      name: "WeftStressTests",
      dependencies: ["Weft", "WeftRuntime", "WeftSync", "CWeft", "WeftTestSupport"],
      swiftSettings: swift),
    .testTarget(
      name: "WeftToolTests", dependencies: ["WeftTool", "WeftCommand"], swiftSettings: swift),
    .testTarget(name: "BenchKitTests", dependencies: ["BenchKit"], swiftSettings: swift),
  ]
)
