package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

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
