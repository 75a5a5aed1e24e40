package fidelity

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// What a mutant chooses must not depend on where in the list the choices of its
// parents stand: with the list turned around, the other end comes as often.
func TestDEHBHasNoFavouritesAmongChoices(t *testing.T) {
	const draws, tolerance = 6000, 0.03
	for name, c := range map[string]struct {
		list    []string
		member  int
		parents [3]int
	}{
		"two choices, one parent differs":        {[]string{"a", "b"}, 1, [3]int{0, 0, 1}},
		"two choices, the parents agree":         {[]string{"a", "b"}, 1, [3]int{0, 0, 0}},
		"three choices, the parents are apart":   {[]string{"a", "b", "c"}, 0, [3]int{0, 1, 2}},
		"five choices, two of them at one end":   {[]string{"a", "b", "c", "d", "e"}, 2, [3]int{4, 4, 1}},
		"five choices, all of them at their end": {[]string{"a", "b", "c", "d", "e"}, 0, [3]int{0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			space, err := suggest.NewSpace([]suggest.ParameterSpec{{Name: "c", Kind: suggest.Categorical, List: c.list}})
			if err != nil {
				t.Fatal(err)
			}
			a, err := DEHB().New(space, nil)
			if err != nil {
				t.Fatal(err)
			}
			d := a.(*dehb)
			last := int64(len(c.list) - 1)
			entry := func(choice int, mirrored bool) *rungEntry {
				at := int64(choice)
				if mirrored {
					at = last - at
				}
				return &rungEntry{trial: &suggest.Trial{Point: suggest.Point{space.At(0).At(at)}}}
			}
			shares := func(mirrored bool) []float64 {
				var parents []*rungEntry
				for _, p := range c.parents {
					parents = append(parents, entry(p, mirrored))
				}
				out := make([]float64, len(c.list))
				stream := rng.NewKey(7, name).Stream(0)
				for range draws {
					at, _ := d.evolve(entry(c.member, mirrored), parents, stream)[0].Index()
					if mirrored {
						at = last - at
					}
					out[at] += 1.0 / draws
				}
				return out
			}
			forward, backward := shares(false), shares(true)
			for i := range forward {
				if math.Abs(forward[i]-backward[i]) > tolerance {
					t.Errorf("choice %s is drawn %.3f of the times, and %.3f where the list is turned around", c.list[i], forward[i], backward[i])
				}
			}
		})
	}
}
