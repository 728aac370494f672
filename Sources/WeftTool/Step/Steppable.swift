// Steppable.swift - what the stepper needs of whatever it steps.

/// A program that goes on step by step, the same way every time that it is asked for the same.
protocol Steppable: AnyObject {
  /// Counts from 1.
  var step: Int { get }
  var isAtEnd: Bool { get }

  /// One step on, in the order that is natural. Does nothing at the end.
  func advance() throws
  /// To a step: back by a replay, on as `advance` does. Past the end means the end.
  func go(to target: Int) throws

  /// The picture of where it stands.
  func lines(glyphs: Glyphs, size: ScreenSize, footer: StyledLine?) -> [StyledLine]
  /// The same as an object.
  var json: JSON { get }
  /// What the program has printed.
  var output: [String] { get }

  /// What one step is called: "switch".
  var unit: String { get }
  /// Keys that only this program has.
  var ownKeys: [KeyLegend] { get }
  /// The largest number that can be chosen, nil if there is nothing to choose.
  var choiceMax: Int? { get }
  /// Does what one of its own keys asks for.
  ///
  /// - Returns: why not, if it cannot be done now.
  func handleOwn(_ key: StepKey) throws -> String?
  /// What the help says below the keys.
  var helpParagraphs: [String] { get }
}

extension Steppable {
  var ownKeys: [KeyLegend] { [] }
  var choiceMax: Int? { nil }
  func handleOwn(_ key: StepKey) -> String? { nil }
}

extension Machine: Steppable {
  func lines(glyphs: Glyphs, size: ScreenSize, footer: StyledLine?) -> [StyledLine] {
    view(glyphs: glyphs, size: size).lines(footer: footer)
  }

  func view(glyphs: Glyphs, size: ScreenSize) -> StepView {
    StepView(snapshot: snapshot(), program: program, glyphs: glyphs, size: size)
  }

  var json: JSON { view(glyphs: .unicode, size: .plain).json }
  var output: [String] { snapshot().output }
  var unit: String { "switch" }

  var helpParagraphs: [String] {
    [
      "The program stands still in the middle of each switch: the side that leaves has pushed its "
        + "registers and its stack pointer is saved, the other one's has not been loaded yet. "
        + "So both stacks can be read, and everything shown is what really lies on them.",
      "For that, a switch goes by way of the stepper instead of straight to the other side. The "
        + "routines are the same machine code either way.",
    ]
  }
}
