package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestATrialIsCondensedByItsStrategies(t *testing.T) {
	view := newTrialView(new(aTrial(7, v1beta1.TrialSucceeded, "0.25")))
	want := []metricView{{"loss", "0.25", "min", "8"}, {"acc", "0.9", "max", "0.8"}}
	if diff := cmp.Diff(want, view.Metrics, cmp.AllowUnexported(metricView{})); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if view.Number != 7 || !view.finished() || view.duration(noon.Add(time.Hour)) != 7*time.Second {
		t.Errorf("number %d, finished %v, duration %s", view.Number, view.finished(), view.duration(noon.Add(time.Hour)))
	}
}

func TestAnUnavailableExtremeFallsBackToTheLatest(t *testing.T) {
	trial := aTrial(1, v1beta1.TrialSucceeded, "unavailable")
	if got := newTrialView(&trial).objective(); got != "8" {
		t.Errorf("got %q, want the latest value", got)
	}
}

func TestScore(t *testing.T) {
	tests := map[string]struct {
		text string
		want float64
		ok   bool
	}{
		"a number":        {"0.5", 0.5, true},
		"not a number":    {"nan", 0, false},
		"an infinity":     {"-inf", 0, false},
		"text":            {"Genotype(...)", 0, false},
		"nothing at all":  {"", 0, false},
		"with exponent":   {"1e-3", 1e-3, true},
		"unavailable too": {"unavailable", 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := trialView{Metrics: []metricView{{Name: "loss", Value: test.text}}}.score()
			if ok != test.ok || (ok && got != test.want) {
				t.Errorf("got %v, %v; want %v, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

// The number is the label's: a name may end with any other.
func TestATrialThatWasCreatedByHandHasNoNumber(t *testing.T) {
	byHand := aTrial(7, v1beta1.TrialSucceeded, "1")
	byHand.Labels = nil
	if got := newTrialView(&byHand).Number; got != -1 {
		t.Errorf("trial %s has the number %d", byHand.Name, got)
	}
}

func TestTrialsAreInOrder(t *testing.T) {
	view := newExperimentView(anExperiment(), []v1beta1.Trial{
		aTrial(3, v1beta1.TrialRunning, ""), aTrial(0, v1beta1.TrialSucceeded, "1"), aTrial(2, v1beta1.TrialFailed, ""), aTrial(1, v1beta1.TrialCreated, ""),
	})
	for i, trial := range view.Trials {
		if trial.Number != i {
			t.Errorf("trial %d is in place %d", trial.Number, i)
		}
	}
}

func TestATrialWithoutAWorkerWaits(t *testing.T) {
	lost, begins, stopping := aTrial(0, v1beta1.TrialRunning, ""), aTrial(1, v1beta1.TrialCreated, ""), aTrial(2, v1beta1.TrialRunning, "")
	lost.MarkPending(v1beta1.ReasonTrialLost, `Trial is pending: its worker "gpu1" has not reported since noon`, metav1.NewTime(noon))
	begins.Status.Conditions = nil
	stopping.Annotations = map[string]string{v1beta1.AnnotationStop: "vernier stop"}
	type shown struct{ State, Shown, Waits string }
	var got []shown
	for _, trial := range []v1beta1.Trial{lost, begins, stopping} {
		v := newTrialView(&trial)
		got = append(got, shown{v.State, v.shownState(), v.Waits})
	}
	want := []shown{{"Created", "· Waiting", `its worker "gpu1" has not reported since noon`}, {"Created", "· Created", ""}, {"Running", "· Stopping", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBestSurvivesTheLossOfItsTrial(t *testing.T) {
	view := newExperimentView(withBest(anExperiment(), aTrial(4, v1beta1.TrialSucceeded, "0.1")), nil)
	best, ok := view.best()
	if !ok || best.Name != "charlm-0004" || best.objective() != "0.1" {
		t.Errorf("got %+v, %v", best, ok)
	}
	if _, ok := newExperimentView(anExperiment(), nil).best(); ok {
		t.Error("an experiment without a best trial has one")
	}
}

func TestAge(t *testing.T) {
	tests := map[string]struct {
		d    time.Duration
		want string
	}{
		"seconds":             {90 * time.Second, "90s"},
		"minutes":             {150 * time.Second, "2m30s"},
		"hours":               {5*time.Hour + 10*time.Minute, "5h10m"},
		"days":                {100 * time.Hour, "4d4h"},
		"a clock that is off": {-time.Minute, "0s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := age(test.d); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestShortNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0.123456789": "0.123457", "0.5": "0.5", "adam": "adam", "a-long-category-name": "a-long-category-name", "123456789012": "1.23457e+11",
	} {
		if got := shortNumber(text); got != want {
			t.Errorf("shortNumber(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestParametersAreShownWithoutTheDigitsOfAScale(t *testing.T) {
	trial := aTrial(1, v1beta1.TrialSucceeded, "0.5")
	trial.Spec.ParameterAssignments = []v1beta1.ParameterAssignment{
		{Name: "lr", Value: "0.0010000000000000002"}, {Name: "wd", Value: "0.000123456789"}, {Name: "width", Value: "123456789"}, {Name: "opt", Value: "sgd with momentum"}, {Name: "day", Value: "20240101123456789012"},
	}
	e := anExperiment()
	e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "width"}, v1beta1.ParameterSpec{Name: "day"})
	v := newExperimentView(withBest(e, trial), []v1beta1.Trial{trial})
	shown := map[string]func(out *bytes.Buffer) error{
		"by run":        func(out *bytes.Buffer) error { printResult(out, v); return nil },
		"by describe":   func(out *bytes.Buffer) error { describeTrial(out, v.Experiment, v.Trials[0], noon); return nil },
		"by best":       func(out *bytes.Buffer) error { return writeBest(out, "table", v.Experiment, v.Trials[0]) },
		"by get trials": func(out *bytes.Buffer) error { return trialTable(v, v.Trials, noon).write(out, false) },
	}
	for name, show := range shown {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := show(&out); err != nil {
				t.Fatal(err)
			}
			requireText(t, out.String(), "0.001", "123456789", "20240101123456789012")
			if strings.Contains(out.String(), "0002") {
				t.Errorf("it has all digits:\n%s", out.String())
			}
		})
	}
	var out bytes.Buffer
	if err := writeBest(&out, "args", v.Experiment, v.Trials[0]); err != nil {
		t.Fatal(err)
	}
	requireText(t, out.String(), "--lr=0.0010000000000000002")
}

func TestTarget(t *testing.T) {
	view := newExperimentView(withBest(anExperiment(), aTrial(1, v1beta1.TrialSucceeded, "0.1")),
		[]v1beta1.Trial{aTrial(0, v1beta1.TrialSucceeded, "0.2"), aTrial(1, v1beta1.TrialSucceeded, "0.1"), aTrial(2, v1beta1.TrialRunning, "")})
	tests := map[string]struct {
		text string
		want string
		code int
	}{
		"by number":        {"charlm/0", "charlm-0000", 0},
		"padded number":    {"charlm/0002", "charlm-0002", 0},
		"by name":          {"charlm/charlm-0002", "charlm-0002", 0},
		"the best":         {"charlm/best", "charlm-0001", 0},
		"the latest":       {"charlm/latest", "charlm-0002", 0},
		"one that is not":  {"charlm/9", "", exitNotFound},
		"too many slashes": {"a/b/c", "", exitUsage},
		"nothing":          {"", "", exitUsage},
		"no trial named":   {"charlm/", "", exitUsage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var found trialView
			target, err := parseTarget(test.text)
			if err == nil {
				found, err = target.find(view)
			}
			if found.Name != test.want || exitCode(err) != test.code {
				t.Errorf("got %q, code %d (%v); want %q, code %d", found.Name, exitCode(err), err, test.want, test.code)
			}
		})
	}
}
