import CWeft
import WeftContext

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

// An error that nobody will ever see is reported once on stderr: when the last handle is gone,
// since until then somebody may still join. Where no handle is left when the fiber ends, its
// outcome is released right there, on its own stack, where user code in a `deinit` or
// `description` may park.

extension UnsafeMutablePointer where Pointee == weft_fiber {
  /// Releases the outcome, and reports an error that nobody took. Called once nobody can join.
  func releaseOutcome() {
    // SAFETY: nobody has a handle, so nobody else reads flags and outcome; the runner's words hold
    // how to release what `owns` says is there.
    if unsafe weft_fiber_flags(self) & .owns == 0 { return }
    unsafe weft_fiber_clear_flag(self, .owns)
    let release = unsafe runner.move()
    unsafe release.call(self)
  }

  /// At the end of the fiber: releases its locals, and its outcome if nobody has a handle. Out of
  /// line: few fibers need it.
  @inline(never)
  func releaseAtEnd() {
    // SAFETY: the run's reference keeps the object alive. If it is the only one, no handle is left
    // to copy; what the registry hands out joins nobody.
    if unsafe pointee.flags & .locals != 0 { unsafe releaseLocals() }
    if unsafe pointee.flags & .owns == 0 { return }
    if unsafe weft_is_shared(unmanagedCell.toOpaque()) { return }
    unsafe releaseOutcome()
  }

  /// After an error: remembers in the fiber whether it was cancelled, which at the end of its
  /// scheduler nothing else will tell.
  @usableFromInline
  func noteCancellation() {
    // SAFETY: runs as the fiber, so this thread's worker is its own.
    if let worker = unsafe weft_worker_current() { _ = unsafe isCancelledHere(worker) }
  }
}

/// The error of a fiber is about to be released.
@usableFromInline
func reportIfUnjoined(_ record: Record, _ error: any Error) {
  // SAFETY: called from releaseOutcome: the caller alone has the record.
  if unsafe record.pointee.flags & (.joined | .child) != 0 { return }
  // The cancellation that it was given is no news.
  if error is CancellationError, unsafe record.isCancelled { return }
  // What the description does is not ours to know: not on a small stack.
  withLargeStack(.kibibytes(256)) {
    var text = "weft: fiber #\(unsafe weft_fiber_id(record))"
    if let name = unsafe record.cell.name { text += " \"\(name)\"" }
    // SAFETY: a site names constants of the program.
    let site = unsafe record.pointee.site
    if let file = unsafe site.file {
      let bytes = unsafe UnsafeBufferPointer(start: file, count: Int(site.file_bytes))
      text += unsafe " (created at \(String(decoding: bytes, as: UTF8.self)):\(site.line))"
    }
    text += " failed, and nobody joined it: \(error)\n"
    if Seam.isSimulated { return Seam.noteUnjoined(text) }
    text.withUTF8 { bytes in
      // In one call, so that lines of several threads do not mix.
      _ = unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count)
    }
  }
}
