package play

import (
	"context"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

// purse notes how many trials it is told that there will be.
type purse struct {
	space suggest.Space
	told  *int
}

func (p purse) Suggest(_ context.Context, s suggest.Study, _ int) ([]suggest.Proposal, error) {
	*p.told = s.Budget
	return []suggest.Proposal{{Point: p.space.Decode(make([]float64, p.space.Len())), Resource: 9}}, nil
}

// The budget of a game with curves pays for steps. An algorithm that took it for
// the number of trials would leave out what it has no trials for.
func TestHowManyTrialsThereWillBeIsOnlySaidWhereItIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		problem, regime string
		want            int
	}{
		"each evaluation is a trial":                {"branin-2", Sequential, 7},
		"several objectives, and the same":          {"zdt1-12", Fronts, 7},
		"trials may be short, so there may be more": {"curve-branin-2", Fidelity8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := problem.Find(nil, []string{c.problem})
			if err != nil {
				t.Fatal(err)
			}
			told := -1
			ours := &Ours{New: func(space suggest.Space, _ suggest.Settings) (suggest.Algorithm, error) {
				return purse{space, &told}, nil
			}}
			run := Run{Problem: problems[0], Regime: regime(t, c.regime), Budget: 7, Evaluate: Evaluator(problems[0], 0)}
			if _, err := Play(t.Context(), ours, run); err != nil {
				t.Fatal(err)
			}
			if told != c.want {
				t.Errorf("told of %d trials; want %d", told, c.want)
			}
		})
	}
}
