package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const jobTemplate = `{
  "apiVersion": "batch/v1", "kind": "Job",
  "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
    {"name": "main", "image": "train", "command": ["train", "--lr=${trialParameters.lr}"]}
  ]}}}
}`

// experiment is one over a learning rate, with six trials, two at a time.
func (w *world) experiment(name string, change ...func(*v1beta1.Experiment)) *v1beta1.Experiment {
	e := &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"team": "a"}},
		Spec: v1beta1.ExperimentSpec{
			Parameters: []v1beta1.ParameterSpec{{
				Name: "lr", ParameterType: v1beta1.ParameterTypeDouble,
				FeasibleSpace: v1beta1.FeasibleSpace{Min: "0.001", Max: "0.1"},
			}},
			Objective:          &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
			Algorithm:          &v1beta1.AlgorithmSpec{AlgorithmName: "random"},
			ParallelTrialCount: ptr.To[int32](2),
			MaxTrialCount:      ptr.To[int32](6),
			TrialTemplate: &v1beta1.TrialTemplate{
				PrimaryContainerName: "main",
				TrialParameters:      []v1beta1.TrialParameterSpec{{Name: "lr", Reference: "lr"}},
				TrialSource:          v1beta1.TrialSource{TrialSpec: &runtime.RawExtension{Raw: []byte(jobTemplate)}},
			},
		},
	}
	for _, f := range change {
		f(e)
	}
	return e
}

// budget sets the number of trials.
func budget(n int32) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.Spec.MaxTrialCount = &n
		e.Spec.ParallelTrialCount = ptr.To(min(n, 2))
	}
}

func (w *world) create(e *v1beta1.Experiment) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
}

// read reads an experiment again.
func (w *world) read(e *v1beta1.Experiment) *v1beta1.Experiment {
	w.t.Helper()
	var got v1beta1.Experiment
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(e), &got); err != nil {
		w.t.Fatal(err)
	}
	return &got
}

// ends waits until the experiment's last condition has the reason.
func (w *world) ends(e *v1beta1.Experiment, reason string) *v1beta1.Experiment {
	w.t.Helper()
	var got *v1beta1.Experiment
	w.eventually("experiment "+e.Name+" ends with "+reason, func() string {
		got = w.read(e)
		if c := got.LastCondition(); got.IsCompleted() {
			if c.Reason != reason {
				w.t.Fatalf("experiment %s ended with %+v, want %s", e.Name, c, reason)
			}
			return ""
		}
		return fmt.Sprintf("%+v", got.Status.Conditions)
	})
	return got
}

func (w *world) trialsOf(e *v1beta1.Experiment) []v1beta1.Trial {
	w.t.Helper()
	var list v1beta1.TrialList
	if err := w.client.List(w.t.Context(), &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1beta1.LabelExperiment: e.Name}); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b v1beta1.Trial) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

func names(trials []v1beta1.Trial) []string {
	var out []string
	for i := range trials {
		out = append(out, trials[i].Name)
	}
	return out
}

func numbered(experiment string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, v1beta1.TrialName(experiment, i))
	}
	return out
}

// noJobs waits until the namespace has no job.
func (w *world) noJobs() {
	w.t.Helper()
	w.eventually("jobs are removed", func() string {
		var jobs batchv1.JobList
		if err := w.client.List(w.t.Context(), &jobs, client.InNamespace(w.namespace)); err != nil {
			return err.Error()
		}
		if len(jobs.Items) > 0 {
			return fmt.Sprintf("%d jobs", len(jobs.Items))
		}
		return ""
	})
}

// byNumber reports the number of the trial as its loss, least at number best.
func byNumber(best int) func(string) ending {
	return func(name string) ending {
		var n int
		_, _ = fmt.Sscanf(name[strings.LastIndex(name, "-")+1:], "%d", &n)
		return ending{points: []float64{9, 1 + float64(max(n-best, best-n))}}
	}
}

func never(string) ending { return ending{never: true} }

