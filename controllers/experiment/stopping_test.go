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

func series(step int64, values ...float64) collector.Series {
	var s collector.Series
	for i, v := range values {
		at := collector.NoStep
		if step != collector.NoStep {
			at = step + int64(i)
		}
		s.Points = append(s.Points, collector.Point{Value: v, Step: at})
	}
	return s
}

func TestCurve(t *testing.T) {
	long := make([]float64, 10*curvePoints+7)
	for i := range long {
		long[i] = float64(i)
	}
	cases := map[string]struct {
		in   []collector.Series
		want []sample
	}{
		"nothing":              {nil, nil},
		"steps as reported":    {[]collector.Series{series(5, 1, 2)}, []sample{{5, 1}, {6, 2}}},
		"counted without step": {[]collector.Series{series(collector.NoStep, 1, 2)}, []sample{{1, 1}, {2, 2}}},
		"a second attempt":     {[]collector.Series{series(collector.NoStep, 1, 2), series(collector.NoStep, 3)}, []sample{{1, 1}, {2, 2}, {1, 3}}},
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, curve(c.in), cmp.AllowUnexported(sample{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	thin := curve([]collector.Series{series(0, long...)})
	if len(thin) != curvePoints || thin[curvePoints-1].step != int64(len(long)-1) {
		t.Errorf("%d samples, the last at step %d", len(thin), thin[len(thin)-1].step)
	}
	for i := 1; i < len(thin); i++ {
		if gap := thin[i].step - thin[i-1].step; gap < 10 || gap > 11 {
			t.Fatalf("samples %d and %d are %d steps apart", i-1, i, gap)
		}
	}
}

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
	c := New(Options{Now: func() time.Time { return noon }, Curves: func(_ context.Context, uid types.UID, metric string) ([]collector.Series, error) {
		if metric != "loss" {
			return nil, fmt.Errorf("the curve of %s", metric)
		}
		v := losses[uid]
		return []collector.Series{series(1, v, v, v, v, v, v, v, v, v, v)}, nil
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
		if err := c.remember(t.Context(), exp, m, trials); err != nil {
			t.Fatal(err)
		}
		curves, err := c.live(t.Context(), exp, trials)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, v := range m.hopeless(exp, trials, curves) {
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
	if len(m.past) != 6 {
		t.Errorf("%d curves are kept, want those of the 6 trials that have ended", len(m.past))
	}
	trials[6].Annotations = map[string]string{v1beta1.AnnotationStopEarly: "so"}
	if got := judge(); len(got) > 0 {
		t.Errorf("%v are asked again", got)
	}
}

func TestCurvesThatCannotBeReadAreAnError(t *testing.T) {
	exp, trials, c := stopping(t)
	m, err := c.searcher(exp)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("disk full")
	c.Curves = func(context.Context, types.UID, string) ([]collector.Series, error) { return nil, broken }
	if err := c.remember(t.Context(), exp, m, trials); !errors.Is(err, broken) || !strings.Contains(err.Error(), trials[0].Name) {
		t.Errorf("got %v", err)
	}
	if len(m.past) > 0 {
		t.Error("a curve that could not be read is kept")
	}
}
