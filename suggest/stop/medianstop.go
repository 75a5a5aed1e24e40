package stop

import (
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
)

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
