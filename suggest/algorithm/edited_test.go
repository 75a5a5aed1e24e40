package algorithm_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// edit changes a study as no service should, but as somebody might: its trials
// from a place on.
func edit(s *suggest.Study, from int, stream *rng.Stream) {
	i := from + int(stream.Uint64N(uint64(len(s.Trials)-from)))
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
		slices.Reverse(s.Trials[from:])
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
				edit(&w.study, 0, stream)
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
// one, which is promised nothing.
func cachedFromFresh(t *testing.T, name string, a suggest.Algorithm, s suggest.Study, settings ...suggest.Setting) string {
	t.Helper()
	cached, err := a.Suggest(t.Context(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.Record = nil
	fresh, err := newAlgorithm(t, name, s.Space, settings...).Suggest(t.Context(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Diff(fresh, cached, cmp.Comparer(suggest.Value.Equal))
}

// The same where a promise covers a part of the trials, and the edits come
// behind it.
func TestPromisesNeverChangeAnAnswer(t *testing.T) {
	for _, name := range append(replaying(), "tpe", "random", "sobol") {
		for _, count := range []int{1, 2} {
			space := replayed(t)
			w := &workers{algorithm: newAlgorithm(t, name, space), parallel: 4, values: twoValues}
			w.study = suggest.Study{Space: space, Seed: 9, Objectives: objectives(count, "")}
			w.play(t, 120)
			w.study.Settle()
			witness := &suggesttest.Witness{Algorithm: w.algorithm, T: t}
			stream := rng.NewKey(1, "test", "promises").Stream(0)
			for step := range 150 {
				switch step % 15 {
				case 3, 6: // less is promised
					w.study.Settled -= int(stream.Uint64N(20))
				case 9, 12: // all anew
					w.study.Record = nil
					edit(&w.study, 0, stream)
					slices.SortFunc(w.study.Trials, func(x, y suggest.Trial) int { return x.Number - y.Number })
					w.study.Settle()
					w.study.Settled = min(w.study.Settled, len(w.study.Trials)-10)
				}
				edit(&w.study, w.study.Promised(), stream)
				change(&w.study, step)
				s := w.study
				s.Trials = slices.Clone(s.Trials)
				if diff := cachedFromFresh(t, name, witness, s); diff != "" {
					t.Fatalf("%s, %d objectives, edit %d: a promise of %d trials changed the answer (-fresh +cached):\n%s", name, count, step, s.Settled, diff)
				}
			}
		}
	}
}
