package stop_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/stop"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// holdToContract holds a stopping rule to the contract of suggest.Stopper.
func holdToContract(t *testing.T, r stop.Registration) {
	checks := []struct {
		name  string
		check func(*testing.T, stop.Registration)
	}{
		{"equal arguments give equal answers", stopperIsPure},
		{"maximize mirrors minimize", stopperMirrors},
		{"studies of all sorts are tolerated", stopperToleratesOddStudies},
		{"too little evidence stops nothing", stopperWantsEvidence},
		{"a tie stops nothing", stopperLetsTiesRun},
		{"the best trial runs", stopperLetsTheBestRun},
		{"what is hopeless stops, and the reason is told", stopperStopsTheHopeless},
		{"one value that is not a number does not stop the others", stopperSurvivesOneNaN},
		{"settings that are wrong are named", stopperNamesWrongSettings},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.check(t, r) })
	}
}

func stopper(t *testing.T, r stop.Registration) suggest.Stopper {
	t.Helper()
	rule, err := r.New(nil)
	if err != nil {
		t.Fatalf("without settings: %v", err)
	}
	return rule
}

// curvesTrials is how many trials a study with curves has.
const curvesTrials = 40

// curvesEnd is the last step of the curves of the suite.
const curvesEnd = 81

// fallingCurve goes from about 1 to the limit by a power law, up to the step.
func fallingCurve(limit, noise float64, end int64, stream *rng.Stream) []suggest.Sample {
	var out []suggest.Sample
	for step := int64(1); step <= end; step++ {
		out = append(out, suggest.Sample{Step: step, Value: limit + (1-limit)/math.Sqrt(float64(step)) + noise*stream.NormFloat64()})
	}
	return out
}

// curvesStudy has trials that ended in all ways, a few of them with reports that
// are missing, repeated, out of order or not numbers; its last ten are running.
func curvesStudy(seed uint64) suggest.Study {
	s := suggest.Study{Seed: seed, Objectives: []suggest.Objective{{Name: "loss"}}}
	key := rng.NewKey(seed, "suggesttest", "curves")
	for number := range curvesTrials {
		stream := key.Stream(uint64(number))
		t := &suggest.Trial{Number: number, State: suggest.Succeeded}
		limit, end := stream.Float64(), int64(curvesEnd)
		switch kind := stream.Uint64N(8); {
		case number >= curvesTrials-10:
			t.State, end = suggest.Running, 1+int64(stream.Uint64N(curvesEnd))
		case kind == 0:
			t.State, end = suggest.Pruned, 1+int64(stream.Uint64N(curvesEnd))
		case kind == 1:
			t.State, end = suggest.Failed, 1+int64(stream.Uint64N(curvesEnd))
		case kind == 2:
			end = curvesEnd / 2
		}
		t.Curve = fallingCurve(limit, 0.02, end, stream)
		if t.State == suggest.Succeeded {
			t.Values = []float64{t.Curve[len(t.Curve)-1].Value}
		}
		t.Curve = disturbed(t.Curve, stream)
		s.Trials = append(s.Trials, t)
	}
	return s
}

// disturbed is one curve in three with something wrong.
func disturbed(c []suggest.Sample, stream *rng.Stream) []suggest.Sample {
	at := int(stream.Uint64N(uint64(len(c))))
	switch stream.Uint64N(12) {
	case 0:
		c[at].Value = math.NaN()
	case 1:
		c[at].Value = math.Inf(1)
	case 2:
		return append(c, c[:at]...) // a retry
	case 3:
		return slices.Delete(c, at/2, at)
	}
	return c
}

func stopperIsPure(t *testing.T, r stop.Registration) {
	rule := stopper(t, r)
	for seed := range uint64(20) {
		s := curvesStudy(seed)
		before := fmt.Sprint(deref(s.Trials)) // as text, since NaN differs from NaN
		for _, trial := range s.Trials[30:] {
			stopped, why := rule.Stop(s, trial)
			if again, because := rule.Stop(s, trial); again != stopped || because != why {
				t.Errorf("seed %d, trial %d: %v %q, then %v %q", seed, trial.Number, stopped, why, again, because)
			}
			if again, because := stopper(t, r).Stop(curvesStudy(seed), trial); again != stopped || because != why {
				t.Errorf("seed %d, trial %d: %v %q, by a fresh rule %v %q", seed, trial.Number, stopped, why, again, because)
			}
			absent := s
			absent.Trials = slices.DeleteFunc(slices.Clone(s.Trials), func(o *suggest.Trial) bool { return o.Number == trial.Number })
			if again, because := rule.Stop(absent, trial); again != stopped || because != why {
				t.Errorf("seed %d, trial %d: %v %q, when the study has not got it %v %q", seed, trial.Number, stopped, why, again, because)
			}
		}
		if fmt.Sprint(deref(s.Trials)) != before {
			t.Errorf("seed %d: the study was modified", seed)
		}
	}
}

