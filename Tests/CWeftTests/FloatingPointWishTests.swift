import CWeft
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

// PLATFORM: only x86-64 has two ways to choose from.
#if arch(x86_64)
  @Suite("Floating-point control by wish")
  struct FloatingPointWishTests {
    // In processes of their own: the answer is found once.

    @Test func load() async {
      await #expect(processExitsWith: .success) {
        // SAFETY: both are text that is there for the call, and no other thread reads variables.
        _ = unsafe setenv("WEFT_FP_CONTROL", "load", 1)
        precondition(weft_fp_load_is_cheap())
      }
    }

    @Test func compare() async {
      await #expect(processExitsWith: .success) {
        // SAFETY: as above.
        _ = unsafe setenv("WEFT_FP_CONTROL", "compare", 1)
        precondition(!weft_fp_load_is_cheap())
      }
    }
  }
#endif
