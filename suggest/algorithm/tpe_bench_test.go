package algorithm_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// BenchmarkTPE measures one question after another while a study of ten numbers
// grows from 100, 1,000 and 10,000 trials at random: processor time, with the
// reading of the history.
func BenchmarkTPE(b *testing.B) {
	for _, trials := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(trials), func(b *testing.B) {
			specs := make([]suggest.ParameterSpec, 10)
			for i := range specs {
				specs[i] = suggest.ParameterSpec{Name: fmt.Sprint("x", i), Kind: suggest.Double, Min: "-5", Max: "5"}
			}
			space := newSpace(b, specs...)
			player := suggesttest.Player{Study: suggest.Study{Space: space, Seed: 1, Objectives: []suggest.Objective{{Name: "loss"}}}}
			player.Objective = func(_ int, p suggest.Point) float64 {
				sum := 0.0
				for _, v := range p {
					sum += (v.Float() - 1) * (v.Float() - 1)
				}
				return sum
			}
			player.Algorithm = built(b, "random", space)
			if err := player.Play(b.Context(), trials); err != nil {
				b.Fatal(err)
			}
			player.Algorithm = built(b, "tpe", space)
			var took []time.Duration
			for b.Loop() {
				before := processorTime()
				if _, err := player.Algorithm.Suggest(b.Context(), player.Study, 1); err != nil {
					b.Fatal(err)
				}
				took = append(took, processorTime()-before)
				if err := player.Play(b.Context(), len(player.Study.Trials)+1); err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Nanoseconds()), "p95-ns")
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
		})
	}
}

func built(b *testing.B, name string, space suggest.Space) suggest.Algorithm {
	b.Helper()
	r, _ := algorithm.Get(name)
	a, err := r.New(space, nil)
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func processorTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
