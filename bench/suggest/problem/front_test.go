package problem

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// TestFrontVolumes compares with integrals in closed form.
func TestFrontVolumes(t *testing.T) {
	want := map[string]float64{
		// The box without what is below the front, between 0 and 1.
		"zdt1-12": 1.1*5 - 1.0/3,
		"zdt2-12": 1.1*5 - 2.0/3,
		// A quarter of an ellipse is missing.
		"wfg4-6":  2.2*4.4 - math.Pi*2*4/4,
		"dtlz2-7": 1.331 - math.Pi/6,
	}
	for _, p := range frontProblems() {
		w, ok := want[p.Name]
		if got := p.Front.Volume(); ok && math.Abs(got-w) > 1e-4 {
			t.Errorf("%s: %v, want %v", p.Name, got, w)
		}
	}
}

// TestNothingIsBeyondTheFront draws random feasible points, half of them close to
// the front, and none may add to its hypervolume.
func TestNothingIsBeyondTheFront(t *testing.T) {
	for _, p := range frontProblems() {
		t.Run(p.Name, func(t *testing.T) {
			space, stream := p.Space(), rng.New(1, "test", 0, p.Name)
			var feasible [][]float64
			for range 20000 {
				o := p.Truth(draw(space, stream))
				ok := true
				for _, c := range o.Constraints {
					ok = ok && c <= 0
				}
				if len(o.Values) != len(p.Front.Reference) || len(o.Constraints) != p.Constraints() {
					t.Fatalf("%+v has the wrong size", o)
				}
				if ok {
					feasible = append(feasible, o.Values)
				}
			}
			volume := pareto.Hypervolume(feasible, p.Front.Reference)
			if volume <= 0 || volume > p.Front.Volume()*(1+1e-6) {
				t.Errorf("%d feasible points have the volume %v, the front has %v", len(feasible), volume, p.Front.Volume())
			}
		})
	}
}
