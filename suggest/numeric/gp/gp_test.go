package gp

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func continuous(n int) []box.Dim { return make([]box.Dim, n) }

// mixedDims has each kind of dimension; the last two are inactive in some rows.
func mixedDims() []box.Dim {
	return []box.Dim{
		{}, {Kind: box.Choice, Count: 4}, {Kind: box.Ordered, Levels: []float64{0.1, 0.5, 0.9}}, {}, {Kind: box.Choice, Count: 3},
	}
}

func mixedRows(n int) ([][]float64, []float64) {
	stream := rng.New(1, "gp", n, "rows")
	rows, y := make([][]float64, n), make([]float64, n)
	for i := range rows {
		x := []float64{stream.Float64(), float64(stream.Uint64N(4)), []float64{0.1, 0.5, 0.9}[stream.Uint64N(3)], stream.Float64(), float64(stream.Uint64N(3))}
		y[i] = math.Sin(5*x[0]) + 0.3*x[1] + x[2]*x[2] - 0.7 + 0.05*stream.NormFloat64()
		if x[1] == 0 {
			x[3], x[4] = math.NaN(), math.NaN()
		} else {
			y[i] += x[3] * x[4] / 3
		}
		rows[i] = x
	}
	return rows, y
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))) {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

func TestEvidenceGradient(t *testing.T) {
	dims := mixedDims()
	rows, y := mixedRows(30)
	choices := make([][]float64, len(rows))
	for i, row := range rows {
		choices[i] = []float64{row[1], row[4]}
	}
	two := []box.Dim{{Kind: box.Choice, Count: 4}, {Kind: box.Choice, Count: 3}}
	cases := map[string]struct {
		layout *Layout
		rows   [][]float64
		prior  func([]box.Dim) Prior
		theta  Theta
	}{
		"without trend": {NewLayout(dims), rows, Stationary, Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, logTrend[0]}},
		"quadratic":     {NewLayout(dims), rows, Smooth, Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, -2}},
		"choices alone": {NewLayout(two), choices, Smooth, Theta{0.2, -0.3, 0.3, -2, -2}},
	}
	for name, c := range cases {
		weights := slices.Repeat([]float64{1, 0.5, 3}, 10)
		f := &Fit{Layout: c.layout, Prior: c.prior(c.layout.Dims()), Data: Data{Rows: c.rows, Outcomes: y, Weights: weights}}
		e := newEvidence(f)
		gradient, scratch := make([]float64, len(c.theta)), make([]float64, len(c.theta))
		e.evaluate(c.theta, gradient)
		for i := range c.theta {
			if f.Prior.fixed[i] {
				continue
			}
			const h = 1e-5
			moved := slices.Clone(c.theta)
			moved[i] += h
			up := e.evaluate(moved, scratch)
			moved[i] -= 2 * h
			down := e.evaluate(moved, scratch)
			near(t, name+": gradient "+string(rune('0'+i)), gradient[i], (up-down)/(2*h), 1e-6)
		}
	}
}

func TestPredictionGradient(t *testing.T) {
	dims := mixedDims()
	quadratic := NewLayout(dims)
	rows, y := mixedRows(40)
	for name, c := range map[string]struct {
		layout *Layout
		trend  float64
	}{"without trend": {quadratic, logTrend[0]}, "quadratic": {quadratic, -1}} {
		m := conditioned(t, c.layout, Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, c.trend}, rows[:35], y[:35])
		m.Expect(rows[35:38])
		p := m.Predict(rows[38:], true)
		for i, row := range rows[38:] {
			for _, d := range []int{0, 2, 3} {
				if row[d] != row[d] {
					continue
				}
				const h = 1e-5
				up, down := slices.Clone(row), slices.Clone(row)
				up[d] += h
				down[d] -= h
				moved := m.Predict([][]float64{up, down}, false)
				near(t, name+": mean", p.MeanGradient[i*5+d], (moved.Mean[0]-moved.Mean[1])/(2*h), 1e-6)
				near(t, name+": variance", p.VarianceGradient[i*5+d], (moved.Variance[0]-moved.Variance[1])/(2*h), 1e-6)
			}
		}
	}
}

