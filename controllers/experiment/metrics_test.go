package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/metrics"
)

func TestWhatRunsAndWhatWaitsIsSeenFromTheObjects(t *testing.T) {
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }
	exp := func(name string, age time.Duration, change func(*v1beta1.Experiment)) *v1beta1.Experiment {
		e := experimentNamed(name)
		e.CreationTimestamp, e.Spec.MaxTrialCount, e.Status.Trials = ago(age), ptr.To[int32](10), 4
		e.MarkCreated("m", ago(age))
		e.MarkRunning("m", ago(age))
		e.Spec.TrialTemplate = &v1beta1.TrialTemplate{}
		change(e)
		return e
	}
	trial := func(of *v1beta1.Experiment, name string, began time.Duration) *v1beta1.Trial {
		tr := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, v1beta1.GroupVersion.WithKind("Experiment"))}}}
		tr.MarkCreated("m", ago(began))
		tr.MarkRunning("m", ago(began))
		tr.Status.LastReconcileTime = ptr.To(ago(time.Second)) // says only that something was written
		return tr
	}
	same := func(*v1beta1.Experiment) {}
	stuck, reporting := exp("stuck", 5*time.Hour, same), exp("reporting", 4*time.Hour, same)
	fresh := exp("fresh", time.Minute, func(e *v1beta1.Experiment) { e.Namespace, e.Status.Trials = "other", 20 })
	ended := exp("ended", 9*time.Hour, func(e *v1beta1.Experiment) {
		e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "m", ago(8*time.Hour))
		e.Spec.Objective = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMaximize, ObjectiveMetricName: "acc"}
		e.Status.CurrentOptimalTrial.Observation.Metrics = []v1beta1.Metric{{Name: "acc", Min: "0.1", Max: "0.9", Latest: "0.8"}, {Name: "loss", Latest: "3"}}
	})
	suspended := exp("suspended", 9*time.Hour, suspend)
	unasked := exp("unasked", 9*time.Hour, func(e *v1beta1.Experiment) { e.Spec.TrialTemplate = nil })
	silent := exp("silent", 3*time.Hour, func(e *v1beta1.Experiment) {
		e.Namespace, e.Spec.TrialTemplate, e.Status.TrialsRunning = "outside", nil, 1
	})
	resumed := exp("resumed", 9*time.Hour, func(e *v1beta1.Experiment) {
		e.Namespace = "resumed"
		e.Status.Conditions[len(e.Status.Conditions)-1].LastUpdateTime = ago(10 * time.Minute)
	})
	live := trial(reporting, "b", 4*time.Hour)
	live.Status.Observation = &v1beta1.Observation{}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{stuck, reporting, fresh, ended, suspended, unasked, silent, resumed, trial(stuck, "a1", 3*time.Hour), trial(stuck, "a2", 2*time.Hour), live}
	reg := prometheus.NewRegistry()
	NewMetrics(metrics.Options{Registry: reg, Experiments: 10}, fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), func() time.Time { return noon })
	want := `
# HELP vernier_budget_trials_remaining Trials that experiments which have not ended may still start, by maxTrialCount.
# TYPE vernier_budget_trials_remaining gauge
vernier_budget_trials_remaining{namespace="ml"} 24
vernier_budget_trials_remaining{namespace="other"} 0
vernier_budget_trials_remaining{namespace="outside"} 6
vernier_budget_trials_remaining{namespace="resumed"} 6
# HELP vernier_experiment_best_value The objective of the best trial of the newest experiments, as many as --metrics-experiments says.
# TYPE vernier_experiment_best_value gauge
vernier_experiment_best_value{experiment="ended",metric="acc",namespace="ml"} 0.9
# HELP vernier_experiment_idle_seconds Of the experiments that have not ended, the longest time since a trial of one began, reported or ended. Suspended ones and those without a trialTemplate count while trials run.
# TYPE vernier_experiment_idle_seconds gauge
vernier_experiment_idle_seconds{namespace="ml"} 7200
vernier_experiment_idle_seconds{namespace="other"} 60
vernier_experiment_idle_seconds{namespace="outside"} 10800
vernier_experiment_idle_seconds{namespace="resumed"} 600
# HELP vernier_experiments Experiments that exist, by phase (the last condition).
# TYPE vernier_experiments gauge
vernier_experiments{namespace="ml",phase="Running"} 4
vernier_experiments{namespace="ml",phase="Succeeded"} 1
vernier_experiments{namespace="other",phase="Running"} 1
vernier_experiments{namespace="outside",phase="Running"} 1
vernier_experiments{namespace="resumed",phase="Running"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
