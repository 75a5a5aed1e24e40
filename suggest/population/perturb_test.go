package population

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func TestPerturb(t *testing.T) {
	double := func(min, max string) suggest.ParameterSpec {
		return suggest.ParameterSpec{Kind: suggest.Double, Min: min, Max: max}
	}
	whole := func(min, max, step string) suggest.ParameterSpec {
		return suggest.ParameterSpec{Kind: suggest.Int, Min: min, Max: max, Step: step}
	}
	logarithmic := whole("1", "1000", "")
	logarithmic.Distribution = suggest.LogUniform
	stepped := double("0.0001", "0.02")
	stepped.Step = "0.0001"
	for name, c := range map[string]struct {
		spec     suggest.ParameterSpec
		value    string
		up, down string
	}{
		"a fifth of a double":                     {double("0.1", "10"), "5", "6", "4"},
		"a double stops at its ends":              {double("1", "2"), "1.9", "2", "1.52"},
		"a double at its end stays or moves in":   {double("1", "2"), "2", "2", "1.6"},
		"a fiftieth of the range around 0":        {double("-1", "1"), "0", "0.04", "-0.04"},
		"a negative double":                       {double("-10", "10"), "-5", "-4", "-6"},
		"a double on a step":                      {stepped, "0.001", "0.0012", "0.0008"},
		"a double on a step moves by a step":      {stepped, "0.0002", "0.0003", "0.0001"},
		"an int moves by a fifth, rounded":        {whole("1", "100", ""), "52", "62", "42"},
		"an int moves by one at least":            {whole("1", "9", ""), "2", "3", "1"},
		"an int stops at its ends":                {whole("1", "9", ""), "9", "9", "7"},
		"an int with a step stays on it":          {whole("16", "512", "16"), "128", "160", "96"},
		"an int on a logarithmic scale":           {logarithmic, "100", "120", "80"},
		"a discrete moves to its neighbour":       {suggest.ParameterSpec{Kind: suggest.Discrete, List: []string{"64", "16", "1e2"}}, "64", "1e2", "16"},
		"a discrete stops at its ends":            {suggest.ParameterSpec{Kind: suggest.Discrete, List: []string{"64", "16", "1e2"}}, "16", "64", "16"},
		"a parameter with one value has no other": {double("3", "3"), "3", "3", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Name = "x"
			space, err := suggest.NewSpace([]suggest.ParameterSpec{c.spec})
			if err != nil {
				t.Fatal(err)
			}
			p := space.At(0)
			v, ok := p.Parse(c.value)
			if !ok {
				t.Fatalf("%s is no value", c.value)
			}
			got := []string{perturb(p, v, true).String(), perturb(p, v, false).String()}
			if diff := cmp.Diff([]string{c.up, c.down}, got); diff != "" {
				t.Errorf("up and down from %s:\n%s", c.value, diff)
			}
		})
	}
}

func TestPerturbSomeChangesThreeParametersOnAverage(t *testing.T) {
	var specs []suggest.ParameterSpec
	for i := range 30 {
		specs = append(specs, suggest.ParameterSpec{Name: "p" + strconv.Itoa(i), Kind: suggest.Double, Min: "1", Max: "10"})
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	p, changes := space.Decode(slices.Repeat([]float64{0.5}, space.Len())), 0
	const rounds = 2000
	stream := rng.NewKey(1, "test").Stream(0)
	for range rounds {
		q, changed := perturbSome(space, p, 0.25, stream), 0
		for i := range p {
			if !q[i].Equal(p[i]) {
				changed++
			}
		}
		if changed == 0 {
			t.Error("nothing changed")
		}
		changes += changed
	}
	// One is chosen, each of the 29 others has the probability 1/10.
	if mean := float64(changes) / rounds; mean < 3.7 || mean > 4.1 {
		t.Errorf("%v parameters changed on average, want 3.9", mean)
	}
}

func TestPerturbSomeSettlesConditions(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "model", Kind: suggest.Categorical, List: []string{"a", "b"}},
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1", When: &suggest.When{Parameter: "model", In: []string{"a"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	stream, seen := rng.NewKey(1, "test").Stream(0), map[string]bool{}
	for _, start := range []float64{0.2, 0.8} {
		for range 50 {
			q := perturbSome(space, space.Decode([]float64{start, 0.5}), 0.25, stream)
			if !space.Contains(q) {
				t.Fatalf("%v is not in the space", space.Assignments(q))
			}
			seen[q[0].String()] = true
		}
	}
	if !seen["a"] || !seen["b"] {
		t.Errorf("only %v were proposed", seen)
	}
}
