package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// withoutMemory is an experiment that bounds a metric which its trials do not have.
func withoutMemory() (*v1beta1.Experiment, []v1beta1.Trial) {
	e := anExperiment()
	e.Spec.Constraints = []v1beta1.MetricConstraint{{MetricName: "memory", Max: ptr.To(16.0)}}
	trials := []v1beta1.Trial{aTrial(1, v1beta1.TrialRunning, "0.5"), aTrial(2, v1beta1.TrialSucceeded, "0.25"), aTrial(3, v1beta1.TrialSucceeded, "0.75")}
	for i := range trials {
		o := trials[i].Status.Observation
		o.Metrics = append(o.Metrics, v1beta1.Metric{Name: "memory", Min: "unavailable", Max: "unavailable", Latest: "unavailable"})
		trials[i].Status.Conditions[1].Message = `Trial has succeeded. No value of "memory" was reported. The collector says: memory was not found; there is loss, mem`
	}
	return e, trials
}

func TestAMetricThatIsMissingIsToldWithTheFirstTrial(t *testing.T) {
	const want = "trial charlm-0002 has no value of memory: memory was not found; there is loss, mem"
	e, trials := withoutMemory()
	var p plainDisplay
	if lines := p.update(newExperimentView(e, trials[:1]), noon); strings.Contains(strings.Join(lines, "\n"), "memory") {
		t.Errorf("it is said of a trial that runs: %q", lines)
	}
	var said []string
	for n := range trials {
		for _, line := range p.update(newExperimentView(e, trials[:n+1]), noon) {
			if strings.Contains(line, "memory") {
				said = append(said, line)
			}
		}
	}
	if diff := cmp.Diff([]string{"12:00:00 " + want}, said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	v := newExperimentView(e, trials)
	requireText(t, strings.Join(frame(v, noon, size{width: 120, height: 20}, false), "\n"), want)
	var out bytes.Buffer
	describeExperiment(&out, v, noon)
	requireText(t, out.String(), "Missing     "+want+"\n")
}

func TestWhatATrialLacks(t *testing.T) {
	e, _ := withoutMemory()
	e.Spec.Constraints[0].MetricName = "f1"
	tests := map[string]struct {
		metrics []metricView
		want    []string
	}{
		"all is there":             {[]metricView{{Name: "loss", Value: "1"}, {Name: "f1", Value: "2"}}, nil},
		"numbers of any kind":      {[]metricView{{Name: "loss", Value: "NaN"}, {Name: "f1", Value: "1e999"}}, nil},
		"a text is a value too":    {[]metricView{{Name: "loss", Value: "1"}, {Name: "f1", Value: "Genotype(a)"}}, nil},
		"a value was not seen":     {[]metricView{{Name: "loss", Value: "1"}, {Name: "f1", Value: "unavailable"}}, []string{"f1"}},
		"a metric that is bounded": {[]metricView{{Name: "loss", Value: "1"}}, []string{"f1"}},
		"an additional metric":     {[]metricView{{Name: "loss", Value: "1"}, {Name: "f1", Value: "2"}, {Name: "auc", Value: "unavailable"}}, []string{"auc"}},
		"several":                  {[]metricView{{Name: "loss", Value: "1"}, {Name: "auc", Value: "unavailable"}}, []string{"f1", "auc"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, newExperimentView(e, nil).lacking(trialView{Metrics: tc.metrics})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatARunningTrialDoesNotFindIsTold(t *testing.T) {
	const note = "so far loss was not found: did you mean val_loss?; there is lr, val_loss"
	running := func(n int, value string) v1beta1.Trial {
		trial := aTrial(n, v1beta1.TrialRunning, value)
		if value == "" {
			trial.Status.Observation = nil
			trial.LastCondition().Message = "Trial is running. The collector says: " + note
		}
		return trial
	}
	v := newExperimentView(anExperiment(), []v1beta1.Trial{running(1, ""), running(2, "")})
	if v.Trials[0].Waits != "" {
		t.Errorf("it is said to wait: %q", v.Trials[0].Waits)
	}
	var p plainDisplay
	said := strings.Join(append(p.update(v, noon), p.update(v, noon)...), "\n")
	if n := strings.Count(said, "trial charlm-0001: "+note); n != 1 || strings.Contains(said, "charlm-0002: "+note) {
		t.Errorf("it is said otherwise than once:\n%s", said)
	}
	var out bytes.Buffer
	describeExperiment(&out, v, noon)
	requireText(t, out.String(), "Missing     trial charlm-0001: "+note+"\n")
	requireText(t, strings.Join(frame(v, noon, size{width: 120, height: 20}, false), "\n"), note)
	requireText(t, explainTrial(v, v.Trials[0], noon).Why, note)

	v = newExperimentView(anExperiment(), []v1beta1.Trial{running(1, ""), running(2, "0.5")})
	if text := v.lacksYet(); text != "" {
		t.Errorf("it is said although a trial has the metric: %q", text)
	}
}
