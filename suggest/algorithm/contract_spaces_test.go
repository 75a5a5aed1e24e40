package algorithm_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
)

// spaces are the search spaces of the suite, by what is special about them.
func spaces() map[string][]suggest.ParameterSpec {
	out := map[string][]suggest.ParameterSpec{
		"one double":      {{Name: "x", Kind: suggest.Double, Min: "-1", Max: "2"}},
		"one log double":  {{Name: "lr", Kind: suggest.Double, Min: "1e-5", Max: "1e-1", Distribution: suggest.LogUniform}},
		"one int":         {{Name: "n", Kind: suggest.Int, Min: "1", Max: "4"}},
		"one choice":      {{Name: "c", Kind: suggest.Categorical, List: []string{"only"}}},
		"min equals max":  {{Name: "x", Kind: suggest.Double, Min: "0.5", Max: "0.5", Distribution: suggest.LogNormal}},
		"mixed":           mixed(),
		"small":           small(),
		"fifty":           nil,
		"tree":            aTree(),
		"small tree":      smallTree(),
		"all one value":   {{Name: "x", Kind: suggest.Int, Min: "3", Max: "3"}, {Name: "c", Kind: suggest.Discrete, List: []string{"1e-3"}}},
		"skewed steps":    {{Name: "n", Kind: suggest.Int, Min: "1", Max: "40", Distribution: suggest.LogNormal}, {Name: "x", Kind: suggest.Double, Min: "0.01", Max: "0.2", Step: "0.01", Distribution: suggest.Normal}},
		"huge and finite": {{Name: "n", Kind: suggest.Int, Min: "1", Max: "1000000000"}, {Name: "m", Kind: suggest.Int, Min: "1", Max: "1000000000"}, {Name: "k", Kind: suggest.Int, Min: "0", Max: "99"}},
	}
	for i := range 50 {
		spec := mixed()[i%len(mixed())]
		spec.Name = fmt.Sprintf("p%02d", i)
		out["fifty"] = append(out["fifty"], spec)
	}
	return out
}

// spaceNames are the names of spaces, sorted.
func spaceNames() []string { return slices.Sorted(maps.Keys(spaces())) }

// mixed has a parameter of each kind and distribution.
func mixed() []suggest.ParameterSpec {
	return []suggest.ParameterSpec{
		{Name: "lr", Kind: suggest.Double, Min: "1e-4", Max: "0.1", Distribution: suggest.LogUniform},
		{Name: "momentum", Kind: suggest.Double, Min: "0.5", Max: "0.99", Step: "0.07"},
		{Name: "layers", Kind: suggest.Int, Min: "-2", Max: "13", Step: "3"},
		{Name: "width", Kind: suggest.Int, Min: "1", Max: "64", Distribution: suggest.LogNormal},
		{Name: "dropout", Kind: suggest.Double, Min: "0", Max: "1", Distribution: suggest.Normal},
		{Name: "batch", Kind: suggest.Discrete, List: []string{"64", "1e1", "16"}},
		{Name: "optimizer", Kind: suggest.Categorical, List: []string{"sgd", "adam", "ftrl"}},
	}
}

// small has few points, not equally probable: 5*3*4.
func small() []suggest.ParameterSpec {
	return []suggest.ParameterSpec{
		{Name: "n", Kind: suggest.Int, Min: "1", Max: "5", Distribution: suggest.LogUniform},
		{Name: "c", Kind: suggest.Categorical, List: []string{"a", "b", "c"}},
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "0.3", Step: "0.1", Distribution: suggest.Normal},
	}
}

// aTree has parameters that are active only for some values of others, which
// come after them or are conditional themselves.
func aTree() []suggest.ParameterSpec {
	return []suggest.ParameterSpec{
		{Name: "units2", Kind: suggest.Int, Min: "8", Max: "64", Distribution: suggest.LogUniform, When: &suggest.When{Parameter: "layers", In: []string{"2", "3"}}},
		{Name: "model", Kind: suggest.Categorical, List: []string{"svm", "mlp", "forest"}},
		{Name: "c", Kind: suggest.Double, Min: "1e-3", Max: "1e3", Distribution: suggest.LogUniform, When: &suggest.When{Parameter: "model", In: []string{"svm"}}},
		{Name: "layers", Kind: suggest.Int, Min: "1", Max: "3", When: &suggest.When{Parameter: "model", In: []string{"mlp"}}},
		{Name: "units1", Kind: suggest.Int, Min: "8", Max: "64", Distribution: suggest.LogUniform, When: &suggest.When{Parameter: "model", In: []string{"mlp"}}},
		{Name: "seed", Kind: suggest.Double, Min: "0", Max: "1"},
	}
}

// smallTree has 2 + 3*2 points with the first choice, 4 with the second and 1
// with the third.
func smallTree() []suggest.ParameterSpec {
	return []suggest.ParameterSpec{
		{Name: "a", Kind: suggest.Categorical, List: []string{"x", "y", "z"}},
		{Name: "b", Kind: suggest.Int, Min: "1", Max: "3", When: &suggest.When{Parameter: "c", In: []string{"2"}}},
		{Name: "c", Kind: suggest.Int, Min: "0", Max: "2", When: &suggest.When{Parameter: "a", In: []string{"x"}}},
		{Name: "d", Kind: suggest.Categorical, List: []string{"u", "v"}, When: &suggest.When{Parameter: "b", In: []string{"1", "2", "3"}}},
		{Name: "e", Kind: suggest.Discrete, List: []string{"0.5", "1", "2", "8"}, When: &suggest.When{Parameter: "a", In: []string{"y"}}},
	}
}

// withSteps puts each double without step on a grid.
func withSteps(specs []suggest.ParameterSpec) []suggest.ParameterSpec {
	out := slices.Clone(specs)
	for i, s := range out {
		if s.Kind != suggest.Double || s.Step != "" {
			continue
		}
		low, _ := strconv.ParseFloat(s.Min, 64)
		high, _ := strconv.ParseFloat(s.Max, 64)
		if high > low {
			out[i].Step = strconv.FormatFloat((high-low)/8, 'g', 6, 64)
		}
	}
	return out
}
