package experiment

import (
	"context"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	// judgeEvery is how often the curves of running trials are looked at.
	judgeEvery = 2 * time.Second
	judgeShare = 20
)

// stopEarly asks the trials to stop that the experiment's early stopping rule
// gives up, and says when to look again; 0 when there is nothing to look at.
func (c *Controller) stopEarly(ctx context.Context, exp *v1beta1.Experiment, s *kept, active bool) (time.Duration, error) {
	if !s.StopsEarly() || !active {
		return 0, nil
	}
	began := c.Now()
	if left := max(judgeEvery, s.judging*judgeShare) - began.Sub(s.judged); left > 0 {
		return left, nil
	}
	stops, spared, err := s.Judge(ctx, c.Scan)
	if err != nil {
		return 0, err
	}
	for _, v := range stops {
		if err := c.ask(ctx, v.Trial, v1beta1.AnnotationStopEarly, v.Why); err != nil {
			return 0, err
		}
		c.Metrics.pruned.WithLabelValues(exp.Spec.EarlyStopping.AlgorithmName, "stop").Inc()
	}
	c.Metrics.pruned.WithLabelValues(exp.Spec.EarlyStopping.AlgorithmName, "continue").Add(float64(spared))
	s.judged = c.Now()
	s.judging = s.judged.Sub(began)
	return max(judgeEvery, s.judging*judgeShare), nil
}
