package experiment

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/metrics"
	"github.com/vernier-ml/vernier/controllers/study"
)

func choice(name string, list ...string) v1beta1.ParameterSpec {
	return v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: list}}
}

func whole(name, min, max string, when *v1beta1.ParameterCondition) v1beta1.ParameterSpec {
	return v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: min, Max: max}, When: when}
}

func assigned(pairs ...string) []v1beta1.ParameterAssignment {
	var out []v1beta1.ParameterAssignment
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, v1beta1.ParameterAssignment{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func conditional() *v1beta1.Experiment {
	exp := &v1beta1.Experiment{}
	exp.Name, exp.Namespace = "tree", "default"
	exp.Spec = v1beta1.ExperimentSpec{
		Parameters: []v1beta1.ParameterSpec{
			choice("model", "svm", "mlp"),
			whole("layers", "1", "3", &v1beta1.ParameterCondition{Parameter: "model", In: []string{"mlp"}}),
		},
		Objective:          &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMaximize, ObjectiveMetricName: "accuracy"},
		Algorithm:          &v1beta1.AlgorithmSpec{AlgorithmName: "random"},
		ParallelTrialCount: ptr.To[int32](4),
		MaxTrialCount:      ptr.To[int32](9),
		InitialTrials: []v1beta1.InitialTrial{
			{ParameterAssignments: assigned("model", "mlp", "layers", "2")},
			{ParameterAssignments: assigned("model", "svm")},
		},
	}
	return exp
}

func TestArgumentsOfInactiveParametersAreLeftOut(t *testing.T) {
	exp := conditional()
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{TrialParameters: []v1beta1.TrialParameterSpec{
		{Name: "model", Reference: "model"}, {Name: "layers", Reference: "layers"},
	}}
	exp.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{}
	template := `{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{"spec":{"containers":[{"name":"c",
		"command":["train","--model=${trialParameters.model}","--layers=${trialParameters.layers}"]}]}}}}`
	for want, p := range map[string]study.Proposal{
		`["train","--model=svm"]`:     {Assignments: assigned("model", "svm")},
		`"--model=mlp","--layers=3"]`: {Assignments: assigned("model", "mlp", "layers", "3")},
	} {
		trial, err := newTrial(exp, []byte(template), 0, p)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(trial.Spec.RunSpec.Raw); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

func TestEachTrialHasASeedOfItsOwn(t *testing.T) {
	exp := conditional()
	exp.Spec.Seed = ptr.To[int64](5)
	exp.Spec.TrialTemplate, exp.Spec.MetricsCollectorSpec = &v1beta1.TrialTemplate{}, &v1beta1.MetricsCollectorSpec{}
	template := []byte(`{"apiVersion":"batch/v1","kind":"Job","spec":{"seed":"${trialSeed}"}}`)
	seeds := map[string]bool{}
	for _, n := range []int{0, 1, 1} {
		trial, err := newTrial(exp, template, n, study.Proposal{Assignments: assigned("model", "svm")})
		if err != nil {
			t.Fatal(err)
		}
		seed := trial.Annotations[v1beta1.AnnotationSeed]
		if got := string(trial.Spec.RunSpec.Raw); seed == "" || !strings.Contains(got, `"seed":"`+seed+`"`) {
			t.Errorf("trial %d has the seed %q and runs %s", n, seed, got)
		}
		seeds[seed] = true
	}
	if len(seeds) != 2 {
		t.Errorf("the seeds of trials 0, 1 and 1 are %v", seeds)
	}
}

func TestTrialsGetWhatTheExperimentSaysOfCollectors(t *testing.T) {
	exp := conditional()
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{}
	exp.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{}
	const limit = v1beta1.AnnotationCollector + "cpu-limit"
	for want, annotations := range map[string]map[string]string{"": {"other": "1"}, "off": {v1beta1.AnnotationCollectorRate: "off", limit: "off", "other": "1"}} {
		exp.Annotations = annotations
		trial, err := newTrial(exp, []byte(`{"apiVersion":"batch/v1","kind":"Job"}`), 0, study.Proposal{})
		if err != nil {
			t.Fatal(err)
		}
		if got := trial.Annotations; got[v1beta1.AnnotationCollectorRate] != want || got[limit] != want || got["other"] != "" {
			t.Errorf("annotations %v, want %q", got, want)
		}
	}
}

// Hyperband's resource is a parameter, and what it gave a trial comes back.
func TestResourceGoesWithTheTrial(t *testing.T) {
	exp := conditional()
	exp.Spec.InitialTrials = nil
	exp.Spec.Parameters = append(exp.Spec.Parameters, whole("epochs", "1", "9", nil))
	exp.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "hyperband", AlgorithmSettings: []v1beta1.AlgorithmSetting{
		{Name: "resource_name", Value: "epochs"}, {Name: "eta", Value: "3"}, {Name: "r_l", Value: "9"},
	}}
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{}
	exp.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{}
	if errs := study.Check(&exp.Spec); len(errs) > 0 {
		t.Fatal(errs)
	}
	s, err := study.New(exp)
	if err != nil {
		t.Fatal(err)
	}
	proposals, err := s.Propose(t.Context(), 2)
	if err != nil || len(proposals) != 2 {
		t.Fatalf("%d proposals, %v", len(proposals), err)
	}
	for n, p := range proposals {
		trial, err := newTrial(exp, []byte(`{"apiVersion":"batch/v1","kind":"Job"}`), n, p)
		if err != nil {
			t.Fatal(err)
		}
		if p.Resource < 1 || trial.Annotations[v1beta1.AnnotationResource] != fmt.Sprint(p.Resource) {
			t.Errorf("trial %d: resource %v, annotations %v", n, p.Resource, trial.Annotations)
		}
		if epochs := trial.Spec.ParameterAssignments[len(trial.Spec.ParameterAssignments)-1]; epochs.Value != fmt.Sprint(p.Resource) {
			t.Errorf("trial %d trains for %v", n, epochs)
		}
	}
}

func newMetrics(t *testing.T) *Metrics {
	t.Helper()
	return NewMetrics(metrics.Options{Registry: prometheus.NewRegistry()}, nil, nil)
}

func TestATrialKnowsItsCheckpointsAndItsParent(t *testing.T) {
	setting := &v1beta1.AlgorithmSpec{AlgorithmName: "pbt", AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "suggestion_trial_dir", Value: "/old/"}}}
	cases := map[string]struct {
		template  *v1beta1.CheckpointSpec
		algorithm *v1beta1.AlgorithmSpec
		meta      map[string]string
		want      *v1beta1.TrialCheckpoints
	}{
		"none": {algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "asha"}, meta: map[string]string{"parent": "3"}},
		"Katib's setting": {algorithm: setting, want: &v1beta1.TrialCheckpoints{
			CheckpointSpec: v1beta1.CheckpointSpec{Path: "/old", ClaimName: "tree-pbt"}, Folder: "tree-12345678",
		}},
		"the template's, with a parent": {
			template: &v1beta1.CheckpointSpec{Path: "/ckpt", ClaimName: "mine"}, algorithm: setting, meta: map[string]string{"parent": "3"},
			want: &v1beta1.TrialCheckpoints{CheckpointSpec: v1beta1.CheckpointSpec{Path: "/ckpt", ClaimName: "mine"}, Folder: "tree-12345678", Parent: "tree-0003"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			exp := conditional()
			exp.UID, exp.Spec.Algorithm = "1234567890", c.algorithm
			exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{Checkpoints: c.template}
			exp.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{}
			trial, err := newTrial(exp, []byte(`{"apiVersion":"batch/v1","kind":"Job"}`), 7, study.Proposal{Meta: c.meta})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, trial.Spec.Checkpoints); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
