package population

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// A rule may stop more members than the share of the worst. Who has results of a generation
// takes over from all of them.
func TestStoppedTrialsAreNeverContinued(t *testing.T) {
	for name, c := range map[string]struct {
		states map[int]suggest.State // of eight members; those that are not named succeeded
		want   []string              // parents of the next generation
	}{
		"more than the share of the worst": {
			map[int]suggest.State{2: suggest.Pruned, 3: suggest.Pruned, 4: suggest.Pruned, 5: suggest.Pruned, 6: suggest.Pruned},
			[]string{"0", "1", "7"},
		},
		"while the others train": {
			map[int]suggest.State{0: suggest.Running, 1: suggest.Running, 2: suggest.Pruned, 3: suggest.Pruned, 4: suggest.Pruned, 5: suggest.Pruned},
			[]string{"6", "7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPopulationStudy(t, 1, learningRate)
			a := buildPopulation(t, PBT().New, s, nPopulation, "8")
			for i := range 8 {
				m := member(s.Space, i, i, 0, "", float64(i))
				if state, other := c.states[i]; other {
					if m.State = state; state == suggest.Running {
						m.Values = nil
					}
				}
				s.Trials = append(s.Trials, m)
			}
			got, err := a.Suggest(t.Context(), s, 8)
			if err != nil {
				t.Fatal(err)
			}
			var parents []string
			for _, p := range got {
				if parent := p.Meta[suggest.MetaParent]; !slices.Contains(parents, parent) {
					parents = append(parents, parent)
				}
			}
			slices.Sort(parents)
			if diff := cmp.Diff(c.want, parents); diff != "" {
				t.Errorf("parents (-want +got)\n%s", diff)
			}
		})
	}
}
