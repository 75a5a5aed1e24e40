package stop

import (
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
)

// quantileRule stops a trial at step s when its best value so far is strictly
// worse than a quantile of what the trials that succeeded had up to s.
type quantileRule struct {
	share     float64 // of the other trials that are better than the quantile
	minTrials int
	start     int
	// had is what one of the others had.
	had func(c course) float64
	// limit says, for the user, what the quantile of so many trials is.
	limit func(trials int) string
}

// Stop implements suggest.Stopper.
func (q quantileRule) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	own := readCourse(o, t.Curve)
	if own.len() == 0 || own.reports() < q.start {
		return false, ""
	}
	if since, ok := own.diverged(); ok {
		return true, whyDiverged(since)
	}
	step := own.last()
	var losses []float64
	for other := range others(s, t) {
		if other.State != suggest.Succeeded {
			continue
		}
		if c := readCourse(o, other.Curve).upTo(step); c.len() > 0 {
			losses = append(losses, q.had(c))
		}
	}
	if len(losses) < q.minTrials {
		return false, ""
	}
	slices.Sort(losses)
	limit, best := quantile(losses, q.share), own.best()
	if best <= limit {
		return false, ""
	}
	return true, fmt.Sprintf("its best value up to step %d, %s, is worse than %s%s", step, text(o, best), text(o, limit), q.limit(len(losses)))
}

// Limit implements suggest.Limiter. It compares the first reports of the trials that
// succeeded, as many as a trial must have made.
func (q quantileRule) Limit(s suggest.Study) (value float64, from int, ok bool) {
	o := objective(s)
	var losses []float64
	for _, t := range s.Trials {
		if c := readCourse(o, t.Curve); t.State == suggest.Succeeded && c.len() > 0 {
			first, _ := c.split(min(q.start, c.len()))
			losses = append(losses, q.had(first))
		}
	}
	if len(losses) < q.minTrials {
		return 0, q.start, false
	}
	slices.Sort(losses)
	limit := quantile(losses, q.share)
	return o.Loss(limit), q.start, !math.IsInf(limit, 0)
}
