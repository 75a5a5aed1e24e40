package stop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest/stop"
)

func TestContract(t *testing.T) {
	for _, r := range stop.All() {
		t.Run(r.Name, func(t *testing.T) { holdToContract(t, r) })
	}
}

func TestRegistry(t *testing.T) {
	all, names := stop.All(), stop.Names()
	if !slices.IsSortedFunc(all, func(a, b stop.Registration) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the rules are not sorted by name")
	}
	if len(slices.Compact(slices.Clone(names))) != len(names) || len(names) != len(all) {
		t.Errorf("the names are %v", names)
	}
	for _, name := range names {
		if r, ok := stop.Get(name); !ok || r.Name != name || r.New == nil || r.Summary == "" {
			t.Errorf("Get(%q) = %+v, %v", name, r, ok)
		}
	}
	for _, name := range []string{"", "Median", "none"} {
		if _, ok := stop.Get(name); ok {
			t.Errorf("there is a rule %q", name)
		}
	}
}
