package algorithm_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// edit changes a study as no service should, but as somebody might.
func edit(s *suggest.Study, stream *rng.Stream) {
	i := int(stream.Uint64N(uint64(len(s.Trials))))
	t := &s.Trials[i]
	switch stream.Uint64N(13) {
	case 0:
		t.State, t.Values = suggest.Succeeded, []float64{stream.Float64(), stream.Float64()}
	case 1:
		if len(t.Values) > 0 {
			t.Values[0] = stream.Float64() // in place
		}
	case 2:
		t.State, t.Values = suggest.Failed, nil
	case 3:
		t.State, t.Values = suggest.Running, nil
	case 4:
		t.Meta = nil
	case 5:
		t.Meta = s.Trials[stream.Uint64N(uint64(len(s.Trials)))].Meta
	case 6:
		t.Point = s.Trials[stream.Uint64N(uint64(len(s.Trials)))].Point
	case 7:
		s.Trials = slices.Delete(s.Trials, i, i+1)
	case 8:
		t.Values = []float64{math.NaN(), 1}
	case 9:
		slices.Reverse(s.Trials)
	case 10:
		t.Curve = append(slices.Clone(t.Curve), suggest.Sample{Step: int64(len(t.Curve)), Value: stream.Float64()})
	case 11:
		t.Resource = float64(stream.Uint64N(3))
	case 12:
		t.Point = slices.Clone(t.Point) // the same elsewhere
	}
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
				switch step % 50 {
				case 20:
					w.study.Seed++
				case 30:
					w.study.Objectives = objectives(count, suggest.Maximize)
				case 40:
					w.study.Warm = slices.Clone(w.study.Trials[:20])
				}
				cached, err := w.algorithm.Suggest(t.Context(), w.study, 2)
				if err != nil {
					t.Fatal(err)
				}
				fresh, err := newAlgorithm(t, name, space).Suggest(t.Context(), w.study, 2)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(fresh, cached, cmp.Comparer(suggest.Value.Equal)); diff != "" {
					t.Fatalf("%s, %d objectives, edit %d: a cache changed the answer (-fresh +cached):\n%s", name, count, step, diff)
				}
			}
		}
	}
}
