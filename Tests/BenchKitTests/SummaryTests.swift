import BenchKit
import Testing

@Suite("Summary")
struct SummaryTests {
  @Test func oneSampleIsEveryStatistic() throws {
    let summary = try #require(Summary([4.5]))
    #expect(summary == Summary(count: 1, min: 4.5, median: 4.5, p90: 4.5, p99: 4.5))
  }

  @Test func orderDoesNotMatter() {
    #expect(Summary([3, 1, 2]) == Summary([1, 2, 3]))
  }

  @Test func medianOfAnEvenCountIsBetweenTheMiddleTwo() throws {
    #expect(try #require(Summary([1, 2, 10, 20])).median == 6)
  }

  @Test func tailsAreInterpolated() throws {
    let summary = try #require(Summary((0...100).map(Double.init)))
    #expect(summary.min == 0)
    #expect(summary.median == 50)
    #expect(summary.p90 == 90)
    #expect(summary.p99 == 99)
  }

  @Test func nothingFiniteGivesNothing() {
    #expect(Summary([]) == nil)
    #expect(Summary([.nan, .infinity, -.infinity]) == nil)
  }

  @Test func samplesThatAreNotFiniteAreLeftOut() throws {
    let summary = try #require(Summary([.nan, 2, .infinity, 4]))
    #expect(summary.count == 2)
    #expect(summary.median == 3)
    #expect(summary.p99 < 4.0001)
  }

  @Test(arguments: [(-5.0, 1.0), (0, 1), (25, 2), (50, 3), (100, 5), (250, 5)])
  func percentagesAreClamped(percentage: Double, expected: Double) {
    #expect(percentile(percentage, ofSorted: [1, 2, 3, 4, 5]) == expected)
  }
}
