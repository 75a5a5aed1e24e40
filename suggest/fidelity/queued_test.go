package fidelity

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
)

// A point that a user queued has no rung, but says in its parameter how long it trained. It is
// compared with others of that length only.
func TestAQueuedPointIsAsLongAsItsParameterSays(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "epochs", Kind: suggest.Int, Min: "1", Max: "27"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := readFidelity(space, suggest.Settings{{Name: "resource_name", Value: "epochs"}}.Read(), false)
	f.learns = true
	for epochs, want := range map[string]struct{ counts, whole bool }{"3": {false, false}, "9": {true, false}, "27": {false, true}} {
		point, _ := space.Parse([]suggest.Assignment{{Name: "x", Value: "0.5"}, {Name: "epochs", Value: epochs}})
		s := suggest.Study{
			Objectives: []suggest.Objective{{Name: "loss"}},
			Trials:     []*suggest.Trial{{Number: 0, Point: point, State: suggest.Succeeded, Values: []float64{1}}},
		}
		for n := 1; n < 20; n++ { // enough of nine epochs to learn from
			p, _ := space.Parse([]suggest.Assignment{{Name: "x", Value: "0.25"}, {Name: "epochs", Value: "9"}})
			s.Trials = append(s.Trials, &suggest.Trial{
				Number: n, Point: p, State: suggest.Succeeded, Values: []float64{2}, Resource: 9, Meta: suggest.Meta{metaBracket: "0", metaRung: "2"},
			})
		}
		b := readRungs(history.NewReader(space).Read(s))
		if got := f.view(s, b).Trials[0].State == suggest.Succeeded; got != want.counts {
			t.Errorf("%s epochs among trials of 9: counts as a result %v, want %v", epochs, got, want.counts)
		}
		if got := f.curves(s, b).Trials[0].Resource >= 27; got != want.whole {
			t.Errorf("%s epochs: counts as whole %v, want %v", epochs, got, want.whole)
		}
		s.Trials = s.Trials[:1]
		if got := f.view(s, readRungs(history.NewReader(space).Read(s))).Trials[0].State == suggest.Succeeded; got != want.whole {
			t.Errorf("%s epochs alone: counts as a result %v, want %v", epochs, got, want.whole)
		}
	}
}

// A rung that the parameter cannot hold is that of the value which is nearest to it.
func TestAQueuedPointCountsAtTheNearestRung(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "epochs", Kind: suggest.Discrete, List: []string{"1", "4", "10", "27"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := readFidelity(space, suggest.Settings{{Name: "resource_name", Value: "epochs"}}.Read(), false)
	for epochs, want := range map[string]bool{"4": false, "10": true, "27": false} {
		point, _ := space.Parse([]suggest.Assignment{{Name: "x", Value: "0.5"}, {Name: "epochs", Value: epochs}})
		if got := f.counts(&suggest.Trial{Point: point}, 9); got != want {
			t.Errorf("%s epochs at the rung of 9: %v, want %v", epochs, got, want)
		}
	}
}
