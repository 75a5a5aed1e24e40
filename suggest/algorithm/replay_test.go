package algorithm_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// replaying are the algorithms that rebuild their state from what the trials
// carry.
func replaying() []string { return []string{"cmaes", "nsga2", "nsga3", "regularized-evolution"} }

// replayed is a space of each kind of parameter, with conditions.
func replayed(t testing.TB) suggest.Space {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"},
		{Name: "y", Kind: suggest.Double, Min: "1e-4", Max: "1", Distribution: suggest.LogUniform},
		{Name: "n", Kind: suggest.Int, Min: "1", Max: "12"},
		{Name: "model", Kind: suggest.Categorical, List: []string{"a", "b", "c"}},
		{Name: "depth", Kind: suggest.Int, Min: "1", Max: "5", When: &suggest.When{Parameter: "model", In: []string{"a", "b"}}},
		{Name: "rate", Kind: suggest.Double, Min: "0", Max: "2", When: &suggest.When{Parameter: "model", In: []string{"c"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// workers play a study with several trials at once that end in an order of
// their own, some of them badly.
type workers struct {
	algorithm suggest.Algorithm
	study     suggest.Study
	running   []int
	parallel  int
	values    func(p suggest.Point) []float64
	asked     func(s suggest.Study, n int, got []suggest.Proposal)
}

func (w *workers) play(t testing.TB, trials int) {
	t.Helper()
	stream := rng.NewKey(w.study.Seed, "test", "workers").Stream(0)
	for len(w.study.Trials) < trials {
		n := min(w.parallel-len(w.running), trials-len(w.study.Trials))
		got, err := w.algorithm.Suggest(t.Context(), w.study, n)
		if err != nil || len(got) != n {
			t.Fatalf("%d trials: %d proposals, want %d, %v", len(w.study.Trials), len(got), n, err)
		}
		if w.asked != nil {
			w.asked(w.study, n, got)
		}
		for i, p := range got {
			w.running = append(w.running, len(w.study.Trials))
			w.study.Put(&suggest.Trial{Number: len(w.study.Trials), Point: p.Point, Meta: p.Meta, State: suggest.State(i % 2)})
		}
		for range 1 + stream.Uint64N(2) {
			if len(w.running) == 0 {
				break
			}
			k := int(stream.Uint64N(uint64(len(w.running))))
			trial := *w.study.Trials[w.running[k]]
			w.running = slices.Delete(w.running, k, k+1)
			trial.State, trial.Values = suggest.Succeeded, w.values(trial.Point)
			switch stream.Uint64N(12) {
			case 0:
				trial.State, trial.Values = suggest.Failed, nil
			case 1:
				trial.State, trial.Values = suggest.Killed, nil
			case 2:
				trial.State = suggest.Pruned
			}
			w.study.Put(&trial)
		}
	}
}

func twoValues(p suggest.Point) []float64 {
	x, n := p[0].Float(), p[2].Float()/12
	loss := (x-0.3)*(x-0.3) + math.Abs(math.Log10(p[1].Float())+2)/4 + (n-0.5)*(n-0.5)
	if p[3].String() == "b" {
		loss -= 0.5
	}
	return []float64{loss, (x-0.8)*(x-0.8) + n}
}

func newAlgorithm(t testing.TB, name string, space suggest.Space, settings ...suggest.Setting) suggest.Algorithm {
	t.Helper()
	r, ok := algorithm.Get(name)
	if !ok {
		t.Fatalf("no algorithm %q", name)
	}
	a, err := r.New(space, settings)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func objectives(n int, d suggest.Direction) []suggest.Objective {
	return slices.Repeat([]suggest.Objective{{Name: "loss", Direction: d}}, n)
}

func TestAnswersSurviveARestartAtAnyTrial(t *testing.T) {
	for _, name := range replaying() {
		for _, parallel := range []int{1, 6} {
			for _, count := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s, %d workers, %d objectives", name, parallel, count), func(t *testing.T) {
					space := replayed(t)
					w := &workers{algorithm: newAlgorithm(t, name, space), parallel: parallel, values: twoValues}
					w.study = suggest.Study{Space: space, Seed: 3, Objectives: objectives(count, "")}
					w.asked = func(s suggest.Study, n int, got []suggest.Proposal) {
						again, err := newAlgorithm(t, name, space).Suggest(t.Context(), s, n)
						if err != nil {
							t.Fatal(err)
						}
						if diff := cmp.Diff(got, again, cmp.Comparer(suggest.Value.Equal)); diff != "" {
							t.Fatalf("after %d trials a fresh process answers otherwise (-old +fresh):\n%s", len(s.Trials), diff)
						}
					}
					w.play(t, 160)
				})
			}
		}
	}
}

func TestMaximizeMirrorsMinimize(t *testing.T) {
	for _, name := range replaying() {
		t.Run(name, func(t *testing.T) {
			space := replayed(t)
			play := func(d suggest.Direction, sign float64) []*suggest.Trial {
				w := &workers{algorithm: newAlgorithm(t, name, space), parallel: 3}
				w.study = suggest.Study{Space: space, Seed: 5, Objectives: objectives(2, d)}
				w.values = func(p suggest.Point) []float64 {
					v := twoValues(p)
					return []float64{sign * v[0], sign * v[1]}
				}
				w.play(t, 120)
				return w.study.Trials
			}
			low, high := play(suggest.Minimize, 1), play(suggest.Maximize, -1)
			for i := range low {
				if !low[i].Point.Equal(high[i].Point) {
					t.Fatalf("trial %d differs: %v and %v", i, space.Assignments(low[i].Point), space.Assignments(high[i].Point))
				}
			}
		})
	}
}

func TestGarbledMetaIsTolerated(t *testing.T) {
	for _, name := range replaying() {
		for _, text := range []string{"", "7", "1 0-9999999999", "0 1-", "-3 4", "1 5,5,5,5", "2 0-3", "x y z"} {
			t.Run(name+", "+text, func(t *testing.T) {
				space := replayed(t)
				w := &workers{algorithm: newAlgorithm(t, name, space), parallel: 2, values: twoValues}
				w.study = suggest.Study{Space: space, Objectives: objectives(1, "")}
				w.play(t, 60)
				for i := range w.study.Trials {
					if i%3 == 0 {
						continue
					}
					meta := suggest.Meta{}
					for key := range w.study.Trials[i].Meta {
						meta[key] = text
					}
					w.study.Update(i, func(t *suggest.Trial) { t.Meta = meta })
				}
				fresh := newAlgorithm(t, name, space)
				for _, a := range []suggest.Algorithm{fresh, w.algorithm} {
					got, err := a.Suggest(t.Context(), w.study, 3)
					if err != nil || len(got) != 3 || !space.Contains(got[2].Point) {
						t.Fatalf("%d proposals, %v", len(got), err)
					}
				}
				one, _ := fresh.Suggest(t.Context(), w.study, 3)
				two, _ := w.algorithm.Suggest(t.Context(), w.study, 3)
				if diff := cmp.Diff(one, two, cmp.Comparer(suggest.Value.Equal)); diff != "" {
					t.Errorf("a cache changed the answer (-fresh +cached):\n%s", diff)
				}
			})
		}
	}
}

func TestHugeAndHostileStudies(t *testing.T) {
	for _, name := range replaying() {
		t.Run(name, func(t *testing.T) {
			space := replayed(t)
			w := &workers{algorithm: newAlgorithm(t, name, space), parallel: 4}
			w.study = suggest.Study{Space: space, Objectives: objectives(2, "")}
			w.study.Constraints = []suggest.Constraint{{Name: "c"}}
			count := 0
			w.values = func(p suggest.Point) []float64 {
				count++
				v := twoValues(p)
				return []float64{v[0] * 1e300, []float64{v[1] * -1e300, math.NaN(), math.Inf(1), 0}[count%4]}
			}
			w.play(t, 150)
		})
	}
}

func TestDeadlineStillAnswers(t *testing.T) {
	for _, name := range replaying() {
		t.Run(name, func(t *testing.T) {
			space := replayed(t)
			w := &workers{algorithm: newAlgorithm(t, name, space), parallel: 4, values: twoValues}
			w.study = suggest.Study{Space: space, Objectives: objectives(1, "")}
			w.play(t, 300) // more than are caught up with in any case
			passed, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
			defer cancel()
			got, err := newAlgorithm(t, name, space).Suggest(passed, w.study, 2)
			works := name != "regularized-evolution" // which has nothing to catch up with
			if err != nil || len(got) != 1 || works && got[0].Fallback != "deadline" {
				t.Errorf("after the deadline: %+v, %v", got, err)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if got, err := newAlgorithm(t, name, space).Suggest(ended, w.study, 2); err == nil || len(got) > 0 {
				t.Errorf("cancelled: %v, %v", got, err)
			}
		})
	}
}
