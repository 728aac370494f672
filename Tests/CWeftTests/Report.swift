// Runs a check of the probe.
//
// The checks are C and assembly (Tests/CWeftProbe), since no Swift code can fill a callee-saved
// register; main.c there runs the same ones without Swift, also on other architectures.
// GeneratorSwitchTests.swift alone switches from Swift frames.

import CWeftProbe

/// Where a check writes what went wrong first.
@safe struct Report {
  // SAFETY: made only by `failure(of:)`, for the duration of its closure.
  let pointer: UnsafeMutablePointer<weft_probe_report>
}

/// Runs a check and returns what went wrong first, or nothing.
func failure(of check: (Report) -> Void) -> String {
  var report = weft_probe_report()
  // SAFETY: the pointer is to `report`, which outlives the call; a check writes a C string.
  return unsafe withUnsafeMutablePointer(to: &report) { pointer in
    check(unsafe Report(pointer: pointer))
    return unsafe pointer.withMemoryRebound(
      to: CChar.self, capacity: MemoryLayout<weft_probe_report>.size
    ) { unsafe String(cString: $0) }
  }
}
