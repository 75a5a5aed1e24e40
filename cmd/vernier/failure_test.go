package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestTheCauseOfAFailureIsWithoutTheJobsWords(t *testing.T) {
	const limit = "Job reason: BackoffLimitExceeded. Job message: Job has reached the specified backoff limit"
	for message, want := range map[string]string{
		"Trial has failed. container a exited with code 1 (no data). " + limit: "container a exited with code 1 (no data)",
		"Trial has failed. " + limit + ". ValueError: no data":                 "ValueError: no data", // as it was written before
		"Trial has failed. " + limit:                                           limit,
	} {
		if got := cause(message); got != want {
			t.Errorf("%q: %q, not %q", message, got, want)
		}
	}
}

func TestTheMessageOfAFailedTrialIsShownOnce(t *testing.T) {
	failed := aTrial(4, v1beta1.TrialFailed, "")
	failed.Status.Conditions[1].Message = "Trial has failed. Job reason: BackoffLimitExceeded. Job message: Job has reached the specified backoff limit. ValueError: no data"
	e := ended(anExperiment(), v1beta1.ExperimentFailed, "ExperimentFailed", v1beta1.MessageMaxFailed+": all 1 trials have failed"+v1beta1.NewestSays+"charlm-0004: ValueError: no data")
	v := newExperimentView(e, []v1beta1.Trial{failed})
	concluded := func(told bool) func() string {
		return func() string { return conclude(v, ending{told: told}, streams{out: &bytes.Buffer{}}).Error() }
	}
	tests := map[string]struct {
		shown func() string
		times int
	}{
		"at the end of run":                {concluded(false), 1},
		"at the end of run, when told":     {concluded(true), 0},
		"by the lines of run, in all":      {func() string { return strings.Join(new(plainDisplay).update(v, noon), "\n") }, 1},
		"by the live view, before the end": {func() string { return strings.Join(frame(v, noon, size{200, 30}, false), "\n") }, 0},
		"by explain":                       {func() string { return explainExperiment(v, noon).Why }, 1},
		"by describe": {func() string {
			var out bytes.Buffer
			describeExperiment(&out, v, noon)
			return out.String()
		}, 1},
		"by explain when the trial is not there any more": {func() string { return explainExperiment(newExperimentView(e, nil), noon).Why }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := test.shown()
			if n := strings.Count(text, "ValueError"); n != test.times {
				t.Errorf("%d times, want %d:\n%s", n, test.times, text)
			}
			if strings.Contains(text, "backoff limit") {
				t.Errorf("it has the words of every failure:\n%s", text)
			}
		})
	}
}

// What the experiment says of its newest failure stays where the first one was another.
func TestTheNewestFailureIsShownWhereItDiffers(t *testing.T) {
	first := aTrial(4, v1beta1.TrialFailed, "")
	first.Status.Conditions[1].Message = "Trial has failed. ValueError: no data"
	e := ended(anExperiment(), v1beta1.ExperimentFailed, "ExperimentFailed", v1beta1.MessageMaxFailed+": the last 5 trials have all failed"+v1beta1.NewestSays+"charlm-0009: OSError: disk")
	if text := explainExperiment(newExperimentView(e, []v1beta1.Trial{first}), noon).Why; !strings.Contains(text, "OSError: disk") {
		t.Errorf("it does not say why the newest failed: %s", text)
	}
}

// A trial that printed NaN and failed does not count as done.
func TestOnlyTrialsThatSucceededCountAsDone(t *testing.T) {
	for state, want := range map[v1beta1.TrialConditionType]bool{v1beta1.TrialSucceeded: true, v1beta1.TrialFailed: false, v1beta1.TrialEarlyStopped: false} {
		v := newExperimentView(anExperiment(), []v1beta1.Trial{aTrial(1, state, "NaN")})
		if got := strings.Contains(divergedText(v), "not a finite number"); got != want {
			t.Errorf("%s: told as done: %v, want %v", state, got, want)
		}
	}
}

func TestAFailureIsSaidOnce(t *testing.T) {
	failed := func(trial, pod, why string) trialView {
		return trialView{Name: trial, State: "Failed", Message: "Trial has failed. container training of pod " + trial + "-" + pod + " exited with code 1 (" + why + "): see its last lines (vernier logs t/" + trial + ")"}
	}
	coded := func(trial string, code int) trialView {
		return trialView{Name: trial, State: "Failed", Message: fmt.Sprintf("Trial has failed. container training of pod %s-x2 exited with code %d (start)", trial, code)}
	}
	const all = v1beta1.MessageMaxFailed + ": all 2 trials have failed"
	for name, c := range map[string]struct {
		first, newest trialView
		once          bool
	}{
		"the same":             {failed("t-0000", "2xm5r", "no data"), failed("t-0001", "xvbqz", "no data"), true},
		"but for a parameter":  {failed("t-0000", "2xm5r", "lr is 0.5, too much"), failed("t-0001", "b8b2v", "lr is 0.3385, too much"), true},
		"another reason":       {failed("t-0000", "2xm5r", "no data"), failed("t-0001", "b8b2v", "no memory"), false},
		"another exit code":    {coded("t-0000", 3), coded("t-0001", 77), false},
		"the same exit code":   {coded("t-0000", 77), coded("t-0001", 77), true},
		"a trial without one":  {trialView{Name: "t-0000", State: "Failed"}, failed("t-0001", "b8b2v", "no data"), true},
		"no message of either": {trialView{Name: "t-0000", State: "Failed"}, trialView{Name: "t-0001", State: "Failed"}, false},
	} {
		v := experimentView{Trials: []trialView{c.first, c.newest}}
		message := all + v1beta1.NewestSays + c.newest.Name + ": " + c.newest.Message
		want := message
		if c.once {
			want = all
		}
		if got := v.brief(message); got != want {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
}

func TestWhatWasToldIsNotSaidAgain(t *testing.T) {
	v := experimentView{Trials: []trialView{{Name: "t-1", State: "Succeeded"}, {Name: "t-2", State: "MetricsUnavailable", Message: "loss was not found"}}}
	if got := firstFailure(v, false); got != "; the first trial to fail was t-2: loss was not found" {
		t.Error(got)
	}
	if got := firstFailure(v, true); got != "; the first trial to fail was t-2: its line above says why" {
		t.Error(got)
	}
}