func deref(trials []*suggest.Trial) []suggest.Trial {
	out := make([]suggest.Trial, len(trials))
	for i, t := range trials {
		out[i] = *t
	}
	return out
}

// mirror negates all values and maximizes.
func mirror(s suggest.Study) suggest.Study {
	s.Objectives = []suggest.Objective{{Name: "score", Direction: suggest.Maximize}}
	return suggesttest.Edited(s, func(_ int, t *suggest.Trial) {
		t.Curve, t.Values = slices.Clone(t.Curve), slices.Clone(t.Values)
		for j := range t.Curve {
			t.Curve[j].Value = -t.Curve[j].Value
		}
		for j := range t.Values {
			t.Values[j] = -t.Values[j]
		}
	})
}

func stopperMirrors(t *testing.T, r stop.Registration) {
	rule := stopper(t, r)
	for seed := range uint64(30) {
		s := curvesStudy(seed)
		m := mirror(s)
		for i := 30; i < 40; i++ {
			stopped, why := rule.Stop(s, s.Trials[i])
			if mirrored, because := rule.Stop(m, m.Trials[i]); mirrored != stopped {
				t.Errorf("seed %d, trial %d: %v %q, mirrored %v %q", seed, i, stopped, why, mirrored, because)
			}
		}
	}
}

func stopperToleratesOddStudies(t *testing.T, r stop.Registration) {
	rule := stopper(t, r)
	running := &suggest.Trial{Number: 99, State: suggest.Running, Curve: fallingCurve(0.5, 0, 40, rng.New(1, "odd", 1, "curve"))}
	changed := func(change func(*suggest.Trial)) suggest.Study {
		s := curvesStudy(1)
		for _, trial := range s.Trials {
			change(trial)
		}
		return s
	}
	valued := func(value float64) suggest.Study {
		return changed(func(trial *suggest.Trial) {
			for i := range trial.Curve {
				trial.Curve[i].Value = value
			}
		})
	}
	studies := map[string]suggest.Study{
		"empty":                    {},
		"no objective":             {Trials: curvesStudy(1).Trials},
		"no curves":                changed(func(trial *suggest.Trial) { trial.Curve = nil }),
		"no values":                changed(func(trial *suggest.Trial) { trial.Values = nil }),
		"one trial":                {Trials: curvesStudy(1).Trials[:1]},
		"all NaN":                  valued(math.NaN()),
		"all infinite":             valued(math.Inf(1)),
		"all infinitely good":      valued(math.Inf(-1)),
		"all equal":                valued(1),
		"all huge":                 valued(math.MaxFloat64),
		"all hugely good":          valued(-math.MaxFloat64),
		"negative steps":           changed(func(trial *suggest.Trial) { shift(trial.Curve, -1000) }),
		"enormous steps":           changed(func(trial *suggest.Trial) { shift(trial.Curve, math.MaxInt64-100) }),
		"one step for all reports": changed(func(trial *suggest.Trial) { flatten(trial.Curve) }),
		"odd resources":            changed(func(trial *suggest.Trial) { trial.Resource = math.NaN() }),
		"odd metadata":             changed(func(trial *suggest.Trial) { trial.Meta = suggest.Meta{"parent": "x", "rung": "-1", "bracket": ""} }),
	}
	for name, s := range studies {
		for _, trial := range append([]*suggest.Trial{running, {}, {Number: -1}}, s.Trials...) {
			if stopped, why := rule.Stop(s, trial); stopped != (why != "") {
				t.Errorf("%s, trial %d: %v, because %q", name, trial.Number, stopped, why)
			}
		}
	}
}

func shift(c []suggest.Sample, by int64) {
	for i := range c {
		c[i].Step += by
	}
}

func flatten(c []suggest.Sample) {
	for i := range c {
		c[i].Step = 7
	}
}