func conditioned(t *testing.T, layout *Layout, theta Theta, rows [][]float64, y []float64) *Model {
	t.Helper()
	m, ok := Condition(layout, theta, Data{Rows: rows, Outcomes: y})
	if !ok {
		t.Fatal("not positive definite")
	}
	return m
}

// The wanted values are from scipy: K by the formula, solved by
// scipy.linalg.cho_solve; see the script in the comment.
//
//	import numpy as np, scipy.linalg as sl
//	X=np.array([[.1,.2],[.4,.9],[.7,.3],[.95,.6],[.5,.5]]); y=np.array([.3,-1.2,.8,.1,-.4])
//	q=np.array([[.3,.3],[.8,.8]]); l=np.array([.4,.7]); s2=1.3; n=1e-3+1e-6; a2=.2
//	def k(A,B):
//	    r=np.sqrt((((A[:,None]-B[None])/l)**2).sum(-1)*5)
//	    t=3*(2*A-1)@(2*B-1).T/2
//	    return s2*(1+r+r*r/3)*np.exp(-r)+a2*t*(t+2)
//	c=sl.cho_factor(k(X,X)+n*np.eye(5)); ks=k(q,X)
//	print(ks@sl.cho_solve(c,y), np.diag(k(q,q)-ks@sl.cho_solve(c,ks.T)))
func TestPosteriorAgreesWithScipy(t *testing.T) {
	rows := [][]float64{{.1, .2}, {.4, .9}, {.7, .3}, {.95, .6}, {.5, .5}}
	y := []float64{.3, -1.2, .8, .1, -.4}
	theta := Theta{math.Log(.4), math.Log(.7), math.Log(1.3), math.Log(1e-3), math.Log(.2)}
	p := conditioned(t, NewLayout(continuous(2)), theta, rows, y).Predict([][]float64{{.3, .3}, {.8, .8}}, false)
	for i, want := range [][2]float64{{-0.035740374818343315, 0.17600710431994804}, {-0.4955246985133335, 0.386958641533542}} {
		near(t, "mean", p.Mean[i], want[0], 1e-10)
		near(t, "variance", p.Variance[i], want[1], 1e-10)
	}
}

func TestLeaveOneOutIsLeavingOneOut(t *testing.T) {
	rows, y := mixedRows(12)
	dims := mixedDims()
	layout := NewLayout(dims)
	theta := Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, -2}
	all := conditioned(t, layout, theta, rows, y)
	mean, variance := all.LeaveOneOut()
	for i := range rows {
		p := conditioned(t, layout, theta, slices.Delete(slices.Clone(rows), i, i+1), slices.Delete(slices.Clone(y), i, i+1)).Predict(rows[i:i+1], false)
		near(t, "mean", mean[i], p.Mean[0], 1e-9)
		near(t, "variance", variance[i], p.Variance[0]+theta.Noise(), 1e-9)
	}
	fitted, p := all.Fitted(), all.Predict(rows, false)
	for i := range rows {
		near(t, "fitted", fitted[i], p.Mean[i], 1e-9)
	}
}

// Pending rows give the same bits whatever was pending before.
func TestPendingRowsLeaveNoTrace(t *testing.T) {
	rows, y := mixedRows(40)
	dims := mixedDims()
	theta := Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, -2}
	model := func() *Model { return conditioned(t, NewLayout(dims), theta, rows[:20], y[:20]) }
	used := model()
	for _, pending := range [][][]float64{rows[20:35], rows[20:22], {rows[20], rows[25], rows[20]}, nil, rows[21:24]} {
		fresh := model()
		fresh.Expect(pending)
		used.Expect(pending)
		want, got := fresh.Predict(rows[35:], true), used.Predict(rows[35:], true)
		if used.Len() != 20+len(pending) || !slices.Equal(got.Mean, want.Mean) || !slices.Equal(got.Variance, want.Variance) || !slices.Equal(got.VarianceGradient, want.VarianceGradient) {
			t.Errorf("%d pending rows: other bits, or %d rows", len(pending), used.Len())
		}
	}
	if p := used.Predict(rows[21:24], false); slices.Max(p.Variance) > 2*theta.Noise() {
		t.Errorf("variances at pending rows: %v", p.Variance)
	}
}

