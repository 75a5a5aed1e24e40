package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// lossAndAccuracy is an experiment with two objectives, of whose three trials the
// first two are on the front.
func lossAndAccuracy() (*v1beta1.Experiment, []v1beta1.Trial) {
	e := anExperiment()
	e.Spec.Objectives = []v1beta1.ObjectiveMetric{
		{ObjectiveMetricName: "loss", Type: v1beta1.ObjectiveTypeMinimize}, {ObjectiveMetricName: "acc", Type: v1beta1.ObjectiveTypeMaximize},
	}
	trials := []v1beta1.Trial{
		aTrial(1, v1beta1.TrialSucceeded, "0.5"), aTrial(2, v1beta1.TrialSucceeded, "0.25"), aTrial(3, v1beta1.TrialSucceeded, "0.75"),
	}
	withBest(e, trials[1])
	e.Status.ParetoTrialList = []string{"charlm-0001", "charlm-0002"}
	return e, trials
}

func TestResultOfSeveralObjectives(t *testing.T) {
	e, trials := lossAndAccuracy()
	var out bytes.Buffer
	printResult(&out, newExperimentView(e, trials))
	requireText(t, out.String(), "2 trials that none beats in all of loss, acc:", "TRIAL", "LOSS", "ACC", "charlm-0001", "0.9", "Of these charlm-0002 has the best loss.")
	if strings.Contains(out.String(), "charlm-0003") {
		t.Errorf("a trial that is beaten is shown:\n%s", out.String())
	}
}

func TestResultNamesTheBoundsThatNoTrialMet(t *testing.T) {
	tests := map[string]struct {
		constraints []v1beta1.MetricConstraint
		want        string
	}{
		"how near they came": {[]v1beta1.MetricConstraint{{MetricName: "acc", Min: ptr.To(0.95)}},
			"none of 3 trials with a value of loss met acc >= 0.95 (the nearest was charlm-0001 with 0.9)"},
		"a metric that no trial reports": {[]v1beta1.MetricConstraint{{MetricName: "memory", Max: ptr.To(16.0)}},
			"none of 3 trials with a value of loss met memory <= 16 (which no trial reported: is the name right?)"},
		"bounds that exclude each other": {[]v1beta1.MetricConstraint{{MetricName: "acc", Min: ptr.To(0.8), Max: ptr.To(0.85)}, {MetricName: "loss", Max: ptr.To(0.3)}},
			"none of 3 trials with a value of loss met 0.8 <= acc <= 0.85 (the nearest was charlm-0001 with 0.9) and loss <= 0.3 (some trials did)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, trials := lossAndAccuracy()
			e.Status.ParetoTrialList, e.Status.CurrentOptimalTrial = nil, v1beta1.OptimalTrial{}
			e.Spec.Constraints = tc.constraints
			ended(e, v1beta1.ExperimentSucceeded, "ExperimentMaxTrialsReached", "")
			view := newExperimentView(e, trials)
			var out bytes.Buffer
			err := conclude(view, ending{}, streams{out: &out})
			requireText(t, out.String(), "No best trial: "+tc.want+".")
			if err == nil || !strings.Contains(err.Error(), tc.want) || exitCode(err) != exitExperimentFailed {
				t.Errorf("concluded with %v", err)
			}
			_, err = target{Trial: "best"}.find(view)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("best: %v", err)
			}
		})
	}
}

func TestTrialsOutOfBoundsAreMarked(t *testing.T) {
	e, trials := lossAndAccuracy()
	e.Spec.Objectives = nil
	e.Spec.Constraints = []v1beta1.MetricConstraint{{MetricName: "acc", Min: ptr.To(0.95)}}
	var out bytes.Buffer
	view := newExperimentView(e, trials)
	if err := trialTable(view, view.Trials[:1], noon).write(&out, false); err != nil {
		t.Fatal(err)
	}
	requireText(t, out.String(), "ACC", "0.9 !")
	out.Reset()
	describeExperiment(&out, view, noon)
	requireText(t, out.String(), "Bounds      acc >= 0.95\n")
}

func TestWhatAnExperimentWaitsForIsShown(t *testing.T) {
	e := anExperiment()
	e.Status.Conditions[0].Message = "No trial can be started for now: experiment \"first\" is not there"
	view := newExperimentView(e, nil)
	requireText(t, strings.Join(frame(view, noon, size{width: 120, height: 20}, false), "\n"), "No trial can be started for now")
	var p plainDisplay
	requireText(t, strings.Join(p.update(view, noon), "\n"), "experiment charlm No trial can be started for now")
	if again := p.update(view, noon); len(again) > 0 {
		t.Errorf("it is said again: %q", again)
	}
	e.Status.Conditions[0].Message = "Experiment is running"
	if calm := p.update(newExperimentView(e, nil), noon); len(calm) > 0 {
		t.Errorf("what is no trouble is said: %q", calm)
	}
}

