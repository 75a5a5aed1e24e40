package stop

import (
	"fmt"
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

// medianRegistration is the median stopping rule (Golovin et al., "Google Vizier:
// a service for black-box optimization", KDD 2017, section 3.2.2), which compares
// with the running averages of the others.
func medianRegistration() Registration {
	return Registration{
		Name:     "medianstop",
		Summary:  "Stops a trial whose best value is worse than the median of the other trials' averages up to the same step. Safe with any algorithm.",
		Settings: []suggest.SettingHelp{minTrialsSetting("3", "succeeded trials"), startStepSetting("4")},
		New: suggest.ReadingStopper(func(r *suggest.SettingsReader) suggest.Stopper {
			return quantileRule{
				share: 0.5, minTrials: count(r, minTrials, 3), start: count(r, startStep, 4), had: course.mean,
				limit: func(trials int) string {
					return fmt.Sprintf(", the median of the averages of %d trials up to that step", trials)
				},
			}
		}),
	}
}

// percentileRegistration is the percentile pruner of Akiba et al., "Optuna", KDD
// 2019, which compares with the values that the others had at the same step.
func percentileRegistration() Registration {
	return Registration{
		Name:    "percentile",
		Summary: "Stops a trial whose best value is not among the best percent of what the other trials had at the same step.",
		Settings: []suggest.SettingHelp{
			minTrialsSetting("5", "succeeded trials"),
			{Name: "percentile", Default: "25", Help: "Percentage of trials to keep, above 0 and at most 100."},
			startStepSetting("1"),
		},
		New: suggest.ReadingStopper(func(r *suggest.SettingsReader) suggest.Stopper {
			percent := r.Float("percentile", 25, suggest.Range{Min: 0, OpenMin: true, Max: 100})
			return quantileRule{
				share: percent / 100, minTrials: count(r, minTrials, 5), start: count(r, startStep, 1), had: course.final,
				limit: func(trials int) string {
					return fmt.Sprintf(", which the best %.4g %% of %d trials reach at that step", percent, trials)
				},
			}
		}),
	}
}

// Stop implements suggest.Stopper.
func (q quantileRule) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	own := readCourse(o, t.Curve)
	if own.len() == 0 || own.len() < q.start {
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