// gonum multiplies large matrices in several goroutines.
func TestParallelismLeavesNoTrace(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	rows, y := mixedRows(400)
	dims := mixedDims()
	layout := NewLayout(dims)
	prior := Smooth(dims)
	type answer struct {
		theta          Theta
		mean, variance []float64
	}
	var want answer
	for i, processors := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(processors)
		f := &Fit{Layout: layout, Prior: prior, Data: Data{Rows: rows[:300], Outcomes: y[:300]}, Starts: []Theta{prior.Theta()}, Iterations: 3}
		theta, _ := f.Best(t.Context())
		m := conditioned(t, layout, theta, rows[:350], y[:350])
		p := m.Predict(rows[350:], false)
		got := answer{theta, p.Mean, p.Variance}
		if i == 0 {
			want = got
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("with %d processors: other bits", processors)
		}
	}
}

func TestConditionRaisesTheDiagonalWhereItMust(t *testing.T) {
	layout := NewLayout(continuous(1))
	theta := Stationary(continuous(1)).Theta()
	same := [][]float64{{0.3}, {0.3}, {0.3}}
	m, ok := Condition(layout, theta, Data{Rows: same, Outcomes: []float64{1, 1, 1}, Weights: []float64{0, 0, 0}})
	if !ok || m.jitter == 0 {
		t.Fatalf("rows without noise: %v", ok)
	}
	p := m.Predict([][]float64{{0.3}, {0.9}}, true)
	near(t, "mean", p.Mean[0], 1, 1e-3)
	if !(p.Variance[0] > 0) || !(p.Variance[1] > p.Variance[0]) {
		t.Errorf("variances %v", p.Variance)
	}
	if _, ok := Condition(layout, theta, Data{Rows: same, Outcomes: []float64{1, 1, 1}, Weights: []float64{1, 1, -1e9}}); ok {
		t.Error("a covariance that is not positive definite was accepted")
	}
}

func TestThetaText(t *testing.T) {
	for _, dims := range []int{0, 1, 2, 3, 10} {
		theta := Smooth(continuous(dims)).Theta()
		for i := range theta {
			theta[i] += float64(i) / 7
		}
		rounded := theta.Rounded()
		got, ok := ParseTheta(theta.Text(), dims)
		if !ok || !slices.Equal(got, rounded) {
			t.Errorf("%v reads back as %v, %v", rounded, got, ok)
		}
		for i := range theta {
			near(t, "rounded", rounded[i], theta[i], 0.01)
		}
		if again := rounded.Rounded(); !slices.Equal(again, rounded) {
			t.Errorf("rounded twice: %v and %v", rounded, again)
		}
	}
	for _, text := range []string{"", "A", "!!!!!!!!", "AAAAAAAAAAAAAAAA", "AAAAAA\nA"} {
		if got, ok := ParseTheta(text, 1); ok {
			t.Errorf("%q reads as %v", text, got)
		}
	}
}

func TestFitFindsTheRelevantDimension(t *testing.T) {
	stream := rng.New(1, "gp", 0, "fit")
	var rows [][]float64
	var y []float64
	for range 40 {
		x := []float64{stream.Float64(), stream.Float64(), stream.Float64()}
		rows = append(rows, x)
		y = append(y, 1.4*math.Sin(7*x[1]))
	}
	for name, c := range map[string]struct {
		prior func([]box.Dim) Prior
		apart float64 // at least, in the logarithm of the lengthscales
	}{"stationary": {Stationary, 1}, "smooth": {Smooth, 1}, "rough": {Rough, 0.7}} {
		prior := c.prior(continuous(3))
		f := &Fit{Layout: NewLayout(continuous(3)), Prior: prior, Data: Data{Rows: rows, Outcomes: y}, Starts: []Theta{prior.Theta()}}
		theta, value := f.Best(t.Context())
		if math.IsInf(value, 0) || theta[1] > theta[0]-c.apart || theta[1] > theta[2]-c.apart || theta.Noise() > 1e-2 {
			t.Errorf("%s: theta = %v, log density %v", name, theta, value)
		}
	}
}

