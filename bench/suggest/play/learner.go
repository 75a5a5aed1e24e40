package play

import (
	"context"
	"fmt"
	"math"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

// Learner evaluates the problems that are trainings, in another program.
type Learner struct{ Process }

type lesson struct {
	Task   *problem.Task  `json:"task"`
	Params map[string]any `json:"params"`
	// Steps whose curve is wanted, the first ones of a training; 0: its end alone.
	Steps int `json:"steps,omitempty"`
}

// Evaluator of a problem.
func (l *Learner) Evaluator(p *problem.Problem, space suggest.Space) Evaluate {
	train := l.Trainer(p, space)
	return func(ctx context.Context, _ int, point suggest.Point) (problem.Outcome, error) {
		return train(ctx, point, p.Steps())
	}
}

// Trainer of a problem. A training goes on from where it was left.
func (l *Learner) Trainer(p *problem.Problem, space suggest.Space) Train {
	return func(ctx context.Context, point suggest.Point, steps int) (problem.Outcome, error) {
		if l.cmd == nil {
			if err := l.start(); err != nil {
				return problem.Outcome{}, err
			}
		}
		a, err := l.call(ctx, lesson{Task: p.Task, Params: WireParams(space, point), Steps: steps})
		if err != nil {
			return problem.Outcome{}, err
		}
		o := problem.Outcome{Values: a.Values, Failed: a.Failed || len(a.Values) == 0}
		for _, y := range a.Curve {
			if y == nil {
				o.Curve = append(o.Curve, math.NaN())
			} else {
				o.Curve = append(o.Curve, *y)
			}
		}
		if steps > 0 && len(o.Curve) != steps {
			return problem.Outcome{}, fmt.Errorf("%s: a curve of %d steps, want %d", p.Name, len(o.Curve), steps)
		}
		return o, nil
	}
}
