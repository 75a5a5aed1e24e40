package tpe

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
)

func branchesOf(t *testing.T, specs ...suggest.ParameterSpec) (*history.Encoding, tpeBranches) {
	t.Helper()
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	e := history.NewEncoding(space)
	l := newTPELayout(e, Default(Auto))
	return e, newTPEBranches(e, &l)
}

func TestBranchesAreTheCombinationsThatExist(t *testing.T) {
	when := func(parameter string, in ...string) *suggest.When {
		return &suggest.When{Parameter: parameter, In: in}
	}
	x := func(w *suggest.When) suggest.ParameterSpec {
		return suggest.ParameterSpec{Name: "x", Kind: suggest.Double, Min: "0", Max: "1", When: w}
	}
	letters := suggest.ParameterSpec{Name: "outer", Kind: suggest.Categorical, List: []string{"a", "b"}}
	nan := math.NaN()
	for name, c := range map[string]struct {
		specs []suggest.ParameterSpec
		want  [][]float64
	}{
		"no condition":    {[]suggest.ParameterSpec{letters, x(nil)}, nil},
		"one choice":      {[]suggest.ParameterSpec{letters, x(when("outer", "b"))}, [][]float64{{0, nan}, {1, nan}}},
		"too many":        {[]suggest.ParameterSpec{{Name: "outer", Kind: suggest.Int, Min: "1", Max: "100"}, x(when("outer", "7"))}, nil},
		"a choice within": {[]suggest.ParameterSpec{x(when("inner", "2")), {Name: "inner", Kind: suggest.Discrete, List: []string{"1", "2"}, When: when("outer", "b")}, letters}, [][]float64{{nan, nan, 0}, {nan, 0.25, 1}, {nan, 0.75, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, b := branchesOf(t, c.specs...)
			if diff := cmp.Diff(fmt.Sprint(c.want), fmt.Sprint(b.fixed)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Eight branches race: each has its first trials, then four are left, then two,
// also when one of the last two is far ahead in trials.
func TestBranchesRaceBySuccessiveHalving(t *testing.T) {
	list := []string{"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"}
	e, b := branchesOf(t,
		suggest.ParameterSpec{Name: "model", Kind: suggest.Categorical, List: list},
		suggest.ParameterSpec{Name: "x", Kind: suggest.Double, Min: "0", Max: "1", When: &suggest.When{Parameter: "model", In: []string{"b0"}}})
	var h history.History
	counts := make([]int, len(list))
	run := func(n int) []int {
		for range n {
			k := b.race(e, h, nil)[0]
			counts[int(k)]++
			o := &history.Row{X: []float64{k, math.NaN()}, Losses: []float64{math.Abs(k - 5)}}
			if k == 7 { // which always fails
				o.Losses = nil
				h.Failed = append(h.Failed, o)
				continue
			}
			h.Measured = append(h.Measured, o)
		}
		return counts
	}
	for _, step := range []struct {
		trials int
		want   []int
	}{
		{32, []int{4, 4, 4, 4, 4, 4, 4, 4}},
		{16, []int{4, 4, 4, 8, 8, 8, 8, 4}}, // 3, 4, 5, 6 are the best
		{16, []int{4, 4, 4, 8, 16, 16, 8, 4}},
		{32, []int{4, 4, 4, 8, 32, 32, 8, 4}},
	} {
		if diff := cmp.Diff(step.want, append([]int(nil), run(step.trials)...)); diff != "" {
			t.Fatal(diff)
		}
	}
	for range 100 {
		h.Measured = append(h.Measured, &history.Row{X: []float64{5, math.NaN()}, Losses: []float64{0}})
	}
	run(10)
	if counts[4] != 42 {
		t.Errorf("the second of the last two has %d trials, want 42", counts[4])
	}
}
