package analysis

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

func TestContourFollowsTheResults(t *testing.T) {
	lr := suggest.ParameterSpec{Name: "lr", Kind: suggest.Double, Min: "0.0001", Max: "1", Distribution: suggest.LogUniform}
	opt := suggest.ParameterSpec{Name: "opt", Kind: suggest.Categorical, List: []string{"sgd", "adam"}}
	space := newSpace(t, lr, opt, double("other", "0", "1"))
	s := play(space, 400, func(p suggest.Point) float64 {
		k, _ := p[1].Index()
		return math.Abs(math.Log10(p[0].Float())+2) + 10*float64(k)
	})
	got, err := Contour(s, 0, "lr", "opt", 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sgd", "adam"}, got.Y.Words); diff != "" {
		t.Error(diff)
	}
	for i, want := range []float64{1e-4, 1e-3, 1e-2, 1e-1, 1} {
		if math.Abs(got.X.Values[i]/want-1) > 1e-9 {
			t.Errorf("place %d of lr is %v, want %v", i, got.X.Values[i], want)
		}
		for k, base := range []float64{0, 10} {
			if z, want := got.Z[k*5+i], math.Abs(math.Log10(want)+2)+base; math.Abs(z-want) > 0.5 {
				t.Errorf("at %v of %s it is %v, want about %v", got.X.Values[i], got.Y.Words[k], z, want)
			}
		}
	}
}

func TestContourKnowsNothingFarFromResults(t *testing.T) {
	space := newSpace(t, double("a", "0", "1"), double("b", "0", "1"))
	s := play(space, 400, func(suggest.Point) float64 { return 3 })
	for _, trial := range s.Trials { // all in one corner
		trial.Point = space.Decode([]float64{trial.Point[0].Float() / 10, trial.Point[1].Float() / 10})
	}
	got, err := Contour(s, 0, "a", "b", 6)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Z[0]-3) > 1e-9 || !math.IsNaN(got.Z[7]) || !math.IsNaN(got.Z[35]) {
		t.Errorf("in the corner %v, a bit outside %v, far away %v", got.Z[0], got.Z[7], got.Z[35])
	}
	if _, err := Contour(s, 0, "a", "c", 3); err == nil {
		t.Error("a parameter that does not exist is answered")
	}
}
