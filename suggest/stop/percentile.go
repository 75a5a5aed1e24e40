package stop

import (
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
)

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
