package gp

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func continuous(n int) []box.Dim { return make([]box.Dim, n) }

// mixedDims has each kind of dimension; the last two are optional.
func mixedDims() ([]box.Dim, []bool) {
	return []box.Dim{
		{}, {Kind: box.Choice, Count: 4}, {Kind: box.Ordered, Levels: []float64{0.1, 0.5, 0.9}}, {}, {Kind: box.Choice, Count: 3},
	}, []bool{false, false, false, true, true}
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

func TestDecay(t *testing.T) {
	for x := 0.0; x < 700; x += 0.0137 + x/50 {
		if got, want := decay(x), math.Exp(-x); math.Abs(got-want) > 9e-16*want {
			t.Errorf("decay(%v) = %v, want %v", x, got, want)
		}
	}
	if decay(1e9) > 1e-300 || decay(math.Inf(1)) > 1e-300 || !math.IsNaN(decay(math.NaN())) {
		t.Error("far out")
	}
}

func TestEvidenceGradient(t *testing.T) {
	dims, optional := mixedDims()
	rows, y := mixedRows(30)
	choices := make([][]float64, len(rows))
	for i, row := range rows {
		choices[i] = []float64{row[1], row[4]}
	}
	two := []box.Dim{{Kind: box.Choice, Count: 4}, {Kind: box.Choice, Count: 3}}
	cases := map[string]struct {
		layout *Layout
		rows   [][]float64
		trend  bool
		theta  Theta
	}{
		"without trend": {NewLayout(dims, optional), rows, false, Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, logTrend[0]}},
		"quadratic":     {NewLayout(dims, optional), rows, true, Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, -2}},
		"quartic":       {NewLayout(dims, optional).Quartic(), rows, true, Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, -2}},
		"choices alone": {NewLayout(two, []bool{false, true}), choices, true, Theta{0.2, -0.3, 0.3, -2, -2}},
	}
	for name, c := range cases {
		weights := slices.Repeat([]float64{1, 0.5, 3}, 10)
		f := &Fit{Layout: c.layout, Prior: NewPrior(len(c.layout.Dims()), c.trend), Rows: c.rows, Outcomes: y, Weights: weights}
		e := newEvidence(t.Context(), f)
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
	dims, optional := mixedDims()
	quadratic := NewLayout(dims, optional)
	rows, y := mixedRows(40)
	for name, c := range map[string]struct {
		layout *Layout
		trend  float64
	}{"without trend": {quadratic, logTrend[0]}, "quadratic": {quadratic, -1}, "quartic": {quadratic.Quartic(), -1}} {
		m := NewModel(c.layout, Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, c.trend})
		if !m.Append(rows[:35], nil) {
			t.Fatal("not positive definite")
		}
		m.SetOutcomes(y[:35])
		for _, row := range rows[35:38] {
			m.AppendPending(row)
		}
		var p, up, down Prediction
		m.Predict(rows[38:], true, &p)
		for i, row := range rows[38:] {
			for _, d := range []int{0, 2, 3} {
				if row[d] != row[d] {
					continue
				}
				const h = 1e-5
				moved := slices.Clone(row)
				moved[d] += h
				m.Predict([][]float64{moved}, false, &up)
				moved[d] -= 2 * h
				m.Predict([][]float64{moved}, false, &down)
				near(t, name+": mean", p.MeanGradient[i*5+d], (up.Mean[0]-down.Mean[0])/(2*h), 1e-6)
				near(t, name+": variance", p.VarianceGradient[i*5+d], (up.Variance[0]-down.Variance[0])/(2*h), 1e-6)
			}
		}
	}
}

// The wanted values are from scipy: K by the formula, solved by
// scipy.linalg.cho_solve; see the script in the comment.
//
//	import numpy as np, scipy.linalg as sl
//	X=np.array([[.1,.2],[.4,.9],[.7,.3],[.95,.6],[.5,.5]]); y=np.array([.3,-1.2,.8,.1,-.4])
//	q=np.array([[.3,.3],[.8,.8]]); l=np.array([.4,.7]); s2=1.3; n=1e-3+1e-6; a2=.2
//	def k(A,B):
//	    r=np.sqrt((((A[:,None]-B[None])/l)**2).sum(-1)*5)
//	    P=lambda p,Z: (2*p+1)**.5*scipy.special.eval_legendre(p,2*Z-1)
//	    t,*rest=[w*P(p,A)@P(p,B).T/2 for p,w in zip((1,2,3,4),(1,1,.5,.25))]
//	    return s2*(1+r+r*r/3)*np.exp(-r)+a2*(t*(t+2)+2*sum(rest))
//	c=sl.cho_factor(k(X,X)+n*np.eye(5)); ks=k(q,X)
//	print(ks@sl.cho_solve(c,y), np.diag(k(q,q)-ks@sl.cho_solve(c,ks.T)))
func TestPosteriorAgreesWithScipy(t *testing.T) {
	rows := [][]float64{{.1, .2}, {.4, .9}, {.7, .3}, {.95, .6}, {.5, .5}}
	y := []float64{.3, -1.2, .8, .1, -.4}
	m := NewModel(NewLayout(continuous(2), nil).Quartic(), Theta{math.Log(.4), math.Log(.7), math.Log(1.3), math.Log(1e-3), math.Log(.2)})
	if !m.Append(rows, nil) {
		t.Fatal("not positive definite")
	}
	m.SetOutcomes(y)
	var p Prediction
	m.Predict([][]float64{{.3, .3}, {.8, .8}}, false, &p)
	for i, want := range [][2]float64{{-0.14845159035022662, 0.44914894863172483}, {-0.06575802874832934, 1.0302026410604952}} {
		near(t, "mean", p.Mean[i], want[0], 1e-10)
		near(t, "variance", p.Variance[i], want[1], 1e-10)
	}
}