func stopperWantsEvidence(t *testing.T, r stop.Registration) {
	rule := stopper(t, r)
	full := curvesStudy(3)
	curve := fallingCurve(0.9, 0, curvesEnd, rng.New(1, "evidence", 1, "curve"))
	cases := map[string]struct {
		study suggest.Study
		trial suggest.Trial
	}{
		"a trial without reports":       {full, suggest.Trial{Number: 99}},
		"an only trial that improves":   {suggest.Study{}, suggest.Trial{Number: 0, Curve: curve}},
		"nothing finished nor reported": {suggest.Study{Trials: []*suggest.Trial{{Number: 0, State: suggest.Running}, {Number: 1, State: suggest.Pending}}}, suggest.Trial{Number: 2, Curve: curve}},
		"others that failed at once":    {suggest.Study{Trials: []*suggest.Trial{{Number: 0, State: suggest.Failed}, {Number: 1, State: suggest.Killed}}}, suggest.Trial{Number: 2, Curve: curve}},
	}
	for name, c := range cases {
		for n := 0; n <= len(c.trial.Curve); n++ {
			trial := c.trial
			trial.Curve = trial.Curve[:n]
			if stopped, why := rule.Stop(c.study, &trial); stopped {
				t.Errorf("%s, after %d reports: %s", name, n, why)
			}
		}
	}
}

// identical is a study of succeeded trials with the same falling curve.
func identical(n int) suggest.Study {
	var s suggest.Study
	for number := range n {
		curve := fallingCurve(0.5, 0, curvesEnd, rng.New(1, "identical", number, "curve"))
		s.Trials = append(s.Trials, &suggest.Trial{Number: number, State: suggest.Succeeded, Curve: curve, Values: []float64{curve[len(curve)-1].Value}})
	}
	return s
}

// followed says at which step the rule stops the trial, if at all.
func followed(rule suggest.Stopper, s suggest.Study, trial suggest.Trial) (step int64, why string) {
	curve := trial.Curve
	for n := range curve {
		trial.Curve = curve[:n+1]
		if stopped, why := rule.Stop(s, &trial); stopped {
			return curve[n].Step, why
		}
	}
	return 0, ""
}

func stopperLetsTiesRun(t *testing.T, r stop.Registration) {
	s := identical(20)
	for number := 20; number < 30; number++ {
		if step, why := followed(stopper(t, r), s, suggest.Trial{Number: number, State: suggest.Running, Curve: s.Trials[0].Curve}); why != "" {
			t.Errorf("trial %d at step %d: %s", number, step, why)
		}
	}
}

func stopperLetsTheBestRun(t *testing.T, r stop.Registration) {
	for seed := range uint64(10) {
		s := curvesStudy(seed)
		for number := 40; number < 50; number++ {
			best := suggest.Trial{Number: number, State: suggest.Running, Curve: fallingCurve(-0.5, 0, curvesEnd, rng.New(seed, "best", number, "curve"))}
			shiftValues(best.Curve, -0.2)
			if step, why := followed(stopper(t, r), s, best); why != "" {
				t.Errorf("seed %d, trial %d at step %d: %s", seed, number, step, why)
			}
		}
	}
}

func shiftValues(c []suggest.Sample, by float64) {
	for i := range c {
		c[i].Value += by
	}
}

func stopperStopsTheHopeless(t *testing.T, r stop.Registration) {
	rule, count := stopper(t, r), 0
	for number := 40; number < 50; number++ {
		trial := suggest.Trial{Number: number, State: suggest.Running}
		for step := int64(1); step < curvesEnd; step++ {
			value := 3.0
			if step > curvesEnd/2 {
				value = math.NaN()
			}
			trial.Curve = append(trial.Curve, suggest.Sample{Step: step, Value: value})
		}
		s := curvesStudy(4)
		_, why := followed(rule, s, trial)
		if why == "" {
			continue
		}
		count++
		if strings.TrimSpace(why) != why || strings.HasSuffix(why, ".") || strings.Contains(why, "%!") || strings.Contains(why, "Inf") {
			t.Errorf("trial %d: the reason is %q", number, why)
		}
	}
	if count == 0 {
		t.Error("none of ten hopeless trials was stopped")
	}
}

func stopperSurvivesOneNaN(t *testing.T, r stop.Registration) {
	s := identical(20)
	s.Trials[3].Curve[2].Value = math.NaN()
	s.Trials[4].Curve, s.Trials[4].Values = []suggest.Sample{{Step: 1, Value: math.NaN()}}, []float64{math.NaN()}
	for number := 20; number < 30; number++ {
		if step, why := followed(stopper(t, r), s, suggest.Trial{Number: number, State: suggest.Running, Curve: s.Trials[0].Curve}); why != "" {
			t.Errorf("trial %d at step %d: %s", number, step, why)
		}
	}
}

func stopperNamesWrongSettings(t *testing.T, r stop.Registration) {
	suggesttest.SettingsAreNamed(t, r.Settings, []string{"", "no such value", "NaN", "1e999"}, func(settings suggest.Settings) error {
		rule, err := r.New(settings)
		if rule != nil && err != nil {
			t.Errorf("%v: both a rule and %v", settings, err)
		}
		return err
	})
}
