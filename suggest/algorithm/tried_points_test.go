package algorithm

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

func keysOf(t *tried) []string { return slices.Sorted(maps.Keys(t.keys)) }

// What was tried in an earlier study must never show.
func TestTriedPointsSeeEachEdit(t *testing.T) {
	for _, at := range []int{0, 7, together, 3*together + 3} {
		for name, edit := range edits(at) {
			s := markedStudy(t)
			var x triedPoints
			for round := range 3 {
				got, done := x.open(s.Space, s, true)
				if diff := cmp.Diff(keysOf(newTriedAlways(s.Space, s.Trials)), keysOf(got)); diff != "" {
					t.Errorf("%s at %d, round %d: %s", name, at, round, diff)
				}
				if got.exhausted() {
					t.Errorf("%s at %d: exhausted", name, at)
				}
				got.add(s.Space.Decode([]float64{0.9, 0.1, 0.123}))
				done()
				if round == 0 {
					edit(&s)
				}
			}
		}
	}
}

// Points are tracked where newTried tracks them, and only there.
func TestTriedPointsAreTrackedWhereTheyCanMeet(t *testing.T) {
	for name, spec := range map[string]suggest.ParameterSpec{
		"finite":     {Name: "x", Kind: suggest.Int, Min: "1", Max: "5"},
		"continuous": {Name: "x", Kind: suggest.Double, Min: "1", Max: "5"},
	} {
		space, err := suggest.NewSpace([]suggest.ParameterSpec{spec})
		if err != nil {
			t.Fatal(err)
		}
		trials := []suggest.Trial{{Number: 0, Point: space.Decode([]float64{0.5})}}
		for _, always := range []bool{false, true} {
			want := newTried(space, trials)
			if always {
				want = newTriedAlways(space, trials)
			}
			var x triedPoints
			got, done := x.open(space, suggest.Study{Trials: trials}, always)
			if (got.keys == nil) != (want.keys == nil) || !slices.Equal(keysOf(got), keysOf(want)) || len(got.allowed()) != 1 {
				t.Errorf("%s, always %v: got %v, want %v", name, always, got.keys, want.keys)
			}
			done()
		}
	}
}

// Who comes while another one is at it gets an answer of the same sort.
func TestTriedPointsAreAskedAtOnce(t *testing.T) {
	s := markedStudy(t)
	want := keysOf(newTriedAlways(s.Space, s.Trials))
	var x triedPoints
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for range 20 {
				got, done := x.open(s.Space, s, true)
				if !slices.Equal(keysOf(got), want) {
					t.Errorf("worker %d: got %v, want %v", worker, keysOf(got), want)
				}
				got.add(s.Space.Decode([]float64{0.1 * float64(worker), 0.5, 0.321}))
				done()
			}
		})
	}
	all.Wait()
}
