package suggest_test

import (
	"math"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

func believed(t *testing.T, spec suggest.ParameterSpec) suggest.Parameter {
	t.Helper()
	spec.Name = "x"
	space, err := suggest.NewSpace([]suggest.ParameterSpec{spec})
	if err != nil {
		t.Fatal(err)
	}
	return space.At(0)
}

func priors() map[string]suggest.ParameterSpec {
	return map[string]suggest.ParameterSpec{
		"a value in a log range": {Kind: suggest.Double, Min: "1e-5", Max: "1e-1", Distribution: suggest.LogUniform, Prior: &suggest.Prior{Value: "1e-3"}},
		"a value at the end":     {Kind: suggest.Double, Min: "0", Max: "1", Prior: &suggest.Prior{Value: "1", Spread: "0.3"}},
		"an int":                 {Kind: suggest.Int, Min: "1", Max: "40", Prior: &suggest.Prior{Value: "7", Spread: "0.05"}},
		"a word":                 {Kind: suggest.Categorical, List: []string{"a", "b", "c"}, Prior: &suggest.Prior{Value: "b"}},
		"one of two words":       {Kind: suggest.Categorical, List: []string{"a", "b"}, Prior: &suggest.Prior{Value: "b"}},
		"weights":                {Kind: suggest.Categorical, List: []string{"a", "b", "c", "d"}, Prior: &suggest.Prior{Weights: []string{"1", "0", "2", "5"}}},
		"weights of numbers":     {Kind: suggest.Discrete, List: []string{"64", "16", "32"}, Prior: &suggest.Prior{Weights: []string{"1", "5", "2"}}},
	}
}

// The density has the mass 1, its derivative is right, and points drawn from the prior
// have that density.
func TestPriorsAreDensities(t *testing.T) {
	const n = 20_000
	for name, spec := range priors() {
		t.Run(name, func(t *testing.T) {
			p := believed(t, spec)
			space, _ := suggest.NewSpace([]suggest.ParameterSpec{func() suggest.ParameterSpec { spec.Name = "x"; return spec }()})
			mass, low, drawn := 0.0, 0.0, 0
			for i := range n {
				u := (float64(i) + 0.5) / n
				log, slope := p.LogPrior(u)
				mass += math.Exp(log) / n
				if u < 0.4 {
					low += math.Exp(log) / n
				}
				if count, finite := p.Count(); !finite {
					h := 1e-6
					above, _ := p.LogPrior(u + h)
					below, _ := p.LogPrior(u - h)
					if want := (above - below) / (2 * h); math.Abs(slope-want) > 1e-4*(1+math.Abs(want)) {
						t.Fatalf("the derivative at %g is %g, want %g", u, slope, want)
					}
				} else if slope != 0 && count < 5 {
					t.Fatalf("the derivative at %g is %g", u, slope)
				}
				v := space.FromPrior([]float64{u})[0]
				if e := p.Encode(v); e < 0.4 {
					drawn++
				}
			}
			if math.Abs(mass-1) > 1e-3 {
				t.Errorf("the mass is %g", mass)
			}
			within := 0.01
			if _, finite := p.Count(); finite {
				within = 0.11 // 0.4 lies within the cell of a value
			}
			if got := float64(drawn) / n; math.Abs(got-low) > within {
				t.Errorf("%.3f of the points drawn lie below 0.4, where the density has %.3f", got, low)
			}
		})
	}
}

func TestTheMostBelievedPoint(t *testing.T) {
	for name, want := range map[string]string{
		"a value in a log range": "0.001", "a value at the end": "1", "an int": "7", "a word": "b", "weights": "d", "weights of numbers": "16",
	} {
		spec := priors()[name]
		spec.Name = "x"
		space, err := suggest.NewSpace([]suggest.ParameterSpec{spec})
		if err != nil {
			t.Fatal(err)
		}
		got := space.MostBelieved()[0]
		if text := got.String(); text != want && math.Abs(got.Float()-0.001) > 1e-9 {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}

func TestPriorsThatAreWrong(t *testing.T) {
	number := suggest.ParameterSpec{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}
	words := suggest.ParameterSpec{Name: "x", Kind: suggest.Categorical, List: []string{"a", "b"}}
	for name, c := range map[string]struct {
		spec  suggest.ParameterSpec
		prior suggest.Prior
		want  string
	}{
		"nothing":                {number, suggest.Prior{}, "neither a value nor weights"},
		"a value outside":        {number, suggest.Prior{Value: "2"}, `the value "2", which must be from 0 to 1`},
		"an unknown word":        {words, suggest.Prior{Value: "c"}, "must be one of a, b"},
		"a spread of 0":          {number, suggest.Prior{Value: "0.5", Spread: "0"}, "above 0 and at most 1"},
		"a spread of 2":          {number, suggest.Prior{Value: "0.5", Spread: "2"}, "above 0 and at most 1"},
		"a spread of a word":     {words, suggest.Prior{Value: "a", Spread: "0.1"}, "a categorical has no use for"},
		"weights of a range":     {number, suggest.Prior{Weights: []string{"1"}}, "are for a list"},
		"too few weights":        {words, suggest.Prior{Weights: []string{"1"}}, "has 1 weights for 2 values"},
		"a weight below 0":       {words, suggest.Prior{Weights: []string{"1", "-1"}}, `the weight "-1"`},
		"no weight above 0":      {words, suggest.Prior{Weights: []string{"0", "0"}}, "are all 0"},
		"weights beside a value": {words, suggest.Prior{Weights: []string{"1", "2"}, Value: "a"}, "give one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Prior = &c.prior
			if _, err := suggest.NewSpace([]suggest.ParameterSpec{c.spec}); err == nil || !strings.Contains(err.Error(), "prior "+"has") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
