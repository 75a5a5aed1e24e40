package curve_test

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/curve"
)

// one gives all the weight to the shape 1/(u+0.1): the fourth rate and the
// third power of the first family.
func one() []float64 {
	w := make([]float64, len(curve.Equal()))
	w[3*4+2] = 1
	return w
}

// The answers are from NumPy and SciPy, by way of the covariance matrix of the
// four values and the one wanted: a Gaussian process with the kernel
// Deviation^2 + Drop^2 h(s) h(t), for each noise, weighted with its likelihood.
func TestExtrapolateKnownAnswer(t *testing.T) {
	c := curve.Curve{Steps: []float64{1, 2, 4, 5}, Values: []float64{1, 0.7, 0.55, 0.5}}
	post := curve.NewModel(16).Extrapolate(c, curve.Prior{Mean: 0.4, Deviation: 0.3, Drop: 0.6, Weights: one()})
	mean, deviation := post.Moments()
	for name, pair := range map[string][2]float64{
		"mean":      {mean, 0.31322177291860864},
		"deviation": {deviation, 0.13104694902650937},
		"below":     {post.Below(0.3, 1), 0.48259463015384274},
		"stretched": {post.Below(0.3, 2), 0.5130277297164032},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
		}
	}
}

func TestWeightsSumToOne(t *testing.T) {
	c := curve.Curve{Steps: []float64{1, 2, 3, 9}, Values: []float64{5, 4, 3.5, 3}}
	m, p := curve.NewModel(100), curve.Prior{Mean: 2, Deviation: 1, Drop: 3}
	for name, weights := range map[string][]float64{"equal": curve.Equal(), "posterior": m.Extrapolate(c, p).Shapes(), "without points": m.Extrapolate(curve.Curve{}, p).Shapes()} {
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		if math.Abs(sum-1) > 1e-12 || slices.Min(weights) < 0 {
			t.Errorf("%s: the sum is %v, the least %v", name, sum, slices.Min(weights))
		}
	}
}

func TestWithoutPointsThePriorRemains(t *testing.T) {
	post := curve.NewModel(10).Extrapolate(curve.Curve{}, curve.Prior{Mean: 2, Deviation: 3, Drop: 1})
	if mean, deviation := post.Moments(); mean != 2 || deviation != 3 || post.Below(2, 1) != 0.5 {
		t.Errorf("mean %v, deviation %v", mean, deviation)
	}
}

// A curve that follows one of the shapes is found out, also when it is long.
func TestAnExactCurveIsContinued(t *testing.T) {
	value := func(step float64) float64 { return 0.2 + 0.9/(1+step*step/400) }
	for _, until := range []int{8, 30, 150} {
		var c curve.Curve
		for step := 1; step <= until; step++ {
			c.Steps, c.Values = append(c.Steps, float64(step)), append(c.Values, value(float64(step)))
		}
		post := curve.NewModel(200).Extrapolate(c, curve.Prior{Mean: 0.5, Deviation: 0.5, Drop: 1})
		mean, deviation := post.Moments()
		if math.Abs(mean-value(200)) > 2*deviation || until > 8 && math.Abs(mean-value(200)) > 0.02 {
			t.Errorf("after %d steps: %v +- %v, want %v", until, mean, deviation, value(200))
		}
	}
}

func TestOddCurvesGiveNumbers(t *testing.T) {
	cases := map[string]curve.Curve{
		"one point":          {Steps: []float64{3}, Values: []float64{1}},
		"at step zero":       {Steps: []float64{0, 1}, Values: []float64{1, 0.5}},
		"all equal":          {Steps: []float64{1, 2, 3, 4}, Values: []float64{1, 1, 1, 1}},
		"beyond the horizon": {Steps: []float64{99, 100, 300}, Values: []float64{3, 2, 1}},
		"rising":             {Steps: []float64{1, 2, 3}, Values: []float64{1, 2, 4}},
	}
	for name, c := range cases {
		post := curve.NewModel(100).Extrapolate(c, curve.Prior{Mean: 0, Deviation: 1, Drop: 1})
		mean, deviation := post.Moments()
		if p := post.Below(0.5, 1.5); math.IsNaN(mean) || !(deviation > 0) || !(p >= 0 && p <= 1) {
			t.Errorf("%s: %v +- %v, %v", name, mean, deviation, p)
		}
	}
}
