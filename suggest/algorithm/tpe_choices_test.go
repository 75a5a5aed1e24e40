package algorithm_test

import (
	"fmt"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

// Of many switches some look best for a while by chance. Where the better value
// always won, nothing would ever tell.
func TestTPEDoubtsEachOfManySwitches(t *testing.T) {
	specs := []suggest.ParameterSpec{{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}}
	const switches, trials, questions = 12, 60, 300
	for i := range switches {
		specs = append(specs, suggest.ParameterSpec{Name: fmt.Sprint("switch", i), Kind: suggest.Categorical, List: []string{"on", "off"}})
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	a := newAlgorithm(t, "tpe", space)
	s := suggest.Study{Space: space, Objectives: objectives(1, suggest.Minimize), Budget: 200}
	for n := range trials {
		good := n%3 == 0
		values := []suggest.Assignment{{Name: "x", Value: fmt.Sprint(float64(n) / trials)}}
		for i := range switches {
			// Of the good trials four in five have it on, of the others half.
			on := n/3%5 != i%5
			if !good {
				on = (n+i)%2 == 0
			}
			values = append(values, suggest.Assignment{Name: specs[i+1].Name, Value: map[bool]string{true: "on", false: "off"}[on]})
		}
		point, ok := space.Parse(values)
		if !ok {
			t.Fatal(values)
		}
		loss := 1.0
		if good {
			loss = 0.1
		}
		s.Trials = append(s.Trials, &suggest.Trial{Number: n, Point: point, State: suggest.Succeeded, Values: []float64{loss + float64(n)/1e4}})
	}
	off := make([]int, switches)
	for seed := range uint64(questions) {
		s.Seed = seed
		proposals, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range switches {
			if proposals[0].Point[i+1].String() == "off" {
				off[i]++
			}
		}
	}
	for i, n := range off {
		if n < questions/100 || n > questions/2 {
			t.Errorf("switch %d is off in %d of %d proposals; on is likelier to be good, yet not sure to be", i, n, questions)
		}
	}
}
