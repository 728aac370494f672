// What went wrong in other switches and is not seen in registers.

#if os(Linux)
  import Glibc
  import Testing

  @Suite struct SituationTests {
    /// Situation 12: a program that is marked as fit for shadow stacks, of which a switch keeps one
    /// only, dies at the first return after a switch. We keep none, so no program with Weft in it
    /// may be marked: the linker takes the mark away if one object lacks it.
    @Test func noShadowStackIsAskedFor() {
      // Linux says which threads have one; where it knows of none there is no such line.
      let status = contents("/proc/thread-self/status").split(separator: 10)
      let features = status.map { String(decoding: $0, as: UTF8.self) }
        .first { $0.hasPrefix("x86_Thread_features:") }
      #expect(features?.contains("shstk") != true)
      #expect(Self.claims(contents("/proc/self/exe")) & Self.shadowStack == 0)
    }

    @Test func marksAreRead() {
      // A note of the kind "GNU", whose property says IBT and shadow stack.
      let note: [UInt8] =
        [4, 0, 0, 0, 16, 0, 0, 0, 5, 0, 0, 0] + Array("GNU\0".utf8)
        + [2, 0, 0, 0xC0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
      var image = [UInt8](repeating: 0, count: 64 + 56)
      func put(_ value: Int, at offset: Int, bytes: Int) {
        for i in 0..<bytes { image[offset + i] = UInt8(value >> (8 * i) & 0xFF) }
      }
      put(64, at: 32, bytes: 8)  // program headers: where,
      put(56, at: 54, bytes: 2)  // how large,
      put(1, at: 56, bytes: 2)  // how many
      put(0x6474_E553, at: 64, bytes: 4)
      put(120, at: 64 + 8, bytes: 8)
      put(note.count, at: 64 + 32, bytes: 8)
      #expect(Self.claims(image + note) == 3)
      put(0x6474_E551, at: 64, bytes: 4)
      #expect(Self.claims(image + note) == 0)
    }

    private static let shadowStack = 2

    /// What an ELF program of 64 bits says of control-flow protection on x86: bits of
    /// GNU_PROPERTY_X86_FEATURE_1_AND in its PT_GNU_PROPERTY segment.
    private static func claims(_ image: [UInt8]) -> Int {
      func number(_ offset: Int, _ bytes: Int) -> Int {
        (0..<bytes).reduce(0) { $0 | Int(image[offset + $1]) << (8 * $1) }
      }
      for index in 0..<number(56, 2) {
        let header = number(32, 8) + index * number(54, 2)
        guard number(header, 4) == 0x6474_E553 else { continue }
        // The note's head and name, then properties: kind, length, padded to eight bytes.
        var at = number(header + 8, 8) + 16
        let end = number(header + 8, 8) + number(header + 32, 8)
        while at + 12 <= end {
          if number(at, 4) == 0xC000_0002 { return number(at + 8, 4) }
          at += 8 + (number(at + 4, 4) + 7) / 8 * 8
        }
      }
      return 0
    }
  }

  private func contents(_ path: String) -> [UInt8] {
    var bytes: [UInt8] = []
    // SAFETY: closed below.
    guard let file = unsafe fopen(path, "re") else { return bytes }
    defer { unsafe fclose(file) }
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      // SAFETY: into the buffer, no more than it holds.
      let count = unsafe fread(&chunk, 1, chunk.count, file)
      if count == 0 { return bytes }
      bytes += chunk[..<count]
    }
  }
#endif
