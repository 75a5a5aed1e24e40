package algorithm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/propose"
)

func TestContract(t *testing.T) {
	for _, r := range algorithm.All() {
		t.Run(r.Name, func(t *testing.T) { holdToContract(t, r) })
	}
}

// Settings that put another model in the place of the usual one keep the contract too.
func TestContractWithSettings(t *testing.T) {
	for name, setting := range map[string]suggest.Setting{
		"cmaes":                withSurrogate,
		"bayesianoptimization": {Name: "base_estimator", Value: "ET"},
		"auto":                 {Name: "r_max", Value: "27"},
	} {
		t.Run(name+" "+setting.Name, func(t *testing.T) {
			r, ok := algorithm.GetWith(name, suggest.Settings{setting})
			if !ok {
				t.Fatalf("there is no %s", name)
			}
			build := r.New
			r.New = func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
				return build(space, append(slices.Clip(settings), setting))
			}
			holdToContract(t, r)
		})
	}
}

func TestRegistry(t *testing.T) {
	all := algorithm.All()
	names := algorithm.Names()
	if !slices.IsSortedFunc(all, func(a, b propose.Registration) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the algorithms are not sorted by name")
	}
	if len(slices.Compact(slices.Clone(names))) != len(names) || len(names) != len(all) {
		t.Errorf("the names are %v", names)
	}
	for _, name := range names {
		if r, ok := algorithm.Get(name); !ok || r.Name != name || r.New == nil || r.Summary == "" {
			t.Errorf("Get(%q) = %+v, %v", name, r, ok)
		}
	}
	for _, name := range []string{"", "Random", "none"} {
		if _, ok := algorithm.Get(name); ok {
			t.Errorf("there is an algorithm %q", name)
		}
	}
}
