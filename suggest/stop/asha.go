package stop

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// asha is asynchronous successive halving of the stopping type (Li et al., "A
// system for massively parallel hyperparameter tuning", MLSys 2020; the rule at
// a rung as in Tiao et al., "Asynchronous multi-fidelity...", 2020): at each of
// the steps r_min, r_min*eta, r_min*eta^2, ... a trial goes on when its value
// is within the best 1/eta of all the values that trials had there, its own
// included.
//
// A trial is asked again at each report. From the second one after a rung on,
// its best value since the rung is compared, so what got past a rung early is
// stopped later only when it did not improve beyond those that came after.
//
// The paper has eta 3 or 4 and r_min 1. Halving from a ninth of the end on decides later, at
// more rungs; what was measured is in docs/benchmarks.md.
//
// With brackets it is the rule hyperband.
type asha struct {
	rungs     rungs
	minTrials int
	brackets  bool
}

func ashaRegistration() Registration {
	return Registration{
		Name:    "asha",
		Summary: "Stops, at steps that grow geometrically, all but the best 1/eta of the trials that came so far. The strongest saving, with any number of parallel trials.",
		New:     suggest.ReadingStopper(func(r *suggest.SettingsReader) suggest.Stopper { return readASHA(r, false) }),
		Settings: []suggest.SettingHelp{
			etaSetting("2"),
			minTrialsSetting("2", "values at a rung, the trial's own included,"),
			rMaxSetting("no end", "At and after it nothing is stopped."),
			rMinSetting("a ninth of r_max; without it, of the median of the last steps of the trials that succeeded"),
		},
	}
}

func readASHA(r *suggest.SettingsReader, brackets bool) asha {
	first, eta := int64(0), int64(2) // 0: derived from the end
	if brackets {
		first, eta = 1, 3
	}
	return asha{rungs: readRungs(r, first, eta), minTrials: count(r, minTrials, 2), brackets: brackets}
}

// Stop implements suggest.Stopper.
func (a asha) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	if a.rungs.end > 0 && slices.ContainsFunc(t.Curve, func(p suggest.Sample) bool { return p.Step >= a.rungs.end }) {
		return false, "" // what a whole trial costs is paid
	}
	c := contest{rungs: a.rungs, minTrials: a.minTrials, name: "rung", takesPart: func(int) bool { return true }}
	if !a.brackets {
		if c.rungs.first == 0 {
			end := cmp.Or(c.rungs.end, typicalEnd(s))
			if end == 0 {
				return false, "" // how long a trial is, is not known yet
			}
			c.rungs.first = max(1, end/firstRung)
		}
		return c.judge(s, t)
	}
	if c.rungs.end == 0 {
		c.rungs.end = horizon(s)
	}
	brackets := c.rungs.brackets()
	if len(brackets) == 0 {
		return false, ""
	}
	key := rng.NewKey(s.Seed, "hyperband", "bracket")
	bracket := draw(key, t.Number, brackets)
	if c.rungs.first = brackets[bracket].first; c.rungs.first >= c.rungs.end {
		return false, ""
	}
	c.name = fmt.Sprintf("rung of bracket %d", len(brackets)-1-bracket)
	c.takesPart = func(number int) bool { return draw(key, number, brackets) == bracket }
	return c.judge(s, t)
}

// firstRung is how many times the first rung goes into a whole trial.
const firstRung = 9

// typicalEnd is the median of the last steps of the trials that succeeded, so that a trial
// with more steps than the others changes little; 0: none has.
func typicalEnd(s suggest.Study) int64 {
	var ends []int64
	for _, t := range s.Trials {
		if t.State != suggest.Succeeded || len(t.Curve) == 0 {
			continue
		}
		ends = append(ends, slices.MaxFunc(t.Curve, func(a, b suggest.Sample) int { return cmp.Compare(a.Step, b.Step) }).Step)
	}
	if len(ends) == 0 {
		return 0
	}
	slices.Sort(ends)
	return max(1, ends[len(ends)/2])
}

// rungs are the steps first, first*eta, first*eta^2, ... below end.
type rungs struct {
	first, eta, end int64 // end 0: no end
}

const (
	settingEta  = "eta"
	settingRMin = "r_min"
	settingRMax = "r_max"
	// maxResource bounds steps, so that products stay exact.
	maxResource = 1 << 53
)

func etaSetting(byDefault string) suggest.SettingHelp {
	return suggest.SettingHelp{Name: settingEta, Default: byDefault, Help: "One in eta trials goes on at each rung, a whole number of at least 2."}
}

