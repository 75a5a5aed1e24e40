package stop

import (
	"fmt"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
)

// percentile keeps the trials whose best value so far is among the best
// percent of the values that the succeeded trials had at the same step (the
// percentile pruner of Akiba et al., "Optuna", KDD 2019).
type percentile struct {
	share     float64
	minTrials int
	start     int
}

func percentileRegistration() Registration {
	return Registration{
		Name:    "percentile",
		Summary: "Stops a trial whose best value is not among the best percent of what the other trials had at the same step.",
		New:     newPercentile,
		Settings: []Setting{
			minTrialsSetting("5", "succeeded trials"),
			{Name: "percentile", Default: "25", Help: "Percentage of trials to keep, above 0 and at most 100."},
			startStepSetting("1"),
		},
	}
}

func newPercentile(settings suggest.Settings) (suggest.Stopper, error) {
	r := settings.Read()
	p := percentile{
		share:     r.Float("percentile", 25, suggest.Range{Min: 0, OpenMin: true, Max: 100}) / 100,
		minTrials: int(r.Int(minTrials, 5, suggest.AtLeast(1))),
		start:     int(r.Int(startStep, 1, suggest.AtLeast(1))),
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// Stop implements suggest.Stopper.
func (p percentile) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	own := readCourse(o, t.Curve)
	if own.len() == 0 || own.len() < p.start {
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
			losses = append(losses, c.final())
		}
	}
	if len(losses) < p.minTrials {
		return false, ""
	}
	slices.Sort(losses)
	limit, best := quantile(losses, p.share), own.best()
	if best <= limit {
		return false, ""
	}
	return true, fmt.Sprintf("its best value up to step %d, %s, is worse than %s, which the best %.4g %% of %d trials reach at that step",
		step, text(o, best), text(o, limit), 100*p.share, len(losses))
}
