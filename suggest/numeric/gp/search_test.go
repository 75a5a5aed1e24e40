package gp

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func TestAcquisitionGradients(t *testing.T) {
	dims := mixedDims()
	rows, y := mixedRows(40)
	layout := NewLayout(dims)
	theta := Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, -2}
	var models []Predictor
	for range 3 {
		models = append(models, conditioned(t, layout, theta, rows[:30], y[:30]))
		theta = slices.Clone(theta)
		theta[0] += 0.3
		y = append(slices.Clone(y[7:]), y[:7]...)
	}
	offset := func(rows [][]float64, _ bool) (values, gradients []float64) {
		for _, row := range rows {
			values = append(values, math.Sin(row[0]))
			gradients = append(gradients, math.Cos(row[0]), 0, 0, 0, 0)
		}
		return values, gradients
	}
	cases := map[string]Acquisition{
		"improvement":               {Models: models[:1], Utility: Improvement{Best: -1}},
		"improvement, far below":    {Models: models[:1], Utility: Improvement{Best: -30}},
		"improvement with offset":   {Models: models[:1], Utility: Improvement{Best: -1}, Offset: offset},
		"probability":               {Models: models[:1], Utility: ProbableImprovement{Best: -1}},
		"lower bound":               {Models: models[:1], Utility: LowerBound{Beta: 1.8}},
		"exploration, in reach":     {Models: models[:1], Utility: Exploration{Threshold: 5}},
		"exploration, out of reach": {Models: models[:1], Utility: Exploration{Threshold: -5}},
		"bounded":                   {Models: models, Utility: Bounded{Utility: Improvement{Best: 0}, Limits: []float64{0, -0.5}, Blurs: []float64{0.1, 1e-6}, Weights: []float64{1, 3}}},
		"bounds alone":              {Models: models, Utility: Bounded{Limits: []float64{0, -0.5}, Blurs: []float64{0.1, 1e-6}, Weights: []float64{1, 3}}},
	}
	for name, a := range cases {
		_, gradients := a.Values(rows[30:], true)
		for i, row := range rows[30:] {
			for _, d := range []int{0, 2, 3} {
				if row[d] != row[d] {
					continue
				}
				const h = 1e-6
				up, down := slices.Clone(row), slices.Clone(row)
				up[d] += h
				down[d] -= h
				values, _ := a.Values([][]float64{up, down}, false)
				near(t, name, gradients[i*5+d], (values[0]-values[1])/(2*h), 1e-4)
			}
		}
	}
}

// searched looks for the largest value of a function without a model.
func searched(t *testing.T, dims []box.Dim, f func(row []float64) float64, change func(*Search)) []Found {
	t.Helper()
	uniform := rng.New(1, "search", 0, "uniform")
	s := Search{
		Dims: dims, Lengthscales: slices.Repeat([]float64{0.5}, len(dims)), Candidates: 200, Starts: 4, Iterations: 40,
		Stream: rng.New(1, "search", 0, "stream"),
		Uniform: func(_ int, row []float64) {
			for d := range row {
				row[d] = uniform.Float64()
				if dims[d].Kind == box.Choice {
					row[d] *= float64(dims[d].Count)
				}
			}
		},
		Values: func(rows [][]float64, gradient bool) (values, gradients []float64) {
			for _, row := range rows {
				values = append(values, f(row))
				for d := range row {
					const h = 1e-6
					up := slices.Clone(row)
					up[d] += h
					if gradient && dims[d].Kind != box.Continuous {
						up[d] = row[d]
					}
					gradients = append(gradients, (f(up)-f(row))/h)
				}
			}
			return values, gradients
		},
	}
	if change != nil {
		change(&s)
	}
	return s.Run(t.Context())
}

func TestSearchFindsTheTop(t *testing.T) {
	levels := make([]float64, 50)
	for i := range levels {
		levels[i] = (float64(i) + 0.5) / 50
	}
	dims := []box.Dim{{}, {}, {Kind: box.Choice, Count: 7}, {Kind: box.Ordered, Levels: levels}, {Kind: box.Ordered, Levels: []float64{0.1, 0.4, 0.8}}}
	f := func(row []float64) float64 {
		v := -(row[0]-0.3)*(row[0]-0.3) - (row[1]-1.2)*(row[1]-1.2) - 3*(row[3]-0.71)*(row[3]-0.71) - (row[4]-0.45)*(row[4]-0.45)
		if row[2] != 5 {
			v -= 0.1
		}
		return v
	}
	best := searched(t, dims, f, nil)[0]
	for d, want := range []float64{0.3, 1, 5, 0.71, 0.4} {
		near(t, "top", best.Row[d], want, 1e-3)
	}
	near(t, "value", best.Value, f(best.Row), 1e-12)
}

func TestSearchKeepsToWhatIsPossible(t *testing.T) {
	dims := continuous(2)
	f := func(row []float64) float64 { return row[0] + row[1] }
	half := func(s *Search) {
		s.Settle = func(row []float64) bool { return row[0]+row[1] <= 1 }
		s.Anchors = [][]float64{{0.2, 0.2}}
	}
	for _, found := range searched(t, dims, f, half) {
		if found.Row[0]+found.Row[1] > 1 {
			t.Fatalf("%v is not possible", found.Row)
		}
	}
	bounded := func(s *Search) { s.Low, s.High = []float64{0.2, 0.3}, []float64{0.4, 0.6} }
	found := searched(t, dims, f, bounded)
	for _, f := range found {
		if f.Row[0] < 0.2 || f.Row[0] > 0.4 || f.Row[1] < 0.3 || f.Row[1] > 0.6 {
			t.Fatalf("%v is out of bounds", f.Row)
		}
	}
	near(t, "corner", found[0].Value, 1, 1e-9)
}

func TestSearchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	s := Search{
		Dims: continuous(1), Lengthscales: []float64{1}, Candidates: 100000, Starts: 4, Iterations: 40, Stream: rng.New(1, "search", 0, "stream"),
		Uniform: func(i int, row []float64) { row[0] = float64(i%1000) / 1000 },
		Values: func(rows [][]float64, _ bool) ([]float64, []float64) {
			calls += len(rows)
			return make([]float64, len(rows)), make([]float64, len(rows))
		},
	}
	if found := s.Run(ctx); len(found) == 0 || calls > 1000 {
		t.Errorf("%d found with %d values", len(found), calls)
	}
}
