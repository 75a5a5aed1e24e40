package algorithm_test

import (
	"fmt"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// BenchmarkMultiFidelity is the time of one question in a study of ten parameters.
func BenchmarkMultiFidelity(b *testing.B) {
	var specs []suggest.ParameterSpec
	for i := range 10 {
		specs = append(specs, suggest.ParameterSpec{Name: fmt.Sprint("x", i), Kind: suggest.Double, Min: "0", Max: "1"})
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range multiFidelity {
		for _, trials := range []int{100, 1000, 10000} {
			if name == "mobster" && trials > 1000 {
				continue // it takes minutes to come there
			}
			r, _ := algorithm.Get(name)
			a, err := r.New(space, nil)
			if err != nil {
				b.Fatal(err)
			}
			s := suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}}
			for len(s.Trials) < trials {
				got, err := a.Suggest(b.Context(), s, min(500, trials-len(s.Trials)))
				if err != nil {
					b.Fatal(err)
				}
				for _, p := range got {
					number := len(s.Trials)
					s.Trials = append(s.Trials, &suggest.Trial{
						Number: number, Point: p.Point, Meta: p.Meta, Resource: p.Resource,
						State: suggest.Succeeded, Values: []float64{rng.New(1, "bench", number, "value").Float64()},
					})
				}
			}
			b.Run(fmt.Sprintf("%s/%d", name, trials), func(b *testing.B) {
				for b.Loop() {
					if _, err := a.Suggest(b.Context(), s, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
