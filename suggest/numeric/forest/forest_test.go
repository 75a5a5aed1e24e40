package forest

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func number() Dim          { return Dim{Active: 1} }
func choice(count int) Dim { return Dim{Dim: box.Dim{Kind: box.Choice, Count: count}, Active: 1} }

// sample draws n rows from the prior, with a function's values.
func sample(dims []Dim, n int, f func([]float64) float64) (x [][]float64, y []float64) {
	stream := rng.NewKey(5, "forest test").Stream(0)
	for range n {
		row := make([]float64, len(dims))
		for d, dim := range dims {
			row[d] = stream.Float64()
			if dim.Kind == box.Choice {
				row[d] = math.Floor(row[d] * float64(dim.Count))
			}
			if stream.Float64() >= dim.Active {
				row[d] = math.NaN()
			}
		}
		x, y = append(x, row), append(y, f(row))
	}
	return x, y
}

func fit(dims []Dim, n int, f func([]float64) float64) *Forest {
	x, y := sample(dims, n, f)
	return Fit(context.Background(), Data{Dims: dims, X: x, Y: y}, rng.NewKey(1, "forest test"))
}

// ishigami with a = 7 and b = 0.1 has the Sobol indices 0.3139, 0.4424 and 0 of
// the first order (Ishigami and Homma 1990; the formulas are in Saltelli et al.,
// "Global sensitivity analysis", 2008, section 4.5).
func ishigami(u []float64) float64 {
	x, y, z := math.Pi*(2*u[0]-1), math.Pi*(2*u[1]-1), math.Pi*(2*u[2]-1)
	return math.Sin(x) + 7*math.Pow(math.Sin(y), 2) + 0.1*math.Pow(z, 4)*math.Sin(x)
}

func TestEffectsOfKnownFunctions(t *testing.T) {
	for name, c := range map[string]struct {
		dims         []Dim
		f            func([]float64) float64
		main         []float64
		interactions float64
		within       float64
	}{
		"Ishigami": {
			[]Dim{number(), number(), number()}, ishigami, []float64{0.3139, 0.4424, 0}, 0.2437, 0.07,
		},
		"a sum with weights 3, 2, 1 and 0": {
			[]Dim{number(), number(), number(), number()},
			func(u []float64) float64 { return 3*u[0] + 2*u[1] + u[2] },
			[]float64{9. / 14, 4. / 14, 1. / 14, 0}, 0, 0.05,
		},
		"equal parameters": {
			[]Dim{number(), number()},
			func(u []float64) float64 { return math.Sin(5*u[0]) + math.Sin(5*u[1]) },
			[]float64{0.5, 0.5}, 0, 0.04,
		},
		"only an interaction": {
			[]Dim{choice(2), choice(2), number()},
			func(u []float64) float64 { return math.Mod(u[0]+u[1], 2) },
			[]float64{0, 0, 0}, 1, 0.03,
		},
		"a choice and a number": { // 0, 1 and 2 have the variance 2/3, the double of a number has 1/3
			[]Dim{choice(3), number()},
			func(u []float64) float64 { return u[0] + 2*u[1] },
			[]float64{2. / 3, 1. / 3}, 0, 0.04,
		},
		"a number that is not active half of the time": { // 0 when not active, 1 otherwise: all of the variance
			[]Dim{{Active: 0.5}, number()},
			func(u []float64) float64 {
				if math.IsNaN(u[0]) {
					return 0
				}
				return 1
			},
			[]float64{1, 0}, 0, 0.01,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := fit(c.dims, 1000, c.f).Effects(rng.NewKey(2, "probes"))
			if diff := cmp.Diff(Effects{c.main, c.interactions}, got, cmpopts.EquateApprox(0, c.within)); diff != "" {
				t.Error(diff)
			}
			sum := got.Interactions
			for _, share := range got.Main {
				if share < 0 || share > 1 {
					t.Errorf("the share %v is not between 0 and 1", share)
				}
				sum += share
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("the shares sum to %v", sum)
			}
		})
	}
}

