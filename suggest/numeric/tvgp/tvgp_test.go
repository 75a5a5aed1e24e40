package tvgp

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// example has observations of a bell that moves with time, with noise, and a
// choice that matters.
func example(n int, speed float64) (choice []bool, inputs []Input, y []float64) {
	stream := rng.NewKey(7, "tvgp").Stream(uint64(n))
	for i := range n {
		t := float64(i / 5)
		x := []float64{stream.Float64(), stream.Float64(), float64(stream.Uint64N(3))}
		if i%7 == 3 {
			x[1] = math.NaN()
		}
		inputs = append(inputs, Input{Time: t, State: []float64{stream.Float64()}, X: x})
		off := x[0] - (0.2 + speed*t)
		y = append(y, 2*math.Exp(-off*off/0.08)-0.5*x[2]+0.1*stream.NormFloat64())
	}
	mean, sum := 0.0, 0.0
	for _, v := range y {
		mean += v / float64(n)
	}
	for _, v := range y {
		sum += (v - mean) * (v - mean) / float64(n)
	}
	for i := range y {
		y[i] = (y[i] - mean) / math.Sqrt(sum)
	}
	return []bool{false, false, true}, inputs, y
}

func TestGradientOfThePosterior(t *testing.T) {
	choice, inputs, y := example(30, 0.05)
	d := measure(choice, inputs)
	for _, h := range []Hyper{Default(), {0.3, -1.5, 0.2, -1, -2}, {-0.5, 0.4, -1, -4, -4}} {
		_, gradient, ok := d.logPosterior(h, y)
		if !ok {
			t.Fatal("no value")
		}
		for i := range h {
			const by = 1e-5
			low, high := h, h
			low[i] -= by
			high[i] += by
			below, _, _ := d.logPosterior(low, y)
			above, _, _ := d.logPosterior(high, y)
			want := (above - below) / (2 * by)
			if math.Abs(gradient[i]-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("at %v the derivative %d is %v, want %v", h, i, gradient[i], want)
			}
		}
	}
}

func TestGradientOfThePrediction(t *testing.T) {
	choice, inputs, y := example(30, 0.05)
	m, err := Condition(Default(), choice, inputs, y)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []Input{
		{Time: 6, State: []float64{0.4}, X: []float64{0.3, 0.6, 1}},
		{Time: 2.5, State: []float64{0.9}, X: []float64{0.8, math.NaN(), 2}},
		inputs[0],
	} {
		mean, deviation, dMean, dDeviation := m.PredictGradient(at)
		if a, b := m.Predict(at); a != mean || b != deviation {
			t.Errorf("Predict gives %v, %v and PredictGradient %v, %v", a, b, mean, deviation)
		}
		for i := range at.X {
			const by = 1e-6
			low, high := at, at
			low.X, high.X = append([]float64(nil), at.X...), append([]float64(nil), at.X...)
			low.X[i] -= by
			high.X[i] += by
			a, b := m.Predict(low)
			c, d := m.Predict(high)
			wantMean, wantDeviation := (c-a)/(2*by), (d-b)/(2*by)
			if choice[i] {
				wantMean, wantDeviation = 0, 0
			}
			if math.Abs(dMean[i]-wantMean) > 1e-6*(1+math.Abs(wantMean)) || math.Abs(dDeviation[i]-wantDeviation) > 1e-5*(1+math.Abs(wantDeviation)) {
				t.Errorf("at %v derivative %d: got %v and %v, want %v and %v", at, i, dMean[i], dDeviation[i], wantMean, wantDeviation)
			}
		}
	}
}

// The values were computed by numpy from the formulas of the posterior, by
// solving with the covariance matrix.
func TestPosteriorOfTwoObservations(t *testing.T) {
	h := Hyper{math.Log(1.5), math.Log(0.5), math.Log(0.7), math.Log(0.2), math.Log(0.1)}
	m, err := Condition(h, []bool{false, true}, []Input{
		{Time: 0, State: []float64{0.1}, X: []float64{0.2, 0}},
		{Time: 2, State: []float64{0.6}, X: []float64{0.7, 1}},
	}, []float64{1, -1})
	if err != nil {
		t.Fatal(err)
	}
	mean, deviation := m.Predict(Input{Time: 3, State: []float64{0.5}, X: []float64{0.5, 1}})
	const wantMean, wantDeviation = -0.6790970109315624, 0.843938716216501
	if math.Abs(mean-wantMean) > 1e-7 || math.Abs(deviation-wantDeviation) > 1e-7 {
		t.Errorf("got %v and %v, want %v and %v", mean, deviation, wantMean, wantDeviation)
	}
}

func TestFitImprovesThePosterior(t *testing.T) {
	for name, speed := range map[string]float64{"moving": 0.1, "standing": 0} {
		t.Run(name, func(t *testing.T) {
			choice, inputs, y := example(60, speed)
			d := measure(choice, inputs)
			h := Fit(context.Background(), choice, inputs, y)
			before, _, _ := d.logPosterior(Default(), y)
			after, gradient, ok := d.logPosterior(h, y)
			if !ok || after < before+1 {
				t.Errorf("the fit improves the logarithm of the density from %v to %v", before, after)
			}
			if floats.Norm(gradient[:], 2) > 0.5 {
				t.Errorf("the gradient at the fit is %v", gradient)
			}
		})
	}
	choice, inputs, y := example(60, 0.1)
	moving := Fit(context.Background(), choice, inputs, y)
	choice, inputs, y = example(60, 0)
	if standing := Fit(context.Background(), choice, inputs, y); moving[logDecay] < standing[logDecay]+0.5 {
		t.Errorf("the decay of a moving function is exp(%v), that of a standing one exp(%v)", moving[logDecay], standing[logDecay])
	}
}

func TestFitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	choice, inputs, y := example(20, 0)
	if h := Fit(ctx, choice, inputs, y); h != Default() {
		t.Errorf("got %v, want the default", h)
	}
}

func TestOldObservationsAreForgotten(t *testing.T) {
	h := Default()
	m, err := Condition(h, []bool{false}, []Input{{Time: 0, State: []float64{0}, X: []float64{0.5}}}, []float64{2})
	if err != nil {
		t.Fatal(err)
	}
	last := math.Inf(1)
	for _, time := range []float64{0, 1, 5, 50} {
		mean, deviation := m.Predict(Input{Time: time, State: []float64{0}, X: []float64{0.5}})
		if mean >= last || deviation > 1 {
			t.Errorf("at time %v: %v, %v", time, mean, deviation)
		}
		last = mean
	}
	if last > 0.05 {
		t.Errorf("after 50 generations the mean is %v", last)
	}
}
