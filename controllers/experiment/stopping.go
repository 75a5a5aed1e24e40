package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

const (
	// judgeEvery is how often the curves of running trials are looked at.
	judgeEvery = 2 * time.Second
	// judgeShare bounds that to one part in so many of the time.
	judgeShare = 20
)

// verdict is that a trial is not worth going on with.
type verdict struct {
	trial *v1beta1.Trial
	why   string
}

// stopEarly asks the trials to stop that the experiment's early stopping rule
// gives up, and says when to look again; 0 when there is nothing to look at.
func (c *Controller) stopEarly(ctx context.Context, exp *v1beta1.Experiment, trials []*v1beta1.Trial) (time.Duration, error) {
	if exp.Spec.EarlyStopping == nil || exp.Spec.Objective == nil || count(trials).active() == 0 {
		return 0, nil
	}
	m, err := c.searcher(exp)
	if err != nil {
		return 0, nil //nolint:nilerr // grow says so
	}
	of, done := c.pasts.use(exp)
	defer done()
	began := c.Now()
	if left := max(judgeEvery, of.cost*judgeShare) - began.Sub(of.judged); left > 0 {
		return left, nil
	}
	if err := c.remember(ctx, exp, of, trials); err != nil {
		return 0, err
	}
	live, err := c.live(ctx, exp, trials)
	if err != nil {
		return 0, err
	}
	for _, v := range m.hopeless(exp, trials, of.curves, live) {
		if err := c.ask(ctx, v.trial, v1beta1.AnnotationStopEarly, v.why); err != nil {
			return 0, err
		}
		c.Metrics.stoppedEarly(exp.Spec.EarlyStopping.AlgorithmName)
	}
	of.judged = c.Now()
	of.cost = of.judged.Sub(began)
	return max(judgeEvery, of.cost*judgeShare), nil
}

func (c *Controller) read(ctx context.Context, exp *v1beta1.Experiment, t *v1beta1.Trial) ([]sample, error) {
	var read curve
	err := c.Scan(ctx, string(t.UID), []string{exp.Spec.Objective.ObjectiveMetricName}, func(a collector.Attempt, p collector.Point) error {
		read.add(a, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the curve of trial %s: %w", t.Name, err)
	}
	return read.samples(), nil
}