// The tree is the function 0 below one half of the first dimension, and above 1
// or 3 with the second at one quarter. By hand: the mean is 1.25, the variance
// 1.5625, the marginal of the first is 0 or 2.5, that of the second 0.5 or 1.5.
func TestEffectsOfATreeByHand(t *testing.T) {
	dims := []Dim{number(), number()}
	f := &Forest{dims: dims, trees: []tree{{
		{dim: 0, threshold: 0.5, left: 1, right: 2}, {value: 0},
		{dim: 1, threshold: 0.25, left: 3, right: 4}, {value: 1}, {value: 3},
	}}}
	variance := 0.125*1 + 0.375*9 - 1.25*1.25
	if got := f.variance(1.25, rng.NewKey(2, "probes")); math.Abs(got/variance-1) > 0.1 {
		t.Errorf("the variance is %v, want %v", got, variance)
	}
	leaves := leavesOf(dims, f.trees[0])
	for d, want := range []float64{1.5625, 0.25*0.75*0.75 + 0.75*0.25*0.25} {
		var m marginal
		m.add(dims[d], d, leaves, 1)
		if got := m.variance(dims[d], 1.25); math.Abs(got-want) > 1e-12 {
			t.Errorf("the marginal %d has the variance %v, want %v", d, got, want)
		}
	}
}

func TestLeavesFillTheSpace(t *testing.T) {
	dims := []Dim{number(), choice(4), {Active: 0.3}, number()}
	f := fit(dims, 300, func(u []float64) float64 {
		v := u[0]*3 + u[1]*u[3]
		if !math.IsNaN(u[2]) {
			v += u[2]
		}
		return v
	})
	for k, tr := range f.trees {
		mass := 0.0
		for _, l := range leavesOf(dims, tr) {
			mass += l.mass
		}
		if math.Abs(mass-1) > 1e-9 {
			t.Errorf("the leaves of tree %d have the probability %v together", k, mass)
		}
	}
}

func TestForestsPredict(t *testing.T) {
	dims := []Dim{number(), choice(3)}
	f := fit(dims, 600, func(u []float64) float64 { return u[0]*u[0] + u[1] })
	for _, row := range [][]float64{{0.2, 0}, {0.9, 1}, {0.5, 2}} {
		want := row[0]*row[0] + row[1]
		if mean, variance := f.Predict(row); math.Abs(mean-want) > 0.05 || variance > 0.01 {
			t.Errorf("at %v: %v with the variance %v, want %v", row, mean, variance, want)
		}
	}
}

func TestForestsAreDeterministic(t *testing.T) {
	dims := []Dim{number(), number(), choice(5)}
	f := func(u []float64) float64 { return u[0] + u[1]*u[2] }
	if diff := cmp.Diff(fit(dims, 100, f).Effects(rng.NewKey(2, "probes")), fit(dims, 100, f).Effects(rng.NewKey(2, "probes"))); diff != "" {
		t.Error(diff)
	}
}

func TestDegenerateForests(t *testing.T) {
	for name, c := range map[string]struct {
		x [][]float64
		y []float64
	}{
		"one row":        {[][]float64{{0.5, 1}}, []float64{3}},
		"equal values":   {[][]float64{{0.1, 0}, {0.5, 1}, {0.7, 1}, {0.9, 0}, {0.3, 1}}, []float64{2, 2, 2, 2, 2}},
		"equal rows":     {[][]float64{{0.1, 0}, {0.1, 0}, {0.1, 0}, {0.1, 0}, {0.1, 0}}, []float64{1, 2, 3, 4, 5}},
		"all not active": {[][]float64{{math.NaN(), math.NaN()}, {math.NaN(), math.NaN()}}, []float64{1, 2}},
	} {
		dims := []Dim{number(), choice(2)}
		got := Fit(context.Background(), Data{Dims: dims, X: c.x, Y: c.y}, rng.NewKey(1, "x")).Effects(rng.NewKey(2, "probes"))
		for _, share := range append(got.Main, got.Interactions) {
			if share != 0 {
				t.Errorf("%s: %+v, want no effects", name, got)
			}
		}
	}
}

func TestFitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dims := []Dim{number()}
	x, y := sample(dims, 50, func(u []float64) float64 { return u[0] })
	if f := Fit(ctx, Data{Dims: dims, X: x, Y: y}, rng.NewKey(1, "x")); len(f.trees) != 1 {
		t.Errorf("there are %d trees, want 1", len(f.trees))
	}
}
