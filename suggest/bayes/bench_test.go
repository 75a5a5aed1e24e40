package bayes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// BenchmarkBayesianSuggest asks for one point after n trials over ten numbers. As in
// the service, the fit was made when the last result came in.
func BenchmarkBayesianSuggest(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("trials=%d", n), func(b *testing.B) { benchmarkSuggest(b, n) })
	}
}

// BenchmarkForestSuggest is the same with a forest, which is grown for each question.
func BenchmarkForestSuggest(b *testing.B) {
	for _, n := range []int{100, 300} {
		b.Run(fmt.Sprintf("trials=%d", n), func(b *testing.B) {
			benchmarkSuggest(b, n, suggest.Setting{Name: "base_estimator", Value: string(trees)})
		})
	}
}

// BenchmarkBayesianPrepare is the work after a result: at most a fit.
func BenchmarkBayesianPrepare(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("trials=%d", n), func(b *testing.B) {
			study := benchmarkStudy(b, n)
			for b.Loop() {
				a, err := New(study.Space, nil)
				if err != nil {
					b.Fatal(err)
				}
				a.(suggest.Preparer).Prepare(b.Context(), study)
			}
		})
	}
}

func benchmarkSuggest(b *testing.B, n int, settings ...suggest.Setting) {
	study := benchmarkStudy(b, n)
	a, err := New(study.Space, settings)
	if err != nil {
		b.Fatal(err)
	}
	var took []float64 // milliseconds
	for range b.N {
		b.StopTimer()
		a.(suggest.Preparer).Prepare(b.Context(), study)
		b.StartTimer()
		before := time.Now()
		got, err := a.Suggest(b.Context(), study, 1)
		took = append(took, float64(time.Since(before).Microseconds())/1000)
		b.StopTimer()
		if err != nil || got[0].Fallback != "" {
			b.Fatal(got, err)
		}
		if len(study.Trials) < n+30 {
			study.Trials = append(study.Trials, &suggest.Trial{
				Number: len(study.Trials), Point: got[0].Point, State: suggest.Succeeded, Values: []float64{benchmarkLoss(got[0].Point)}, Meta: got[0].Meta,
			})
		} else {
			study.Trials = study.Trials[:n:n]
		}
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*95/100], "p95-ms")
}

func benchmarkLoss(p suggest.Point) float64 {
	sum := 0.0
	for _, v := range p {
		sum += (v.Float() - 1) * (v.Float() - 1)
	}
	return sum
}

func benchmarkStudy(b *testing.B, n int) suggest.Study {
	specs := make([]suggest.ParameterSpec, 10)
	for i := range specs {
		specs[i] = suggest.ParameterSpec{Name: fmt.Sprint("x", i), Kind: suggest.Double, Min: "-5", Max: "5"}
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		b.Fatal(err)
	}
	study := suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}}
	stream, u := rng.New(1, "benchmark", 0, "points"), make([]float64, len(specs))
	for i := range n {
		for d := range u {
			u[d] = stream.Float64()
		}
		p := space.Decode(u)
		study.Trials = append(study.Trials, &suggest.Trial{Number: i, Point: p, State: suggest.Succeeded, Values: []float64{benchmarkLoss(p)}})
	}
	return study
}
