package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/local"
)

func TestExplainATrial(t *testing.T) {
	view := aView(withBest(anExperiment(), aTrial(1, v1beta1.TrialSucceeded, "0.5")), "3", "0.5", "2", "", "5")
	state := func(number int, state v1beta1.TrialConditionType, value, message string) trialView {
		trial := aTrial(number, state, value)
		trial.Status.Conditions[1].Message = message
		trial.Annotations = map[string]string{v1beta1.AnnotationWhy: "chance."}
		return newTrialView(&trial)
	}
	tests := map[string]struct {
		trial trialView
		want  explanation
	}{
		"the best":      {state(1, v1beta1.TrialSucceeded, "0.5", "Trial has succeeded"), explanation{State: "Succeeded", Why: "succeeded after 1s with loss=0.5, which is the best so far"}},
		"another":       {state(2, v1beta1.TrialSucceeded, "2", "Trial has succeeded"), explanation{State: "Succeeded", Why: "succeeded after 2s with loss=2, number 2 of 4; the best is charlm-0001 with 0.5"}},
		"not a number":  {state(2, v1beta1.TrialSucceeded, "NaN", "Trial has succeeded"), explanation{State: "Succeeded", Why: "succeeded after 2s with loss=NaN, which is not a finite number: the trial counts as done, and is never the best"}},
		"one that runs": {state(5, v1beta1.TrialRunning, "1", "Trial is running"), explanation{State: "Running", Why: "has been running for 60s with loss=1", Next: "vernier logs charlm/5 -f"}},
		"one that waits": {state(5, v1beta1.TrialRunning, "", "Trial is running. no node has a GPU"),
			explanation{State: "Waiting", Why: "waits: no node has a GPU"}},
		"a failure": {state(3, v1beta1.TrialFailed, "", "Trial has failed. Job message: exit code 1"),
			explanation{State: "Failed", Why: "failed after 3s: Job message: exit code 1", Next: "vernier logs charlm/3"}},
		"a failure without a reason": {state(3, v1beta1.TrialFailed, "", "Trial has failed"), explanation{State: "Failed", Why: "failed after 3s", Next: "vernier logs charlm/3"}},
		"one that was stopped early": {state(3, v1beta1.TrialEarlyStopped, "4", "Trial is early stopped. 4 is worse than the median"),
			explanation{State: "EarlyStopped", Why: "was stopped early after 3s with loss=4: 4 is worse than the median"}},
		"one without a result": {state(3, v1beta1.TrialMetricsUnavailable, "", "no value of loss"),
			explanation{State: "MetricsUnavailable", Why: "ended after 3s without a result: no value of loss", Next: "vernier logs charlm/3"}},
	}
	t.Run("one that is being stopped", func(t *testing.T) {
		stopping := state(5, v1beta1.TrialRunning, "1", "Trial is running")
		stopping.Object.Annotations[v1beta1.AnnotationStop] = "vernier stop"
		want := explanation{Name: "charlm-0005", Proposed: "chance", State: "Stopping", Why: "is being stopped with loss=1: vernier stop"}
		if diff := cmp.Diff(want, explainTrial(view, stopping, noon)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("of two objectives", func(t *testing.T) {
		e := anExperiment()
		e.Spec.Objectives = []v1beta1.ObjectiveMetric{{ObjectiveMetricName: "loss"}, {ObjectiveMetricName: "acc"}}
		e.Status.ParetoTrialList = []string{"charlm-0001"}
		v := aView(e, "3", "0.5")
		got := []string{explainTrial(v, v.Trials[0], noon).Why, explainTrial(v, v.Trials[1], noon).Why}
		want := []string{"succeeded after 0s with loss=3 and acc=0.9", "succeeded after 1s with loss=0.5 and acc=0.9, which none beats in all of them"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("which breaks bounds", func(t *testing.T) {
		e := anExperiment()
		e.Spec.Constraints = []v1beta1.MetricConstraint{{MetricName: "acc", Min: new(0.95)}, {MetricName: "loss", Max: new(1.0)}, {MetricName: "memory", Max: new(500.0)}}
		v := aView(e, "0.5")
		want := "succeeded after 0s with loss=0.5, but it breaks the bound acc >= 0.95 with 0.9 and memory <= 500 without a value, so that it is never the best"
		if diff := cmp.Diff(want, explainTrial(v, v.Trials[0], noon).Why); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("not a number, and no trial is better", func(t *testing.T) {
		only := aTrial(1, v1beta1.TrialSucceeded, "+Inf")
		v := newExperimentView(anExperiment(), []v1beta1.Trial{only})
		want := "succeeded after 1s with loss=+Inf, which is not a finite number: the trial counts as done, and is never the best"
		if diff := cmp.Diff(want, explainTrial(v, v.Trials[0], noon.Add(time.Minute)).Why); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Name, test.want.Proposed = test.trial.Name, "chance"
			if diff := cmp.Diff(test.want, explainTrial(view, test.trial, noon.Add(time.Minute))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainAnExperiment(t *testing.T) {
	suspended := anExperiment()
	suspended.Spec.Suspend = true
	stopped, last, jobs := anExperiment(), anExperiment(), anExperiment()
	jobs.Spec.TrialTemplate = &v1beta1.TrialTemplate{}
	stopped.Annotations = map[string]string{v1beta1.AnnotationEnd: v1beta1.EndStop}
	last.Spec.MaxTrialCount = new(int32(2))
	tests := map[string]struct {
		experiment *v1beta1.Experiment
		want       string
	}{
		"is being ended": {stopped, "was stopped, and ends when the trials that run have ended: 2/24 done"},
		"has all trials": {last, "runs its last trials: 2/2 done, 0 running, for 60s"},
		"runs":           {jobs, "runs: 2/24 done, 0 running"},
		"runs outside":   {anExperiment(), "waits for a program that asks for trials (docs/api.md): 2/24 done, 0 running"},
		"suspended":      {suspended, "is suspended: no new trials are made, and 0 run"},
		"ended":          {ended(anExperiment(), v1beta1.ExperimentSucceeded, "ExperimentGoalReached", ""), "ended: a trial reached the goal (2/24 done, 0 running)"},
		"used up":        {ended(anExperiment(), v1beta1.ExperimentSucceeded, v1beta1.ReasonExperimentMaxGPUHoursReached, ""), "ended: its maxGPUHours are used up (2/24 done"},
		"failed":         {ended(anExperiment(), v1beta1.ExperimentFailed, "ExperimentFailed", "Experiment has failed. too many"), "failed: too many"},
	}
	t.Run("ended, and its trials not yet", func(t *testing.T) {
		reached := ended(anExperiment(), v1beta1.ExperimentSucceeded, "ExperimentGoalReached", "")
		got := explainExperiment(newExperimentView(reached, []v1beta1.Trial{aTrial(1, v1beta1.TrialRunning, "")}), noon)
		if diff := cmp.Diff("ended: a trial reached the goal (0/24 done, 1 running); those that run are being stopped", got.Why); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := explainExperiment(aView(test.experiment, "3", "1"), noon.Add(time.Minute))
			if !strings.HasPrefix(got.Why, test.want) {
				t.Errorf("got %q, want %q", got.Why, test.want)
			}
		})
	}
}

func TestExport(t *testing.T) {
	view := aView(withBest(anExperiment(), aTrial(1, v1beta1.TrialSucceeded, "0.50")), "3", "0.50", "NaN", "")
	view.Trials[0].Params[0].Value = "=cmd()"
	tests := map[string]string{
		"csv": `trial,name,state,best,start,end,seconds,loss,acc,lr
0,charlm-0000,Succeeded,false,2026-01-02T12:00:00Z,2026-01-02T12:00:00Z,0,3,0.9,'=cmd()
1,charlm-0001,Succeeded,true,2026-01-02T12:00:00Z,2026-01-02T12:00:01Z,1,0.50,0.9,0.1
2,charlm-0002,Succeeded,false,2026-01-02T12:00:00Z,2026-01-02T12:00:02Z,2,NaN,0.9,0.2
3,charlm-0003,Failed,false,2026-01-02T12:00:00Z,2026-01-02T12:00:03Z,3,,,0.3
`,
		"jsonl": `{"trial":0,"name":"charlm-0000","state":"Succeeded","best":false,"start":"2026-01-02T12:00:00Z","end":"2026-01-02T12:00:00Z","metrics":{"acc":0.9,"loss":3},"params":{"lr":"=cmd()"},"seconds":0}
{"trial":1,"name":"charlm-0001","state":"Succeeded","best":true,"start":"2026-01-02T12:00:00Z","end":"2026-01-02T12:00:01Z","metrics":{"acc":0.9,"loss":0.50},"params":{"lr":0.1},"seconds":1}
{"trial":2,"name":"charlm-0002","state":"Succeeded","best":false,"start":"2026-01-02T12:00:00Z","end":"2026-01-02T12:00:02Z","metrics":{"acc":0.9,"loss":"NaN"},"params":{"lr":0.2},"seconds":2}
{"trial":3,"name":"charlm-0003","state":"Failed","best":false,"start":"2026-01-02T12:00:00Z","end":"2026-01-02T12:00:03Z","metrics":{},"params":{"lr":0.3},"seconds":3}
`,
	}
	for output, want := range tests {
		t.Run(output, func(t *testing.T) {
			var out bytes.Buffer
			if err := export(t.Context(), &out, output, view, noon.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			want = strings.ReplaceAll(want, "2026-01-02T12:00", noon.UTC().Format("2006-01-02T15:04"))
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A category is a text, also where it looks like a number, and the word for a metric
// without a value is no value.
func TestExportHasCategoriesAsTextsAndNoValueAsNone(t *testing.T) {
	e := anExperiment()
	e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "mask", ParameterType: v1beta1.ParameterTypeCategorical})
	measured, not := aTrial(1, v1beta1.TrialSucceeded, "0.5"), aTrial(2, v1beta1.TrialMetricsUnavailable, "1")
	none := collector.Unavailable
	not.Status.Observation.Metrics[1] = v1beta1.Metric{Name: "loss", Min: none, Max: none, Latest: none}
	for trial, mask := range map[*v1beta1.Trial]string{&measured: "016", &not: "1.10"} {
		trial.Spec.ParameterAssignments = append(trial.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: "mask", Value: mask})
	}
	view := newExperimentView(e, []v1beta1.Trial{measured, not})
	var table, lines, columns bytes.Buffer
	for output, out := range map[string]*bytes.Buffer{"csv": &table, "jsonl": &lines, "parquet": &columns} {
		if err := export(t.Context(), out, output, view, noon.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	requireText(t, table.String(), ",0.5,0.9,0.1,016\n", ",,0.9,0.2,1.10\n")
	requireText(t, lines.String(), `"metrics":{"acc":0.9,"loss":0.5},"params":{"lr":0.1,"mask":"016"}`, `"metrics":{"acc":0.9},"params":{"lr":0.2,"mask":"1.10"}`)
	types, rows := readParquet(t, columns.Bytes())
	if diff := cmp.Diff([]any{"DOUBLE", "STRING", "016", nil, "1.10"}, []any{types["loss"], types["mask"], rows[0]["mask"], rows[1]["loss"], rows[1]["mask"]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunningTrialThatIsQuietIsExplained(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		ago  time.Duration
		want bool
	}{"ten days": {252 * time.Hour, true}, "a moment": {time.Second, false}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, trial := anExperiment(), aTrial(1, v1beta1.TrialRunning, "0.5")
			e.UID, trial.UID = "e", "t"
			trial.Labels = map[string]string{v1beta1.LabelExperiment: e.Name}
			trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
			s := &session{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, &trial).Build(), namespace: e.Namespace, home: t.TempDir()}
			path := local.Home(s.home).StorePath()
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			points, err := store.Open(t.Context(), "sqlite:"+path)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(-tc.ago)
			err = points.Append(t.Context(), collector.TrialID{UID: "t"}, collector.Attempt{ID: "pod/0"}, []collector.Point{
				{Metric: "loss", Value: 1, Seq: 0, Source: "stdout", Time: at.Add(-time.Hour)}, {Metric: "loss", Value: 0.5, Seq: 1, Source: "stdout", Time: at}})
			if err := errors.Join(err, points.Close()); err != nil {
				t.Fatal(err)
			}
			got, err := explain(t.Context(), "charlm/charlm-0001", func(context.Context, bool) (*session, error) { return s, nil })
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(got.Why, "its last value came 10d ago"); said != tc.want || !strings.Contains(got.Why, "0.5") {
				t.Errorf("%q, want the time of the last value: %v", got.Why, tc.want)
			}
		})
	}
}
