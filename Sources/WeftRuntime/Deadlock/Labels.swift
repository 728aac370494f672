import CWeft

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// `main.swift:12`.
func siteText(_ site: weft_site) -> String {
  // SAFETY: the text is a literal of the program.
  guard let file = unsafe site.file else { return "an unknown place" }
  let bytes = unsafe UnsafeBufferPointer(start: file, count: Int(site.file_bytes))
  return unsafe "\(String(decoding: bytes, as: UTF8.self)):\(site.line)"
}

/// `fiber #3 "reader" (made at main.swift:12)`.
func label(of cell: FiberCell) -> String {
  // SAFETY: the caller holds the cell; its site never changes.
  unsafe "\(shortLabel(of: cell)) (made at \(siteText(cell.pointer.pointee.site)))"
}

/// `fiber #3 "reader"`.
func shortLabel(of cell: FiberCell) -> String {
  let name = cell.name.map { " \"\($0)\"" } ?? ""
  return "fiber \(cell.id)\(name)"
}

/// What a fiber last waited for, and its stack.
@safe
struct ColdState {
  let reason: ParkReason
  let object: UInt
  /// Its pages may be others' by now.
  let stack: weft_stack
}

/// Nil if the fiber has not started, or has ended.
func coldState(of cell: FiberCell) -> ColdState? {
  // SAFETY: that part of the record is on the fiber's stack, which goes when the fiber ends: it is
  // copied through the kernel, which does not fault, and the words in it are not followed.
  guard let cold = unsafe cell.pointer.pointee.cold else { return nil }
  var copy = unsafe weft_fiber_cold()
  guard unsafe weft_copy_memory(&copy, cold, UInt64(MemoryLayout<weft_fiber_cold>.size)) else {
    return nil
  }
  return unsafe ColdState(
    reason: ParkReason(rawValue: copy.wait_reason) ?? .none,
    object: UInt(bitPattern: copy.wait_object), stack: copy.stack)
}

func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// In one piece, so that lines of others do not get in between, as far as the kernel allows.
func writeToStandardError(_ text: String) {
  var text = text
  text.withUTF8 { bytes in
    var done = 0
    while done < bytes.count {
      // SAFETY: within the buffer.
      let count = unsafe write(STDERR_FILENO, bytes.baseAddress! + done, bytes.count - done)
      if count < 0 && errno == EINTR { continue }
      if count <= 0 { return }
      done += count
    }
  }
}
