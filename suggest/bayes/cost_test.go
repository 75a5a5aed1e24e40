package bayes_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// timed plays 25 trials of a loss with two valleys that are equally deep, of which one
// costs a hundred times as much time. It gives the points, the time in all and the least loss.
func timed(t *testing.T, function string, told bool, seed uint64) (points []string, total, least float64) {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "y", Kind: suggest.Double, Min: "0", Max: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := bayes.New(space, suggest.Settings{{Name: "acq_func", Value: function}})
	if err != nil {
		t.Fatal(err)
	}
	s := suggest.Session{Study: suggesttest.NewStudy(space, seed), Algorithm: a}
	least = math.Inf(1)
	for range 25 {
		asked, err := s.Ask(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		x, y := asked[0].Value("x").Float(), asked[0].Value("y").Float()
		loss := math.Cos(4*math.Pi*x) + (y-0.4)*(y-0.4) // valleys at 0.25 and 0.75
		seconds := math.Exp(math.Log(100) / (1 + math.Exp(-20*(x-0.5))))
		r := suggest.Result{Number: asked[0].Number, Values: []float64{loss}}
		if told {
			r.Duration = seconds
		}
		if err := s.Tell(r); err != nil {
			t.Fatal(err)
		}
		points, total, least = append(points, fmt.Sprint(x, y)), total+seconds, math.Min(least, loss)
	}
	return points, total, least
}

func TestImprovementPerSecondPrefersShortTrials(t *testing.T) {
	for seed := range uint64(3) {
		_, plain, _ := timed(t, "EI", true, seed)
		_, perSecond, least := timed(t, "EIps", true, seed)
		if perSecond > plain*2/3 || least > -0.99 {
			t.Errorf("seed %d: EIps took %.0f s to the loss %.4f, and EI %.0f s; want at most two thirds of the time, and the best loss of -1", seed, perSecond, least, plain)
		}
	}
}

func TestImprovementPerSecondWithoutTimesIsImprovement(t *testing.T) {
	want, _, _ := timed(t, "EI", false, 1)
	got, _, _ := timed(t, "EIps", false, 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-EI +EIps):\n%s", diff)
	}
}
