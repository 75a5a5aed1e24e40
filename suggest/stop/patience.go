package stop

import (
	"fmt"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
)

// patience stops a trial that did not improve for a while. With another rule
// named, it only holds that one back: both must want to stop.
type patience struct {
	reports  int
	minDelta float64
	start    int
	rule     suggest.Stopper // nil: none
}

// patientRules are those that patience can hold back, with their defaults.
func patientRules() []Registration {
	return []Registration{ashaRegistration(), curveRegistration(), hyperbandRegistration(), medianRegistration(), percentileRegistration(), wilcoxonRegistration()}
}

func patienceRegistration() Registration {
	return Registration{
		Name:    "patience",
		Summary: "Stops a trial that has not improved for some reports. It can also hold back another rule until then.",
		New:     suggest.ReadingStopper(newPatience),
		Settings: []suggest.SettingHelp{
			{Name: "min_delta", Default: "0", Help: "What counts as an improvement must be larger than this, a number of at least 0."},
			{Name: "patience", Default: "10", Help: "How many reports in a row may bring no improvement, a whole number of at least 1."},
			{Name: "rule", Default: "none", Help: "Another rule, with its defaults, that must want to stop too: none, " + strings.Join(suggest.Names(patientRules()), ", ") + "."},
			startStepSetting("1"),
		},
	}
}

func newPatience(r *suggest.SettingsReader) suggest.Stopper {
	p := patience{
		reports:  count(r, "patience", 10),
		minDelta: r.Float("min_delta", 0, suggest.AtLeast(0)),
		start:    count(r, startStep, 1),
	}
	rules := patientRules()
	name := r.Choice("rule", "none", append([]string{"none"}, suggest.Names(rules)...)...)
	if rule, ok := suggest.Find(rules, name); ok {
		var err error
		if p.rule, err = rule.New(nil); err != nil {
			r.Reject(fmt.Errorf("rule %s: %w", name, err))
		}
	}
	return p
}

// Stop implements suggest.Stopper.
func (p patience) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	own := readCourse(o, t.Curve)
	before, recent := own.recent(p.reports)
	if own.reports() < p.start || before.len() == 0 {
		return false, ""
	}
	best := before.best()
	if improved := recent.best(); improved < best && best-improved > p.minDelta {
		return false, ""
	}
	why = fmt.Sprintf("its best value, %s, has not improved by more than %.4g in the %d reports since step %d", text(o, best), p.minDelta, p.reports, before.last())
	if p.rule == nil {
		return true, why
	}
	stop, other := p.rule.Stop(s, t)
	if !stop {
		return false, ""
	}
	return true, why + "; and " + other
}