// Ten results in eight dimensions tell a rough process little about the rest of the space,
// however regular they look.
func TestRoughClaimsLittle(t *testing.T) {
	dims := append(continuous(7), box.Dim{Kind: box.Choice, Count: 3})
	stream := rng.New(1, "gp", 0, "rough")
	row := func() []float64 {
		x := make([]float64, len(dims))
		for d := range x {
			x[d] = stream.Float64()
		}
		x[7] = float64(stream.Uint64N(3))
		return x
	}
	var rows [][]float64
	var y []float64
	for range 10 {
		x := row()
		rows, y = append(rows, x), append(y, 3*(x[0]-0.5))
	}
	unknown := func(of func([]box.Dim) Prior) float64 {
		prior := of(dims)
		f := &Fit{Layout: NewLayout(dims), Prior: prior, Data: Data{Rows: rows, Outcomes: y}, Starts: []Theta{prior.Theta()}}
		theta, _ := f.Best(t.Context())
		variance := conditioned(t, f.Layout, theta, rows, y).Predict([][]float64{row(), row(), row(), row()}, false).Variance
		return slices.Max(variance) / theta.Signal()
	}
	if smooth, rough := unknown(Smooth), unknown(Rough); rough < 0.6 || smooth > 0.4 {
		t.Errorf("share of the variance that is left: %v in a smooth process, %v in a rough one", smooth, rough)
	}
}

func FuzzParseTheta(f *testing.F) {
	f.Add("", 0)
	f.Add("AAAAAA", 0)
	f.Add(Smooth(continuous(4)).Theta().Text(), 4)
	f.Add("__________", 2)
	f.Add("AAAAAA\nA", 1)
	f.Fuzz(func(t *testing.T, text string, dims int) {
		dims = min(max(dims, 0), 1000)
		theta, ok := ParseTheta(text, dims)
		if !ok {
			return
		}
		low, high := bounds(dims)
		for i, v := range theta {
			if !(v >= low[i] && v <= high[i]) {
				t.Errorf("%q: element %d is %v", text, i, v)
			}
		}
		if again, ok := ParseTheta(theta.Text(), dims); !ok || len(again) != dims+3 {
			t.Errorf("%q reads as %v, which does not read back", text, theta)
		}
	})
}

// Rows of two branches are as far apart as the choice between the branches makes them,
// however many parameters each branch has, if these are in the middle of their range.
func TestBranchesDifferByTheirChoice(t *testing.T) {
	nan := math.NaN()
	k := newKernel(NewLayout([]box.Dim{{Kind: box.Choice, Count: 2}, {}, {}, {Kind: box.Choice, Count: 3}}), make(Theta, 7))
	rows := [][]float64{{0, 0.5, nan, nan}, {1, nan, 0.5, nan}, {1, nan, 0.1, nan}, {1, nan, 0.5, 0}, {1, nan, 0.5, 2}}
	d := k.design(rows)
	distance := func(i, j int) float64 {
		x, out := make([]float64, d.features.Rows), make([]float64, len(rows))
		column(d.features, i, x)
		k.distances(x, d, out)
		return out[j]
	}
	for _, c := range []struct {
		i, j int
		want float64
	}{{0, 1, 1}, {0, 2, 1 + 0.4*0.4}, {1, 3, 1.0 / 3}, {0, 3, 1 + 1.0/3}, {3, 4, 1}} {
		near(t, fmt.Sprint("the squared distance of rows ", c.i, c.j), distance(c.i, c.j), c.want, 1e-12)
		near(t, fmt.Sprint("the squared distance of rows ", c.j, c.i), distance(c.j, c.i), c.want, 1e-12)
	}
}
