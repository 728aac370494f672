// How the programs of the other runtimes are built and started.

/// Where the sources are, and where what is built goes.
public struct PeerPlaces: Sendable {
  /// The folder with a folder for each peer.
  public let sources: String
  /// The folder for what is built.
  public let output: String

  /// Two folders.
  public init(sources: String, output: String) {
    self.sources = sources
    self.output = output
  }
}

/// How one peer is built and started.
public struct PeerRecipe: Sendable {
  /// Its name, and its folder's.
  public let name: String
  /// The programs that have to be on the path.
  public let tools: [String]
  /// What to install where something is missing.
  public let needs: String
  /// Prints the version.
  public let version: [String]
  /// Whether one worker means that the process is to be limited to one processor.
  public let isPinned: Bool
  /// The commands that build it, in their order.
  public let build: @Sendable (PeerPlaces) -> [[String]]
  /// The program with the arguments that come before the job's.
  public let command: @Sendable (PeerPlaces, _ workers: Int) -> [String]

  init(
    _ name: String, tools: [String], needs: String, version: [String], isPinned: Bool = false,
    build: @escaping @Sendable (PeerPlaces) -> [[String]],
    command: (@Sendable (PeerPlaces, Int) -> [String])? = nil
  ) {
    self.name = name
    self.tools = tools
    self.needs = needs
    self.version = version
    self.isPinned = isPinned
    self.build = build
    self.command = command ?? { places, _ in ["\(places.output)/\(name)"] }
  }

  /// Why a peer can't be built or run here, by its tools; nil if it can.
  public func missing(isInstalled: (String) -> Bool) -> String? {
    let absent = tools.filter { !isInstalled($0) }
    guard !absent.isEmpty else { return nil }
    return "\(absent.joined(separator: " and ")) not found on the path; it needs \(needs)"
  }

  /// Why what a version command printed won't do; nil if it will.
  public func unsuitable(versionText: String) -> String? {
    guard name == "java" else { return nil }
    guard let major = PeerRecipe.javaMajor(versionText) else {
      return "java does not say its version; it needs \(needs)"
    }
    return major >= 21 ? nil : "java is version \(major); it needs \(needs)"
  }

  /// What to call the version: the first line that has a digit in it.
  public static func versionLine(_ text: String) -> String {
    let line = text.split(whereSeparator: \.isNewline).first { $0.contains(where: \.isNumber) }
    return line.map(String.init) ?? "unknown"
  }

  /// 25 of `openjdk version "25.0.2" ...`.
  static func javaMajor(_ text: String) -> Int? {
    let quoted = text.split(separator: "\"", omittingEmptySubsequences: false)
    guard quoted.count > 1 else { return nil }
    return Int(quoted[1].prefix { $0.isNumber })
  }

  /// The line of a failed build that says why.
  public static func failureLine(_ text: String) -> String {
    let lines = text.split(whereSeparator: \.isNewline)
    let telling = lines.first { $0.split { !$0.isLetter }.contains("error") }
    return (telling ?? lines.last).map(String.init) ?? "the build printed nothing"
  }
}

extension PeerRecipe {
  /// All peers, in the order of the table.
  public static let all = [go, boost, java, tokio, c, swift]

  private static let go = PeerRecipe(
    "go", tools: ["go"], needs: "Go 1.23 or later", version: ["go", "version"],
    build: { places in
      [
        [
          "env", "GOTOOLCHAIN=local", "GOCACHE=\(places.output)/go-cache", "go", "build", "-C",
          "\(places.sources)/go", "-o", "\(places.output)/go", ".",
        ]
      ]
    })

  private static let boost = PeerRecipe(
    "boost", tools: ["c++"], needs: "a C++ compiler, Boost.Context and Boost.Fiber",
    version: [
      "sh", "-c",
      // The last line is what the macro stands for: "1_74".
      "printf '#include <boost/version.hpp>\\nBOOST_LIB_VERSION\\n' | c++ -E -P -x c++ - | "
        + "tail -n 1 | sed 's/^/Boost /' | tr -d '\"' | tr '\\n' ' '; c++ --version | head -n 1",
    ],
    build: { places in
      [
        [
          "c++", "-O2", "-std=c++17", "-o", "\(places.output)/boost",
          "\(places.sources)/boost/main.cpp", "-lboost_fiber", "-lboost_context", "-pthread",
        ]
      ]
    })

  private static let java = PeerRecipe(
    "java", tools: ["java", "javac"], needs: "Java 21 or later to run, 17 or later to compile",
    version: ["java", "-version"],
    build: { places in
      [
        [
          "javac", "--release", "17", "-encoding", "UTF-8", "-d", "\(places.output)/java",
          "\(places.sources)/java/Peer.java",
        ]
      ]
    },
    command: { places, workers in
      let scheduler = "-Djdk.virtualThreadScheduler"
      return [
        "java", "\(scheduler).parallelism=\(workers)", "\(scheduler).maxPoolSize=\(workers)",
        "-cp", "\(places.output)/java", "Peer",
      ]
    })

  /// Debian keeps the sources of its Rust libraries here, in the form of a registry.
  private static let debianCrates = "/usr/share/cargo/registry"

  private static let tokio = PeerRecipe(
    "tokio", tools: ["cargo", "rustc"], needs: "Rust and tokio (Debian: librust-tokio-dev)",
    version: ["sh", "-c", "basename \(debianCrates)/tokio-[0-9]* | tr '\\n' ' '; rustc --version"],
    build: { places in
      let folder = "\(places.output)/tokio-sources"
      let build =
        "cargo build -q --release --manifest-path '\(folder)/Cargo.toml' --target-dir "
        + "'\(places.output)/tokio-target'"
      let replaced =
        " --offline --config 'source.crates-io.replace-with=\"debian\"' "
        + "--config 'source.debian.directory=\"\(debianCrates)\"'"
      // Copied, since cargo writes a lock file beside them.
      return [
        ["mkdir", "-p", folder],
        ["cp", "\(places.sources)/tokio/Cargo.toml", "\(places.sources)/tokio/main.rs", folder],
        [
          "sh", "-c",
          "if [ -d \(debianCrates)/tokio-macros-[0-9]* ]; then \(build)\(replaced); "
            + "else \(build); fi",
        ],
        ["cp", "\(places.output)/tokio-target/release/peer", "\(places.output)/tokio"],
      ]
    })

  private static let c = PeerRecipe(
    "c", tools: ["cc"], needs: "a C compiler", version: ["cc", "--version"], isPinned: true,
    build: { places in
      [["cc", "-O2", "-o", "\(places.output)/c", "\(places.sources)/c/peer.c", "-pthread"]]
    })

  private static let swift = PeerRecipe(
    "swift", tools: ["swiftc"], needs: "Swift 6", version: ["swiftc", "--version"],
    isPinned: true,
    build: { places in
      [
        [
          "swiftc", "-O", "-swift-version", "6", "-o", "\(places.output)/swift",
          "\(places.sources)/swift/main.swift",
        ]
      ]
    })
}
