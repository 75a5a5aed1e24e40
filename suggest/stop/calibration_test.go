package stop

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// synthetic are families of curves, none of which is exactly a shape of package
// curve: from the stream, the value at u in (0, 1] of the whole.
func synthetic() map[string]func(*rng.Stream) func(u float64) float64 {
	uniform := func(s *rng.Stream, low, high float64) float64 { return low + (high-low)*s.Float64() }
	return map[string]func(*rng.Stream) func(u float64) float64{
		"powers, where slow ones end low": func(s *rng.Stream) func(float64) float64 {
			limit := s.Float64()
			t0, alpha := uniform(s, 0.005, 0.1), 0.4+1.2*limit
			return func(u float64) float64 { return limit + (1.5-limit)*math.Pow(t0/(u+t0), alpha) }
		},
		"exponentials": func(s *rng.Stream) func(float64) float64 {
			limit, start, rate := s.Float64(), uniform(s, 1, 2), uniform(s, 2, 15)
			return func(u float64) float64 { return limit + (start-limit)*math.Exp(-rate*u) }
		},
		"two phases": func(s *rng.Stream) func(float64) float64 {
			limit, drop, at, rate := s.Float64(), uniform(s, 0, 0.4), uniform(s, 0.1, 0.8), uniform(s, 5, 30)
			return func(u float64) float64 {
				return limit + drop/(1+math.Exp(25*(u-at))) + (1.5-limit)*math.Exp(-rate*u)
			}
		},
		"overfitting": func(s *rng.Stream) func(float64) float64 {
			limit, rise, rate := s.Float64(), uniform(s, 0, 0.5), uniform(s, 5, 30)
			return func(u float64) float64 { return limit + rise*u + (1.5-limit)*math.Exp(-rate*u) }
		},
	}
}

// verdicts plays one search after another, each of n trials of which the rule
// may stop the later ones, and counts how many were stopped, how many of these
// would have become the best, and the steps that were spared.
func verdicts(family func(*rng.Stream) func(float64) float64, noise float64, searches, n int) (stopped, wrong, spared int) {
	const end = 60
	r, err := curveRegistration().New(nil)
	if err != nil {
		panic(err)
	}
	for seed := range searches {
		var s suggest.Study
		for number := range n {
			stream := rng.New(uint64(seed), "calibration", number, "curve")
			value := family(stream)
			full := make([]suggest.Sample, end)
			for i := range full {
				full[i] = suggest.Sample{Step: int64(i + 1), Value: value(float64(i+1)/end) + noise*stream.NormFloat64()}
			}
			t := &suggest.Trial{Number: number, State: suggest.Succeeded, Curve: full}
			incumbent := math.Inf(1)
			for _, other := range s.Trials {
				if other.State == suggest.Succeeded {
					incumbent = min(incumbent, other.Curve[end-1].Value)
				}
			}
			for i := 1; i < end; i++ {
				t.Curve = full[:i]
				if stop, _ := r.Stop(s, t); stop {
					t.State = suggest.Pruned
					stopped++
					spared += end - i
					if full[end-1].Value < incumbent {
						wrong++
					}
					break
				}
				t.Curve = full
			}
			s.Trials = append(s.Trials, t)
		}
	}
	return stopped, wrong, spared
}

// The rule may stop at a probability of 5 %. Among the trials that it stops, at
// most a tenth would have become the best, also on curves that no shape of the
// model has; and it stops enough to be worth having.
func TestCurveIsCalibrated(t *testing.T) {
	const searches, n, end = 6, 20, 60
	for name, family := range synthetic() {
		for _, noise := range []float64{0, 0.05} {
			stopped, wrong, spared := verdicts(family, noise, searches, n)
			t.Logf("%s, noise %g: %d of %d stopped, %d wrongly, %.0f %% of the steps spared", name, noise, stopped, searches*n, wrong, 100*float64(spared)/(searches*n*end))
			if float64(wrong) > 0.1*float64(stopped) {
				t.Errorf("%s, noise %g: %d of %d were stopped wrongly", name, noise, wrong, stopped)
			}
			if spared < searches*n*end/10 {
				t.Errorf("%s, noise %g: %d of %d steps were spared", name, noise, spared, searches*n*end)
			}
		}
	}
}
