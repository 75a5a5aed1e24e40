package suggestion

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func anExperiment(change ...func(*v1beta1.Experiment)) *v1beta1.Experiment {
	e := &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "exp", UID: "uid", Labels: map[string]string{"team": "a"}},
		Spec:       v1beta1.ExperimentSpec{Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "random"}},
	}
	e.MarkCreated("", metav1.NewTime(noon))
	for _, f := range change {
		f(e)
	}
	return e
}

func succeeded(e *v1beta1.Experiment) {
	e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "", metav1.NewTime(noon))
}

func failed(e *v1beta1.Experiment) {
	e.MarkFailed(v1beta1.ReasonExperimentFailed, "", metav1.NewTime(noon))
}

// some trials, the newest first.
func some(n int) []*v1beta1.Trial {
	var out []*v1beta1.Trial
	for i := range n {
		out = append(out, &v1beta1.Trial{
			ObjectMeta: metav1.ObjectMeta{Name: v1beta1.TrialName("exp", i), Labels: map[string]string{v1beta1.LabelTrialNumber: fmt.Sprint(i)}},
			Spec:       v1beta1.TrialSpec{ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "x", Value: fmt.Sprint(i)}}},
		})
	}
	return out
}

func conditions(s *v1beta1.Suggestion) []string {
	var out []string
	for _, c := range s.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	return out
}

func TestConditionsFollowTheExperiment(t *testing.T) {
	running := plan(nil, anExperiment(), some(1), noon)
	over := plan(running, anExperiment(succeeded), some(1), noon)
	tests := map[string]struct {
		have   *v1beta1.Suggestion
		exp    *v1beta1.Experiment
		trials int
		want   []string
	}{
		"a new experiment":                {nil, anExperiment(), 0, []string{"Created=True", "DeploymentReady=True"}},
		"an experiment with trials":       {nil, anExperiment(), 2, []string{"Created=True", "DeploymentReady=True", "Running=True"}},
		"an experiment that succeeded":    {running, anExperiment(succeeded), 2, []string{"Created=True", "DeploymentReady=True", "Running=False", "Succeeded=True"}},
		"an experiment that failed":       {running, anExperiment(failed), 2, []string{"Created=True", "DeploymentReady=True", "Running=False", "Failed=True"}},
		"an experiment that goes on":      {over, anExperiment(), 2, []string{"Created=True", "DeploymentReady=True", "Running=False"}},
		"an experiment that has gone on":  {plan(over, anExperiment(), some(2), noon), anExperiment(), 3, []string{"Created=True", "DeploymentReady=True", "Running=True"}},
		"an experiment that failed early": {nil, anExperiment(failed), 0, []string{"Created=True", "DeploymentReady=True", "Failed=True"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := plan(tc.have, tc.exp, some(tc.trials), noon)
			if diff := cmp.Diff(tc.want, conditions(got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if tc.exp.IsCompleted() != (got.Status.CompletionTime != nil) {
				t.Errorf("completionTime = %v", got.Status.CompletionTime)
			}
		})
	}
}

func TestRecordIsBounded(t *testing.T) {
	s := plan(nil, anExperiment(), some(1000), noon)
	if s.Spec.Requests != 1000 || s.Status.SuggestionCount != 1000 {
		t.Errorf("counts: %d, %d", s.Spec.Requests, s.Status.SuggestionCount)
	}
	if n := len(s.Status.Suggestions); n != kept {
		t.Fatalf("%d proposals, want %d", n, kept)
	}
	first, last := s.Status.Suggestions[0], s.Status.Suggestions[kept-1]
	if first.Name != "exp-0744" || last.Name != "exp-0999" || last.ParameterAssignments[0].Value != "999" {
		t.Errorf("from %s to %s (%v)", first.Name, last.Name, last.ParameterAssignments)
	}
}

// An object above the API server's limit could never be written again.
func TestRecordIsBoundedInBytes(t *testing.T) {
	trials := some(1000)
	for _, trial := range trials {
		for p := range 400 {
			trial.Spec.ParameterAssignments = append(trial.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: fmt.Sprint("parameter-", p), Value: "0.123456789012345"})
		}
	}
	s := plan(nil, anExperiment(), trials, noon)
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	n := len(s.Status.Suggestions)
	if len(raw) > 1<<20 || n == 0 || s.Status.Suggestions[n-1].Name != "exp-0999" || s.Status.SuggestionCount != 1000 {
		t.Errorf("%d bytes, %d proposals", len(raw), n)
	}
}

// Katib's clients wait for a suggestion that runs before they raise the budget.
func TestTheRecordOfALongRunningExperimentGoesOnRunning(t *testing.T) {
	exp := anExperiment()
	exp.Spec.ResumePolicy = v1beta1.LongRunning
	s := plan(nil, exp, some(3), noon)
	exp.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "", metav1.NewTime(noon))
	if s = plan(s, exp, some(3), noon); s.IsSucceeded() || !s.HasCondition(v1beta1.SuggestionRunning) {
		t.Errorf("%+v", s.Status.Conditions)
	}
}

func TestRecordBelongsToTheExperiment(t *testing.T) {
	exp := anExperiment()
	s := plan(nil, exp, nil, noon)
	if owner := metav1.GetControllerOf(s); owner == nil || owner.UID != exp.UID {
		t.Errorf("owner: %+v", owner)
	}
	want := map[string]string{"team": "a", v1beta1.LabelExperiment: "exp"}
	if diff := cmp.Diff(want, s.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if len(exp.Labels) != 1 {
		t.Errorf("the experiment's labels were changed: %v", exp.Labels)
	}
}

func TestNothingNewIsNoWrite(t *testing.T) {
	s := plan(nil, anExperiment(), some(3), noon)
	again := plan(s, anExperiment(), some(3), noon.Add(time.Hour))
	if !sameSpec(s, again) || !sameStatus(&s.Status, &again.Status) {
		t.Errorf("it differs:\n%s", cmp.Diff(s, again))
	}
}

func TestTheEndIsRecordedAtOnce(t *testing.T) {
	tests := map[string]struct {
		was, is *v1beta1.Experiment
		want    bool
	}{
		"it goes on":    {anExperiment(), anExperiment(), false},
		"it succeeds":   {anExperiment(), anExperiment(succeeded), true},
		"it fails":      {anExperiment(), anExperiment(failed), true},
		"it has ended":  {anExperiment(succeeded), anExperiment(succeeded), false},
		"it is resumed": {anExperiment(succeeded), anExperiment(), true},
	}
	for name, tc := range tests {
		if got := endsOrGoesOn(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}); got != tc.want {
			t.Errorf("%s: at once: %v", name, got)
		}
	}
}
