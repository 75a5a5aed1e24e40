package suggesttest

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// HoldsBetter holds that paired differences are above 0: in eight of ten pairs,
// and by four standard errors on average.
func HoldsBetter(t *testing.T, gains []float64) {
	t.Helper()
	mean, deviation := stat.MeanStdDev(gains, nil)
	wins, errors := 0, mean/(deviation/math.Sqrt(float64(len(gains))))
	for _, gain := range gains {
		if gain > 0 {
			wins++
		}
	}
	t.Logf("better in %d of %d pairs, by %.3g on average: %.1f standard errors", wins, len(gains), mean, errors)
	if wins < len(gains)*8/10 || errors < 4 {
		t.Errorf("better in %d of %d pairs, by %.3g on average: %.1f standard errors", wins, len(gains), mean, errors)
	}
}