func TestLeaveOneOutIsLeavingOneOut(t *testing.T) {
	rows, y := mixedRows(12)
	dims, optional := mixedDims()
	theta := Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, -2}
	all := NewModel(NewLayout(dims, optional), theta)
	all.Append(rows, nil)
	all.SetOutcomes(y)
	mean, variance := all.LeaveOneOut(y)
	var p Prediction
	for i := range rows {
		m := NewModel(NewLayout(dims, optional), theta)
		m.Append(slices.Delete(slices.Clone(rows), i, i+1), nil)
		m.SetOutcomes(slices.Delete(slices.Clone(y), i, i+1))
		m.Predict(rows[i:i+1], false, &p)
		near(t, "mean", mean[i], p.Mean[0], 1e-9)
		near(t, "variance", variance[i], p.Variance[0]+theta.Noise(), 1e-9)
	}
	fitted := all.Fitted(y)
	all.Predict(rows, false, &p)
	for i := range rows {
		near(t, "fitted", fitted[i], p.Mean[i], 1e-9)
	}
}

// What was appended must not show in the bits.
func TestAppendedModelEqualsOneFromScratch(t *testing.T) {
	rows, y := mixedRows(40)
	dims, optional := mixedDims()
	theta := Theta{-0.3, 0.2, -0.1, 0.4, 0.1, 0.3, -4, -2}
	predict := func(groups ...int) Prediction {
		m := NewModel(NewLayout(dims, optional), theta)
		first := 0
		for _, g := range groups {
			m.Append(rows[first:first+g], nil)
			m.AppendPending(rows[39])
			first += g
			m.Truncate(first)
		}
		m.SetOutcomes(y[:30])
		m.AppendPending(rows[38])
		var p Prediction
		m.Predict(rows[30:37], true, &p)
		return p
	}
	want := predict(30)
	for _, groups := range [][]int{{10, 20}, {1, 1, 28}, {29, 1}} {
		got := predict(groups...)
		if !slices.Equal(got.Mean, want.Mean) || !slices.Equal(got.Variance, want.Variance) || !slices.Equal(got.VarianceGradient, want.VarianceGradient) {
			t.Errorf("%v: other bits", groups)
		}
	}
}

func TestAppendRaisesTheDiagonalWhereItMust(t *testing.T) {
	layout := NewLayout(continuous(1), nil)
	m := NewModel(layout, NewPrior(1, false).Theta())
	same := [][]float64{{0.3}, {0.3}, {0.3}}
	if !m.Append(same, []float64{0, 0, 0}) || m.jitter == 0 || m.Len() != 3 {
		t.Fatalf("rows without noise: jitter %v, %d rows", m.jitter, m.Len())
	}
	m.SetOutcomes([]float64{1, 1, 1})
	var p Prediction
	m.Predict([][]float64{{0.3}, {0.9}}, true, &p)
	near(t, "mean", p.Mean[0], 1, 1e-3)
	if !(p.Variance[0] > 0) || !(p.Variance[1] > p.Variance[0]) {
		t.Errorf("variances %v", p.Variance)
	}
	if m.Append([][]float64{{0.9}}, []float64{-1e9}) || m.Len() != 0 || len(m.weights) != 0 || m.jitter != 0 {
		t.Errorf("no positive definite matrix: accepted, or %d rows and a jitter of %v are left", m.Len(), m.jitter)
	}
}

func TestThetaText(t *testing.T) {
	for _, dims := range []int{0, 1, 2, 3, 10} {
		theta := NewPrior(dims, true).Theta()
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
	prior := NewPrior(3, false)
	f := &Fit{Layout: NewLayout(continuous(3), nil), Prior: prior, Rows: rows, Outcomes: y, Starts: []Theta{prior.Theta()}}
	theta, value := f.Best(t.Context())
	if math.IsInf(value, 0) || theta[1] > theta[0]-1 || theta[1] > theta[2]-1 || theta.Noise() > 1e-2 {
		t.Errorf("theta = %v, log density %v", theta, value)
	}
}

func FuzzParseTheta(f *testing.F) {
	f.Add("", 0)
	f.Add("AAAAAA", 0)
	f.Add(NewPrior(4, true).Theta().Text(), 4)
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
