package algorithm_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/design"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// BenchmarkAsk measures one question at a time while a study of ten numbers
// grows from 100, 1,000 and 10,000 trials, each answered before the next: with
// 10,000 ended trials, random, tpe and cmaes may take 5 ms.
func BenchmarkAsk(b *testing.B) {
	for _, name := range []string{"tpe", "cmaes", "nsga2", "nsga3", "regularized-evolution", "random", "sobol", "halton"} {
		for _, trials := range []int{100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, trials), func(b *testing.B) { benchmarkAsk(b, name, trials) })
		}
	}
}

func benchmarkAsk(b *testing.B, name string, trials int) {
	var specs []suggest.ParameterSpec
	for i := range 10 {
		specs = append(specs, suggest.ParameterSpec{Name: "x" + strconv.Itoa(i), Kind: suggest.Double, Min: "-5", Max: "5"})
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		b.Fatal(err)
	}
	r, _ := algorithm.Get(name)
	a, err := r.New(space, nil)
	if err != nil {
		b.Fatal(err)
	}
	player := suggesttest.Player{Algorithm: a, Study: suggest.Study{Space: space, Seed: 1, Objectives: []suggest.Objective{{Name: "loss"}}}}
	player.Objective = func(_ int, p suggest.Point) float64 {
		sum := 0.0
		for _, v := range p {
			sum += (v.Float() - 1) * (v.Float() - 1)
		}
		return sum
	}
	if name == "tpe" { // which would take minutes to come to 10,000, and learns from any points
		player.Algorithm, _ = design.NewRandom(space, nil)
	}
	if err := player.Play(b.Context(), trials); err != nil {
		b.Fatal(err)
	}
	player.Algorithm = a
	if _, err := a.Suggest(b.Context(), player.Study, 1); err != nil { // which reads all
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		before := time.Now()
		if _, err := a.Suggest(b.Context(), player.Study, 1); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(before))
		if err := player.Play(b.Context(), len(player.Study.Trials)+1); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*95/100].Nanoseconds())/1e3, "p95-µs")
}
