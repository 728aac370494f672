/// A file that is no report, or not one for this version.
public struct ReportError: Error, Equatable, CustomStringConvertible, Sendable {
  /// A sentence for the user.
  public let description: String

  init(_ description: String) { self.description = description }
}

extension Report {
  /// The report as JSON. Times keep four decimals, which is a tenth of a picosecond.
  public var json: JSON {
    .object([
      .init("schema", .string(Report.schema)),
      .init("version", .string(version)),
      .init("machine", machine.json),
      .init(
        "settings",
        .object([
          .init("samples", .number(Double(settings.samples))),
          .init("warm_ups", .number(Double(settings.warmUps))),
          .init("sample_ns", .number(settings.sampleNanoseconds)),
        ])),
      .init("jobs", .array(jobs.map(\.json))),
      .init("relations", .array(relations.map(\.json))),
    ])
  }

  /// Reads a report. What a newer version added is passed over; what is missing is an error.
  public init(json: JSON) throws {
    guard let schema = json["schema"]?.string else {
      throw ReportError("this is no report of weft-bench: it names no schema")
    }
    guard schema == Report.schema else {
      throw ReportError("the report has the schema \(schema); this version reads \(Report.schema)")
    }
    self.init(
      version: json["version"]?.string ?? "unknown",
      machine: try Machine(json: try json.member("machine")),
      settings: Settings(
        samples: Int(try json.member("settings").numberMember("samples")),
        warmUps: Int(try json.member("settings").numberMember("warm_ups")),
        sampleNanoseconds: try json.member("settings").numberMember("sample_ns")),
      jobs: try (json["jobs"]?.array ?? []).map { try JobResult(json: $0) },
      relations: try (json["relations"]?.array ?? []).map { try RelationResult(json: $0) })
  }
}

extension JSON {
  fileprivate func member(_ name: String) throws -> JSON {
    guard let value = self[name] else { throw ReportError("the report lacks \"\(name)\"") }
    return value
  }

  /// A number within what an Int can hold, so that no conversion of it traps.
  fileprivate func numberMember(_ name: String) throws -> Double {
    guard let value = try member(name).number, abs(value) < 1e18 else {
      throw ReportError("\"\(name)\" in the report is no number to work with")
    }
    return value
  }

  fileprivate func stringMember(_ name: String) throws -> String {
    guard let value = try member(name).string else {
      throw ReportError("\"\(name)\" in the report is no string")
    }
    return value
  }
}

/// Four decimals: more would be noise in every diff.
func rounded(_ value: Double) -> JSON { .number((value * 1e4).rounded() / 1e4) }

extension Machine {
  var json: JSON {
    .object([
      .init("system", .string(system)),
      .init("architecture", .string(architecture)),
      .init("processor", .string(processor)),
      .init("processors", .number(Double(processors))),
      .init("build", .string(build)),
    ])
  }

  fileprivate init(json: JSON) throws {
    self.init(
      system: try json.stringMember("system"),
      architecture: try json.stringMember("architecture"),
      processor: try json.stringMember("processor"),
      processors: Int(try json.numberMember("processors")),
      build: try json.stringMember("build"))
  }
}

extension JobResult {
  fileprivate var json: JSON {
    .object([
      .init("name", .string(name)),
      .init("group", .string(group)),
      .init("unit", .string(unit)),
      .init("summary", .string(summary)),
      .init("excludes", .string(excludes)),
      .init("purpose", .string(purpose.rawValue)),
      .init("iterations", .number(Double(iterations))),
      .init("samples", .number(Double(statistics.count))),
      .init("min", rounded(statistics.min)),
      .init("median", rounded(statistics.median)),
      .init("p90", rounded(statistics.p90)),
      .init("p99", rounded(statistics.p99)),
    ])
  }

  fileprivate init(json: JSON) throws {
    self.init(
      name: try json.stringMember("name"),
      group: try json.stringMember("group"),
      unit: try json.stringMember("unit"),
      summary: json["summary"]?.string ?? "",
      excludes: json["excludes"]?.string ?? "",
      purpose: (json["purpose"]?.string).flatMap(Purpose.init(rawValue:)) ?? .regression,
      iterations: Int(try json.numberMember("iterations")),
      statistics: Summary(
        count: Int(try json.numberMember("samples")),
        min: try json.numberMember("min"),
        median: try json.numberMember("median"),
        p90: try json.numberMember("p90"),
        p99: try json.numberMember("p99")))
  }
}

extension RelationResult {
  fileprivate var json: JSON {
    var members: [JSON.Member] = [
      .init("name", .string(name)),
      .init("formula", .string(formula)),
      .init("unit", .string(unit)),
      .init("median", rounded(median)),
      .init("of_minima", rounded(ofMinima)),
    ]
    switch goal {
    case .atMost(let limit): members.append(.init("goal_at_most", .number(limit)))
    case .atLeast(let limit): members.append(.init("goal_at_least", .number(limit)))
    case nil: break
    }
    if let verdict { members.append(.init("verdict", .string(verdict.rawValue))) }
    return .object(members)
  }

  fileprivate init(json: JSON) throws {
    let most = json["goal_at_most"]?.number.map(Goal.atMost)
    let least = json["goal_at_least"]?.number.map(Goal.atLeast)
    self.init(
      name: try json.stringMember("name"),
      formula: try json.stringMember("formula"),
      unit: try json.stringMember("unit"),
      goal: most ?? least,
      median: try json.numberMember("median"),
      ofMinima: try json.numberMember("of_minima"))
  }
}
