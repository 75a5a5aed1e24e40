package play

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// unpromised asks without any promise.
type unpromised struct{ suggest.Algorithm }

func (a unpromised) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	s.Record = nil
	return a.Algorithm.Suggest(ctx, s, n)
}

// A player promises that trials that have ended do not change. An answer does
// not depend on it.
func TestAPlayerKeepsItsPromises(t *testing.T) {
	for name, c := range map[string]struct {
		problem, regime, method string
		budget                  int
	}{
		"one after another": {"branin-2", Sequential, "cmaes", 40},
		"in batches":        {"branin-2", BatchOf8, "nsga2", 40},
		"at once":           {"branin-2", Async8, "tpe", 40},
		"fronts":            {"zdt1-12", Fronts, "nsga3", 40},
		"short trials":      {"curve-branin-2", Fidelity8, "asha", 12},
		"stopped trials":    {"curve-branin-2", Fidelity8, "random+medianstop", 12},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := problem.Find(nil, []string{c.problem})
			if err != nil {
				t.Fatal(err)
			}
			run := Run{Problem: problems[0], Regime: regime(t, c.regime), Budget: c.budget, Evaluate: Evaluator(problems[0], 0)}
			paths := map[bool]Path{}
			for _, promise := range []bool{false, true} {
				ours, err := NewOurs(c.method)
				if err != nil {
					t.Fatal(err)
				}
				ours.Prepared = true
				build, w := ours.New, &suggesttest.Witness{T: t}
				ours.New = func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
					w.Algorithm, err = build(space, settings)
					if promise {
						return w, err
					}
					return unpromised{w.Algorithm}, err
				}
				if paths[promise], _, err = Play(t.Context(), ours, run); err != nil {
					t.Fatal(err)
				}
				if promise && w.Promised < 8 {
					t.Errorf("only %d trials were settled at the end", w.Promised)
				}
			}
			if diff := cmp.Diff(paths[false], paths[true]); diff != "" {
				t.Errorf("the promise shows (-without +with):\n%s", diff)
			}
		})
	}
}
