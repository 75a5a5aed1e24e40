package play

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// training is a candidate that a simulated worker trains, step by step.
type training struct {
	Candidate
	noise *rng.Stream
	// next is when its next step ends, and pace how long a step takes.
	next, pace float64
	step, last int
	losses     []float64 // without noise, of the steps that were asked for
	curve      []suggest.Sample
	done       bool
}

// curves plays with workers that train. Time is simulated; what is paid for is
// steps, and the budget is that of so many full trainings. A trial that goes on
// where another one ended pays from the first step on, as without checkpoints.
func (t *table) curves(ctx context.Context) error {
	cost, limit := 0, t.Budget*t.Problem.Curve.Steps
	var now float64
	var busy []*training
	for cost < limit {
		started, err := t.startTrainings(ctx, t.Regime.Parallel-len(busy), now)
		if err != nil && (len(busy) == 0 || !errors.Is(err, suggest.ErrExhausted)) {
			return err
		}
		if busy = append(busy, started...); len(busy) == 0 {
			return errShort
		}
		first := 0
		for i := range busy {
			if busy[i].next < busy[first].next {
				first = i
			}
		}
		w := busy[first]
		now, cost = w.next, cost+1
		if err := t.train(ctx, w, float64(cost)/float64(t.Problem.Curve.Steps)); err != nil {
			return err
		}
		if w.done {
			busy = append(busy[:first], busy[first+1:]...)
		}
	}
	return nil
}

func (t *table) startTrainings(ctx context.Context, n int, now float64) ([]*training, error) {
	if n == 0 {
		return nil, nil
	}
	got, err := t.player.Ask(ctx, n)
	var out []*training
	for _, c := range got {
		key := rng.NewKey(t.Seed, "training", t.Problem.Name)
		stream := key.Stream(uint64(c.Number))
		pace := math.Exp(0.2 * stream.NormFloat64())
		last := t.Problem.Curve.Steps
		if c.Resource > 0 {
			last = min(last, max(1, int(math.Round(c.Resource))))
		}
		out = append(out, &training{Candidate: c, noise: stream, next: now + pace, pace: pace, last: last})
	}
	return out, err
}

// loss after the step of a training, without noise. Real steps are asked for in threes, nines
// and so on, and never more than the trial has: most trials are short.
func (t *table) loss(ctx context.Context, w *training) (float64, error) {
	if t.Problem.Curve.At != nil {
		return t.Problem.Curve.At(w.Point, w.step), nil
	}
	if w.step > len(w.losses) {
		o, err := t.Train(ctx, w.Point, min(max(1, 3*len(w.losses)), w.last))
		if err != nil {
			return 0, err
		}
		w.losses = o.Curve
	}
	return w.losses[w.step-1], nil
}

// train takes one step of a training, which ended now, and tells the player.
func (t *table) train(ctx context.Context, w *training, cost float64) error {
	w.step++
	w.next += w.pace
	y, err := t.loss(ctx, w)
	if err != nil {
		return err
	}
	if math.IsNaN(y) {
		w.done = true
		return t.player.Tell(ctx, []Result{{Number: w.Number, State: suggest.Failed}})
	}
	y += t.Problem.Curve.Sigma * w.noise.NormFloat64()
	t.judge.seeStep(w.Point, y, cost)
	sample := suggest.Sample{Step: int64(w.step), Value: y}
	w.curve = append(w.curve, sample)
	stop, err := t.player.Report(ctx, w.Number, sample)
	if err != nil || !stop && w.step < w.last {
		return err
	}
	w.done = true
	r := Result{Number: w.Number, State: suggest.Succeeded, Values: []float64{y}, Curve: w.curve}
	if t.Problem.Task != nil { // as experiments have it by default
		r.Values[0] = slices.MinFunc(w.curve, func(a, b suggest.Sample) int { return cmp.Compare(a.Value, b.Value) }).Value
	}
	if w.step < w.last {
		r.State = suggest.Pruned
	}
	return t.player.Tell(ctx, []Result{r})
}
