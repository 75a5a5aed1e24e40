package algorithm_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// edit changes a study as no service should, but as a program might.
func edit(s *suggest.Study, stream *rng.Stream) {
	i, other := stream.Uint64N(uint64(len(s.Trials))), s.Trials[stream.Uint64N(uint64(len(s.Trials)))]
	kind := stream.Uint64N(11)
	if kind == 0 {
		s.Trials = slices.Delete(slices.Clone(s.Trials), int(i), int(i)+1)
		return
	}
	s.Update(s.Trials[i].Number, func(t *suggest.Trial) {
		switch kind {
		case 1:
			t.State, t.Values = suggest.Succeeded, []float64{stream.Float64(), stream.Float64()}
		case 2:
			t.State, t.Values = suggest.Failed, nil
		case 3:
			t.State, t.Values = suggest.Running, nil
		case 4:
			t.Meta = nil
		case 5:
			t.Meta = other.Meta
		case 6:
			t.Point = other.Point
		case 7:
			t.Values = []float64{math.NaN(), 1}
		case 8:
			t.Curve = append(slices.Clone(t.Curve), suggest.Sample{Step: int64(len(t.Curve)), Value: stream.Float64()})
		case 9:
			t.Resource = float64(stream.Uint64N(3))
		case 10:
			t.Point = slices.Clone(t.Point) // the same elsewhere
		}
	})
}

func TestCachesNeverChangeAnAnswer(t *testing.T) {
	for _, name := range append(replaying(), "tpe") {
		for _, count := range []int{1, 2} {
			space := replayed(t)
			w := &workers{algorithm: newAlgorithm(t, name, space), parallel: 4, values: twoValues}
			w.study = suggest.Study{Space: space, Seed: 9, Objectives: objectives(count, "")}
			w.play(t, 120)
			stream := rng.NewKey(1, "test", "edits").Stream(0)
			for step := range 150 {
				edit(&w.study, stream)
				change(&w.study, step)
				if diff := cachedFromFresh(t, name, w.algorithm, w.study); diff != "" {
					t.Fatalf("%s, %d objectives, edit %d: a cache changed the answer (-fresh +cached):\n%s", name, count, step, diff)
				}
			}
		}
	}
}

// change changes now and then what is not of a single trial.
func change(s *suggest.Study, step int) {
	switch step % 50 {
	case 20:
		s.Seed++
	case 30:
		s.Objectives = objectives(len(s.Objectives), suggest.Maximize)
	case 40:
		s.Warm = slices.Clone(s.Trials[:20])
	}
}

// cachedFromFresh is how the answer of an algorithm differs from that of a new
// one.
func cachedFromFresh(t *testing.T, name string, a suggest.Algorithm, s suggest.Study, settings ...suggest.Setting) string {
	t.Helper()
	cached, err := a.Suggest(t.Context(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := newAlgorithm(t, name, s.Space, settings...).Suggest(t.Context(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Diff(fresh, cached, cmp.Comparer(suggest.Value.Equal))
}