func rMinSetting(byDefault string) suggest.SettingHelp {
	return suggest.SettingHelp{Name: settingRMin, Default: byDefault, Help: "The step of the first rung, a whole number of at least 1."}
}

func rMaxSetting(byDefault, more string) suggest.SettingHelp {
	return suggest.SettingHelp{Name: settingRMax, Default: byDefault, Help: "The step at which a whole trial ends, a whole number of at least 1. " + more}
}

func readRungs(r *suggest.SettingsReader, first, eta int64) rungs {
	whole := suggest.Range{Min: 1, Max: maxResource}
	l := rungs{
		first: r.Int(settingRMin, first, whole),
		eta:   r.Int(settingEta, eta, suggest.Range{Min: 2, Max: maxResource}),
		end:   r.Int(settingRMax, 0, whole),
	}
	if r.Has(settingRMin) && l.end > 0 && l.first > l.end {
		r.Fail(settingRMin, "is %d, above r_max, %d; lower it", l.first, l.end)
	}
	return l
}

// reached is the highest rung up to the step.
func (l rungs) reached(step int64) (rung int64, ok bool) {
	if l.end > 0 {
		step = min(step, l.end-1)
	}
	if step < l.first {
		return 0, false
	}
	rung = l.first
	for rung <= step/l.eta {
		rung *= l.eta
	}
	return rung, true
}

// contest compares the trials that take part in it at each rung.
type contest struct {
	rungs     rungs
	minTrials int
	name      string                // of a rung, for the user
	takesPart func(number int) bool // among the other trials
}

// judge says whether t stops at the highest rung that it has reached.
func (c contest) judge(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	own := readCourse(o, t.Curve)
	if own.len() == 0 || t.Resource > 0 && float64(own.last()) >= t.Resource {
		return false, "" // at its end it is not stopped any more
	}
	rung, ok := c.rungs.reached(own.last())
	family := lineage{study: s}
	if !ok || family.continues(t) >= float64(rung) {
		return false, ""
	}
	if since, ok := own.diverged(); ok { // where others have too, it ties with them
		return true, whyDiverged(since)
	}
	// Reports that skip a rung: the first one after it counts.
	best := own.from(rung).best()
	losses := []float64{best}
	for other := range others(s, t) {
		if !c.takesPart(other.Number) || family.continues(other) >= float64(rung) {
			continue
		}
		if loss, ok := lossAt(o, other, rung, own.last()); ok {
			losses = append(losses, loss)
		}
	}
	if len(losses) < max(2, c.minTrials) {
		return false, ""
	}
	slices.Sort(losses)
	limit := quantile(losses, 1/float64(c.rungs.eta))
	if best <= limit {
		return false, ""
	}
	return true, fmt.Sprintf("its value %s at the %s of step %d is worse than %s, which the best 1/%d of %d trials reach there",
		text(o, best), c.name, rung, text(o, limit), c.rungs.eta, len(losses))
}

// lossAt is the loss of the first report at or after the rung, and not after the
// step now, which the trial that is judged has come to: of sparse reports the
// first one may be far behind the rung, where every trial is better. A trial
// that ended well before the rung, although it was free to go there, is as good
// there as it was at its end.
func lossAt(o suggest.Objective, t *suggest.Trial, rung, now int64) (loss float64, ok bool) {
	c := readCourse(o, t.Curve)
	if c.len() == 0 {
		return 0, false
	}
	if after := c.from(rung); after.len() > 0 {
		return after.loss(0), after.step(0) <= now
	}
	free := t.Resource <= 0 || t.Resource >= float64(rung)
	return c.final(), t.State == suggest.Succeeded && free
}

// lineage knows which trials continue others.
type lineage struct {
	study     suggest.Study
	resources map[int]float64 // by trial number; nil until it is asked for
}

// continues is the resource up to which another trial tried the point of t
// already and was chosen to go on; 0 when there is none. Up to there t is
// neither judged nor counted, since that would count the point twice.
func (l *lineage) continues(t *suggest.Trial) float64 {
	text, ok := t.Meta[suggest.MetaParent]
	if !ok {
		return 0
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	if l.resources == nil {
		l.resources = make(map[int]float64, len(l.study.Trials))
		for _, t := range l.study.Trials {
			l.resources[t.Number] = t.Resource
		}
	}
	return l.resources[number]
}

// horizon is the last step of the longest trial that succeeded; 0 when there is
// none.
func horizon(s suggest.Study) int64 {
	end := int64(0)
	for _, t := range s.Trials {
		if t.State != suggest.Succeeded {
			continue
		}
		for _, sample := range t.Curve {
			end = max(end, sample.Step)
		}
	}
	return end
}