func TestResultSaysWhichMetricIsTheObjective(t *testing.T) {
	e := anExperiment()
	trial := aTrial(3, v1beta1.TrialSucceeded, "0.125")
	var out bytes.Buffer
	printResult(&out, newExperimentView(withBest(e, trial), []v1beta1.Trial{trial}))
	requireText(t, out.String(), "Best trial: charlm-0003\n", "loss (minimized)", "acc   ")
}

func TestFrameOfSeveralObjectives(t *testing.T) {
	e, trials := lossAndAccuracy()
	text := strings.Join(frame(newExperimentView(e, trials), noon, size{width: 120, height: 30}, false), "\n")
	requireText(t, text, "minimize loss, maximize acc", "front  2 trials that none beats", "0.5 *", "0.25 *", "ACC")
	if strings.Contains(text, "0.75 *") {
		t.Errorf("a trial that is beaten is marked:\n%s", text)
	}
}

func TestDescribeShowsTheFront(t *testing.T) {
	e, trials := lossAndAccuracy()
	var out bytes.Buffer
	describeExperiment(&out, newExperimentView(e, trials), noon)
	requireText(t, out.String(), "Front       charlm-0001  loss=0.5 (min) acc=0.9 (max)\n            charlm-0002  loss=0.25 (min) acc=0.9 (max)\n")
}

// A trial that breaks a bound is never the best, however good its objective.
func TestTrialsThatBreakABoundFollowThoseThatDoNot(t *testing.T) {
	e, trials := lossAndAccuracy()
	e.Spec.Constraints = []v1beta1.MetricConstraint{{MetricName: "acc", Min: ptr.To(0.5)}}
	trials[1].Status.Observation.Metrics = slices.DeleteFunc(trials[1].Status.Observation.Metrics, func(m v1beta1.Metric) bool { return m.Name == "acc" })
	trials = append(trials, aTrial(4, v1beta1.TrialRunning, ""))
	v := newExperimentView(e, trials)
	sortByObjective(v)
	var got []int
	for _, trial := range v.Trials {
		got = append(got, trial.Number)
	}
	if want := []int{1, 3, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	e.Spec.Constraints[0].Min, e.Spec.Constraints[0].Max = nil, ptr.To(0.95)
	if first := v.Trials[0]; !v.feasible(first) {
		t.Errorf("%v is not within the bound", first.Metrics)
	}
}

func TestTheBestOfAFrontIsOneOfSeveral(t *testing.T) {
	e, trials := lossAndAccuracy()
	var out bytes.Buffer
	if err := writeBest(&out, "table", e, newTrialView(&trials[1])); err != nil {
		t.Fatal(err)
	}
	requireText(t, out.String(), "one of 2 trials that none beats in all objectives: vernier describe charlm")
}

func TestAFrontOfOne(t *testing.T) {
	e, trials := lossAndAccuracy()
	e.Status.ParetoTrialList = []string{"charlm-0002"}
	var out bytes.Buffer
	v := newExperimentView(e, trials)
	printResult(&out, v)
	requireText(t, out.String(), "1 trial that none beats in all of loss, acc:")
	requireText(t, frontLine(v), "front  1 trial that none beats")
}

func TestTheResultSaysWhereItsValueCameFrom(t *testing.T) {
	tests := map[string]struct {
		latest string
		step   *int64
		want   string
	}{
		"the least of a curve":              {"0.31", nil, "0.25   (min; the last value was 0.31)"},
		"with its step":                     {"0.31", ptr.To[int64](7), "0.25   (min, at step 7; the last value was 0.31)"},
		"the last value is the least":       {"0.25", ptr.To[int64](9), "0.25   (min, at step 9)"},
		"a trial that ended in NaN":         {"NaN", nil, "0.25   (min; the last value was NaN: it diverged)"},
		"a trial that ended in an infinity": {"+Inf", nil, "0.25   (min; the last value was +Inf: it diverged)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			trial := aTrial(1, v1beta1.TrialSucceeded, "0.25")
			trial.Status.Observation.Metrics[1].Latest = tc.latest
			view := newExperimentView(withBest(anExperiment(), trial), []v1beta1.Trial{trial})
			view.BestStep = tc.step
			var result, described, best bytes.Buffer
			printResult(&result, view)
			describeExperiment(&described, view, noon)
			if err := writeBest(&best, "table", view.Experiment, view.Trials[0]); err != nil {
				t.Fatal(err)
			}
			requireText(t, result.String(), tc.want)
			requireText(t, described.String(), strings.Trim(tc.want[len("0.25   "):], "()"))
			if tc.step == nil {
				requireText(t, best.String(), tc.want[len("0.25   "):])
			}
		})
	}
}