func TestExperimentRunsToTheEnd(t *testing.T) {
	w := newWorld(t, byNumber(3))
	w.start()
	e := w.experiment("exp")
	w.create(e)
	got := w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	trials := w.trialsOf(e)
	if diff := cmp.Diff(numbered("exp", 6), names(trials)); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	if got.Status.TrialsSucceeded != 6 || got.Status.Trials != 6 || got.Status.StartTime == nil || got.Status.CompletionTime == nil {
		t.Errorf("status: %+v", got.Status)
	}
	best := got.Status.CurrentOptimalTrial
	want := v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: "1", Max: "9", Latest: "1"}}}
	if best.BestTrialName != "exp-0003" || !cmp.Equal(want, best.Observation) {
		t.Errorf("best: %+v", best)
	}
	for _, tr := range trials {
		if !tr.IsSucceeded() || tr.Status.StartTime == nil || tr.Status.CompletionTime == nil || tr.Labels["team"] != "a" || len(tr.Spec.ParameterAssignments) != 1 {
			t.Errorf("trial %s: %+v %+v", tr.Name, tr.Labels, tr.Status)
		}
		if raw := string(tr.Spec.RunSpec.Raw); strings.Contains(raw, "trialParameters") {
			t.Errorf("trial %s is not rendered: %s", tr.Name, raw)
		}
	}
	if w.peak > 2 {
		t.Errorf("%d jobs ran at once, 2 were allowed", w.peak)
	}
	w.noJobs()
	w.eventually("the suggestion is complete", func() string {
		var s v1beta1.Suggestion
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(e), &s); err != nil {
			return err.Error()
		}
		if s.Spec.Requests != 6 || s.Status.SuggestionCount != 6 || len(s.Status.Suggestions) != 6 || !s.IsSucceeded() {
			return fmt.Sprintf("%+v", s.Status)
		}
		return ""
	})
	counted := map[string]float64{
		"katib_experiment_created_total": 1, "katib_experiment_succeeded_total": 1, "katib_experiments_current": 1,
		"katib_trial_created_total": 6, "katib_trial_succeeded_total": 6, "katib_trials_current": 6,
		"vernier_trials_finished_total": 6, "vernier_trials": 6, "vernier_experiments_completed_total": 1, "vernier_experiments": 1,
		"vernier_experiment_best_value": 1,
	}
	if diff := cmp.Diff(counted, w.metrics(slices.Collect(maps.Keys(counted))...)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if err := w.client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.eventually("deletions are counted", func() string {
		return cmp.Diff(map[string]float64{"katib_experiment_deleted_total": 1}, w.metrics("katib_experiment_deleted_total"))
	})
}

// metrics are the sums of the namespace's metrics of these names.
func (w *world) metrics(names ...string) map[string]float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			ours := slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "namespace" && l.GetValue() == w.namespace })
			if ours && slices.Contains(names, f.GetName()) {
				sums[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sums
}

// A model that takes more time to learn than a reconcile waits for holds new
// trials back until it is ready; nothing but its end wakes the experiment then.
func TestModelThatTakesItsTimeStallsNothing(t *testing.T) {
	w := newWorld(t, byNumber(3))
	w.start()
	e := w.experiment("model", budget(30), func(e *v1beta1.Experiment) {
		e.Spec.Algorithm.AlgorithmName = "bayesianoptimization"
		for i := range 15 {
			p := e.Spec.Parameters[0]
			p.Name = fmt.Sprint("p", i)
			e.Spec.Parameters = append(e.Spec.Parameters, p)
		}
	})
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	trials := w.trialsOf(e)
	if diff := cmp.Diff(numbered("model", 30), names(trials)); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	if why := trials[29].Annotations[v1beta1.AnnotationWhy]; !strings.Contains(why, "Gaussian process") {
		t.Errorf("the last trial was made because %q", why)
	}
}

func TestGoalStopsRunningTrials(t *testing.T) {
	w := newWorld(t, func(name string) ending {
		if name == "exp-0001" {
			return ending{points: []float64{0.01}}
		}
		return ending{never: true}
	})
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.Objective.Goal = ptr.To(0.05)
		e.Spec.ParallelTrialCount = ptr.To[int32](3)
	})
	w.create(e)
	got := w.ends(e, v1beta1.ReasonExperimentGoalReached)
	if got.Status.CurrentOptimalTrial.BestTrialName != "exp-0001" {
		t.Errorf("best: %+v", got.Status.CurrentOptimalTrial)
	}
	w.eventually("the other trials are killed", func() string {
		got := w.read(e)
		if got.Status.TrialsKilled == 0 || got.Status.TrialsRunning+got.Status.TrialsPending > 0 {
			return fmt.Sprintf("%+v", got.Status)
		}
		return ""
	})
	w.noJobs()
	for _, tr := range w.trialsOf(e) {
		if c := tr.LastCondition(); tr.Name != "exp-0001" && (c.Type != v1beta1.TrialKilled || !strings.Contains(c.Message, "GoalReached")) {
			t.Errorf("trial %s: %+v", tr.Name, c)
		}
	}
}

