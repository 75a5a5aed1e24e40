package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// stopping has six trials that ended with a loss of 1, each over ten steps, one
// that runs with a loss of 5 and one with 0.5.
func stopping(t *testing.T) (*v1beta1.Experiment, []*v1beta1.Trial, *Controller) {
	t.Helper()
	exp := conditional()
	exp.Spec.Objective = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"}
	exp.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop"}
	losses := map[types.UID]float64{}
	var trials []*v1beta1.Trial
	for n, value := range []float64{1, 1, 1, 1, 1, 1, 5, 0.5} {
		trial := aTrial(n, created)
		trial.UID = types.UID(trial.Name)
		trial.Spec.ParameterAssignments = assigned("model", "svm")
		trial.MarkRunning("", metav1.NewTime(noon))
		if n < 6 {
			trial.MarkSucceeded("", metav1.NewTime(noon))
			trial.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Latest: "1", Min: "1", Max: "1"}}}
		}
		losses[trial.UID] = value
		trials = append(trials, trial)
	}
	c := New(Options{Now: func() time.Time { return noon }, Scan: func(_ context.Context, uid string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
		if len(metrics) != 1 || metrics[0] != "loss" {
			return fmt.Errorf("the curve of %s", metrics)
		}
		for step := range int64(10) {
			if err := yield(collector.Attempt{ID: "a"}, collector.Point{Value: losses[types.UID(uid)], Step: step + 1}); err != nil {
				return err
			}
		}
		return nil
	}})
	return exp, trials, c
}

func TestRuleGivesUpWhatIsBad(t *testing.T) {
	exp, trials, c := stopping(t)
	m, err := c.searcher(exp)
	if err != nil {
		t.Fatal(err)
	}
	judge := func() []string {
		of, done := c.pasts.use(exp)
		defer done()
		if err := c.remember(t.Context(), exp, of, trials); err != nil {
			t.Fatal(err)
		}
		if len(of.curves) != 6 {
			t.Errorf("%d curves are kept, want those of the 6 trials that have ended", len(of.curves))
		}
		live, err := c.live(t.Context(), exp, trials)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, v := range m.hopeless(exp, trials, of.curves, live) {
			names = append(names, v.trial.Name)
			if !strings.HasPrefix(v.why, "medianstop: ") {
				t.Errorf("%s is stopped because %q", v.trial.Name, v.why)
			}
		}
		return names
	}
	if diff := cmp.Diff([]string{trials[6].Name}, judge()); diff != "" {
		t.Error(diff)
	}
	trials[6].Annotations = map[string]string{v1beta1.AnnotationStopEarly: "so"}
	if got := judge(); len(got) > 0 {
		t.Errorf("%v are asked again", got)
	}
}

func TestCurvesThatCannotBeReadAreAnError(t *testing.T) {
	exp, trials, c := stopping(t)
	broken := errors.New("disk full")
	c.Scan = func(context.Context, string, []string, func(collector.Attempt, collector.Point) error) error {
		return broken
	}
	of, done := c.pasts.use(exp)
	defer done()
	if err := c.remember(t.Context(), exp, of, trials); !errors.Is(err, broken) || !strings.Contains(err.Error(), trials[0].Name) {
		t.Errorf("got %v", err)
	}
	if c.pasts.points > 0 {
		t.Error("a curve that could not be read is kept")
	}
}
