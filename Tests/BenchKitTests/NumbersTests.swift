import Testing

@testable import BenchKit

@Suite("Numbers")
struct NumbersTests {
  @Test(arguments: [
    (1.005, 2, "1.00"), (1.999, 2, "2.00"), (0, 2, "0.00"), (0.04, 1, "0.0"), (-0.04, 1, "0.0"),
    (-1.25, 1, "-1.3"), (12.5, 0, "13"), (0.05, 2, "0.05"), (.nan, 2, "–"), (.infinity, 2, "–"),
    (1e300, 2, "–"),
  ])
  func fixedDecimals(value: Double, decimals: Int, expected: String) {
    #expect(fixed(value, decimals: decimals) == expected)
  }

  @Test(arguments: [
    (1.414, "1.41"), (9.999, "10.0"), (99.99, "100"), (999.6, "1,000"), (1_234_567.0, "1,234,567"),
    (-1234.0, "-1,234"), (-123.0, "-123"), (0.0, "0.00"),
  ])
  func aboutThreeDigits(value: Double, expected: String) {
    #expect(readable(value) == expected)
  }

  @Test(arguments: [(8.0, "8"), (2.2, "2.2"), (-3.0, "-3"), (1e20, "1e+20")])
  func noNeedlessZeros(value: Double, expected: String) {
    #expect(compact(value) == expected)
  }
}