func TestFailures(t *testing.T) {
	w := newWorld(t, func(string) ending { return ending{failed: "it broke", points: []float64{3}} })
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) { e.Spec.MaxFailedTrialCount = ptr.To[int32](2) })
	w.create(e)
	got := w.ends(e, v1beta1.ReasonExperimentFailed)
	if !strings.Contains(got.LastCondition().Message, "maxFailedTrialCount is 2") {
		t.Errorf("message: %s", got.LastCondition().Message)
	}
	tr := w.trialsOf(e)[0]
	if c := tr.LastCondition(); c.Type != v1beta1.TrialFailed || !strings.Contains(c.Message, "Job reason: BackoffLimitExceeded. Job message: it broke") {
		t.Errorf("condition: %+v", c)
	}
	if tr.Status.Observation == nil || tr.Status.Observation.Metrics[0].Latest != "3" {
		t.Errorf("what was measured is lost: %+v", tr.Status.Observation)
	}
	if got.Status.CurrentOptimalTrial.BestTrialName != "" {
		t.Errorf("a failed trial is best: %+v", got.Status.CurrentOptimalTrial)
	}
	w.noJobs()
}

func TestMetricsUnavailable(t *testing.T) {
	w := newWorld(t, func(string) ending { return ending{other: "accuracy"} })
	w.start()
	e := w.experiment("exp", budget(3))
	w.create(e)
	got := w.ends(e, v1beta1.ReasonExperimentFailed)
	if got.Status.TrialMetricsUnavailable != 3 || got.Status.Trials != 3 {
		t.Errorf("status: %+v", got.Status)
	}
	c := w.trialsOf(e)[0].Status.Conditions
	message := c[len(c)-1].Message
	for _, part := range []string{`"loss"`, "StdOut", "accuracy", "loss=0.123"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message lacks %q: %s", part, message)
		}
	}
}

func TestResume(t *testing.T) {
	w := newWorld(t, byNumber(0))
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.MaxTrialCount = ptr.To[int32](2)
		e.Spec.ResumePolicy = v1beta1.LongRunning
	})
	w.create(e)
	got := w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	got.Spec.MaxTrialCount = ptr.To[int32](5)
	if err := w.client.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	w.eventually("five trials have ended", func() string {
		if got = w.read(e); got.Status.TrialsSucceeded == 5 && got.IsCompleted() {
			return ""
		}
		return fmt.Sprintf("%+v", got.Status)
	})
	if !got.IsRestarting() {
		t.Errorf("conditions: %+v", got.Status.Conditions)
	}
	if diff := cmp.Diff(numbered("exp", 5), names(w.trialsOf(e))); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
}

func TestExhaustedSpaceEndsTheExperiment(t *testing.T) {
	w := newWorld(t, byNumber(0))
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.Algorithm.AlgorithmName = "grid"
		e.Spec.Parameters[0] = v1beta1.ParameterSpec{
			Name: "lr", ParameterType: v1beta1.ParameterTypeCategorical,
			FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"a", "b", "c"}},
		}
	})
	w.create(e)
	got := w.ends(e, v1beta1.ReasonExperimentSuggestionEndReached)
	if got.Status.TrialsSucceeded != 3 {
		t.Errorf("status: %+v", got.Status)
	}
	seen := map[string]bool{}
	for _, tr := range w.trialsOf(e) {
		seen[tr.Spec.ParameterAssignments[0].Value] = true
	}
	if len(seen) != 3 {
		t.Errorf("tried %v, want a, b and c", seen)
	}
}
