package play

import (
	"context"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

// Learner evaluates the problems that are trainings, in another program.
type Learner struct{ Process }

type lesson struct {
	Task   *problem.Task  `json:"task"`
	Params map[string]any `json:"params"`
}

// Evaluator of a problem.
func (l *Learner) Evaluator(p *problem.Problem, space suggest.Space) Evaluate {
	return func(ctx context.Context, _ int, point suggest.Point) (problem.Outcome, error) {
		if l.cmd == nil {
			if err := l.start(); err != nil {
				return problem.Outcome{}, err
			}
		}
		a, err := l.call(ctx, lesson{Task: p.Task, Params: WireParams(space, point)})
		if err != nil {
			return problem.Outcome{}, err
		}
		return problem.Outcome{Values: a.Values, Failed: a.Failed || len(a.Values) == 0}, nil
	}
}
