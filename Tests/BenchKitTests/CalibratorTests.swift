import BenchKit
import Testing

@Suite("Calibrator")
struct CalibratorTests {
  let calibrator = Calibrator(targetNanoseconds: 1_000_000, maxIterations: 1 << 30)

  @Test func aLongTrialSettlesIt() {
    #expect(calibrator.step(iterations: 100, elapsed: 500_000) == .use(200))
  }

  @Test func aShortTrialGrowsBySixteenAtMost() {
    #expect(calibrator.step(iterations: 10, elapsed: 50) == .tryAgain(160))
    #expect(calibrator.step(iterations: 10, elapsed: 200_000) == .tryAgain(50))
  }

  @Test func oneIterationMayBeTooMuchAlready() {
    #expect(calibrator.step(iterations: 1, elapsed: 1e12) == .use(1))
  }

  @Test func aClockThatStandsStillEndsAtTheLimit() {
    #expect(calibrator.step(iterations: 1, elapsed: 0) == .tryAgain(16))
    #expect(calibrator.step(iterations: 1 << 30, elapsed: 0) == .use(1 << 30))
    #expect(calibrator.step(iterations: 1 << 30, elapsed: -5) == .use(1 << 30))
  }

  @Test(arguments: [0.3, 4.0, 900.0, 2e6])
  func findsItsTargetForAnyCost(cost: Double) {
    let iterations = calibrator.calibrate { Double($0) * cost }
    let elapsed = Double(iterations) * cost
    #expect(iterations == 1 || (elapsed > 900_000 && elapsed < 1_100_000))
  }

  @Test func aColdFirstTrialIsNotBelieved() {
    var trials = 0
    let iterations = calibrator.calibrate { count in
      trials += 1
      return Double(count) * 10 + (trials == 1 ? 5_000_000 : 0)
    }
    #expect((90_000...110_000).contains(iterations))
  }

  @Test func contradictoryTimesEndToo() {
    var trials = 0
    _ = calibrator.calibrate { _ in
      trials += 1
      return trials % 2 == 0 ? 1 : 1_000_000
    }
    #expect(trials <= 100)
  }
}
