package stop

import (
	"fmt"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
)

// medianStop is the median stopping rule (Golovin et al., "Google Vizier: a
// service for black-box optimization", KDD 2017, section 3.2.2): a trial stops
// at step s when its best value so far is strictly worse than the median of the
// running averages, up to s, of the trials that succeeded.
type medianStop struct {
	minTrials int
	start     int
}

func medianRegistration() Registration {
	return Registration{
		Name:     "medianstop",
		Summary:  "Stops a trial whose best value is worse than the median of the other trials' averages up to the same step. Safe with any algorithm.",
		New:      newMedianStop,
		Settings: []Setting{minTrialsSetting("3", "succeeded trials"), startStepSetting("4")},
	}
}

func newMedianStop(settings suggest.Settings) (suggest.Stopper, error) {
	r := settings.Read()
	m := medianStop{
		minTrials: int(r.Int(minTrials, 3, suggest.AtLeast(1))),
		start:     int(r.Int(startStep, 4, suggest.AtLeast(1))),
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

// Stop implements suggest.Stopper.
func (m medianStop) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	own := readCourse(o, t.Curve)
	if own.len() == 0 || own.len() < m.start {
		return false, ""
	}
	if since, ok := own.diverged(); ok {
		return true, whyDiverged(since)
	}
	step := own.last()
	var means []float64
	for other := range others(s, t) {
		if other.State != suggest.Succeeded {
			continue
		}
		if c := readCourse(o, other.Curve).upTo(step); c.len() > 0 {
			means = append(means, c.mean())
		}
	}
	if len(means) < m.minTrials {
		return false, ""
	}
	slices.Sort(means)
	median, best := quantile(means, 0.5), own.best()
	if best <= median {
		return false, ""
	}
	return true, fmt.Sprintf("its best value up to step %d, %s, is worse than %s, the median of the averages of %d trials up to that step",
		step, text(o, best), text(o, median), len(means))
}
