package stop

import (
	"fmt"
	"math"

	"github.com/vernier-ml/vernier/suggest"
)

// threshold stops a trial whose last value is outside of fixed bounds or no
// finite number.
type threshold struct {
	lower, upper float64
	start        int
}

func thresholdRegistration() Registration {
	return Registration{
		Name:    "threshold",
		Summary: "Stops a trial whose value leaves fixed bounds or is no number any more. Without bounds it stops only what diverged.",
		New:     suggest.ReadingStopper(newThreshold),
		Settings: []suggest.SettingHelp{
			{Name: "lower", Default: "no bound", Help: "The smallest value of the objective that is allowed, a number."},
			startStepSetting("1"),
			{Name: "upper", Default: "no bound", Help: "The largest value of the objective that is allowed, a number."},
		},
	}
}

func newThreshold(r *suggest.SettingsReader) suggest.Stopper {
	finite := suggest.Range{Min: math.Inf(-1), Max: math.Inf(1)}
	t := threshold{
		lower: r.Float("lower", math.Inf(-1), finite),
		upper: r.Float("upper", math.Inf(1), finite),
		start: count(r, startStep, 1),
	}
	if t.lower > t.upper {
		r.Fail("lower", "is %g, above upper, %g; swap them", t.lower, t.upper)
	}
	return t
}

// Stop implements suggest.Stopper.
func (r threshold) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	own := readCourse(o, t.Curve)
	if own.len() == 0 || own.reports() < r.start {
		return false, ""
	}
	step, value := own.last(), o.Loss(own.final())
	switch {
	case math.IsInf(value, 0):
		return true, fmt.Sprintf("its value at step %d is not a finite number", step)
	case value < r.lower:
		return true, fmt.Sprintf("its value at step %d, %.4g, is below %.4g", step, value, r.lower)
	case value > r.upper:
		return true, fmt.Sprintf("its value at step %d, %.4g, is above %.4g", step, value, r.upper)
	}
	return false, ""
}
