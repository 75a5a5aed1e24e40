package experiment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
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

func TestStudyHasWhatTheExperimentSays(t *testing.T) {
	exp := conditional()
	m, err := newSearcher(&exp.Spec)
	if err != nil {
		t.Fatal(err)
	}
	s := m.study(exp, nil)
	var initial []string
	for _, p := range s.Initial {
		initial = append(initial, fmt.Sprint(m.space.Assignments(p)))
	}
	if diff := cmp.Diff([]string{"[{model mlp} {layers 2}]", "[{model svm}]"}, initial); diff != "" {
		t.Error(diff)
	}
	if s.Budget != 9 || s.Parallel != 4 || s.Objectives[0].Direction != suggest.Maximize {
		t.Errorf("budget %d, parallel %d, objectives %v", s.Budget, s.Parallel, s.Objectives)
	}
}

func TestInactiveParametersAreEmptyInTheTemplate(t *testing.T) {
	exp := conditional()
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{TrialParameters: []v1beta1.TrialParameterSpec{
		{Name: "model", Reference: "model"}, {Name: "layers", Reference: "layers"},
	}}
	exp.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{}
	template := `{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{"spec":{"containers":[{"name":"c",
		"command":["train","--model=${trialParameters.model}","--layers=${trialParameters.layers}"]}]}}}}`
	for want, p := range map[string]proposal{
		`"--model=svm","--layers="`:  {assignments: assigned("model", "svm")},
		`"--model=mlp","--layers=3"`: {assignments: assigned("model", "mlp", "layers", "3")},
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

func TestTrialsGetTheExperimentsRate(t *testing.T) {
	exp := conditional()
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{}
	exp.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{}
	for want, annotations := range map[string]map[string]string{"": {"other": "1"}, "off": {v1beta1.AnnotationCollectorRate: "off", "other": "1"}} {
		exp.Annotations = annotations
		trial, err := newTrial(exp, []byte(`{"apiVersion":"batch/v1","kind":"Job"}`), 0, proposal{})
		if err != nil {
			t.Fatal(err)
		}
		if got := trial.Annotations; got[v1beta1.AnnotationCollectorRate] != want || got["other"] != "" {
			t.Errorf("annotations %v, want the rate %q", got, want)
		}
	}
}

func TestAnInitialTrialThatDoesNotFitSaysWhy(t *testing.T) {
	cases := map[string]struct {
		assigned []v1beta1.ParameterAssignment
		want     string
	}{
		"a value out of range":        {assigned("model", "mlp", "layers", "7"), `"layers" is "7"; it must be from 1 to 3 in steps of 1`},
		"a value that is no number":   {assigned("model", "mlp", "layers", "two"), `"layers" is "two"; it must be from 1 to 3 in steps of 1`},
		"a word that is not listed":   {assigned("model", "tree"), `"model" is "tree"; it must be one of svm, mlp`},
		"no value":                    {assigned("model", "mlp"), `"layers" has no value; it must be from 1 to 3 in steps of 1`},
		"a name that is none":         {assigned("model", "svm", "width", "3"), `"width" is no parameter; correct or remove it`},
		"a name twice":                {assigned("model", "svm", "model", "svm"), `"model" has two values; remove one`},
		"the second constraint fails": {assigned("model", "mlp", "layers", "2"), "parameterConstraints[1] (layers != 2) does not hold; change the values, or leave the trial out"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			exp := conditional()
			exp.Spec.InitialTrials = []v1beta1.InitialTrial{{ParameterAssignments: c.assigned}}
			exp.Spec.ParameterConstraints = []string{"layers <= 3", "layers != 2"}
			errs := Algorithms{}.Check(&exp.Spec)
			if len(errs) != 1 {
				t.Fatalf("got %v, want one error", errs)
			}
			want := "spec.initialTrials[0].parameterAssignments: Invalid value: is not in the search space: " + c.want
			if diff := cmp.Diff(want, errs[0].Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckFindsFaultsOfTheAdditions(t *testing.T) {
	cases := map[string]struct {
		change func(*v1beta1.ExperimentSpec)
		want   string
	}{
		"condition on nothing": {
			func(s *v1beta1.ExperimentSpec) { s.Parameters[1].When.Parameter = "modell" },
			"spec.parameters[1].when",
		},
		"short trials without a parameter for it": {
			func(s *v1beta1.ExperimentSpec) { s.Algorithm.AlgorithmName = "hyperband" },
			"spec.algorithm",
		},
		"checkpoints": {
			func(s *v1beta1.ExperimentSpec) { s.Algorithm.AlgorithmName = "pbt" },
			"spec.algorithm",
		},
		"constraint that cannot be read": {
			func(s *v1beta1.ExperimentSpec) { s.ParameterConstraints = []string{"layers <= 3", "layers <= width"} },
			"spec.parameterConstraints[1]",
		},
		"initial trial against a constraint": {
			func(s *v1beta1.ExperimentSpec) { s.ParameterConstraints = []string{"layers != 2"} },
			"spec.initialTrials[0].parameterAssignments",
		},
		"initial trial out of range": {
			func(s *v1beta1.ExperimentSpec) { s.InitialTrials[0].ParameterAssignments[1].Value = "7" },
			"spec.initialTrials[0].parameterAssignments",
		},
		"initial trial without a value": {
			func(s *v1beta1.ExperimentSpec) {
				s.InitialTrials[0].ParameterAssignments = assigned("model", "mlp")
			},
			"spec.initialTrials[0].parameterAssignments",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			exp := conditional()
			c.change(&exp.Spec)
			errs := Algorithms{}.Check(&exp.Spec)
			if len(errs) != 1 || errs[0].Field != c.want {
				t.Errorf("got %v, want one error at %s", errs, c.want)
			}
		})
	}
	if errs := (Algorithms{}).Check(&conditional().Spec); len(errs) > 0 {
		t.Errorf("a good experiment: %v", errs)
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
	if errs := (Algorithms{}).Check(&exp.Spec); len(errs) > 0 {
		t.Fatal(errs)
	}
	c := New(Options{Now: func() time.Time { return noon }, Metrics: newMetrics(t)})
	proposals, err := c.propose(t.Context(), exp, nil, 2)
	if err != nil || len(proposals) != 2 {
		t.Fatalf("%d proposals, %v", len(proposals), err)
	}
	m, err := c.searcher(exp)
	if err != nil {
		t.Fatal(err)
	}
	for n, p := range proposals {
		trial, err := newTrial(exp, []byte(`{"apiVersion":"batch/v1","kind":"Job"}`), n, p)
		if err != nil {
			t.Fatal(err)
		}
		if p.resource < 1 || trialOf(&exp.Spec, m.words, trial, n).Resource != p.resource {
			t.Errorf("trial %d: resource %v, annotations %v", n, p.resource, trial.Annotations)
		}
		if epochs := trial.Spec.ParameterAssignments[len(trial.Spec.ParameterAssignments)-1]; epochs.Value != fmt.Sprint(p.resource) {
			t.Errorf("trial %d trains for %v", n, epochs)
		}
	}
}

func newMetrics(t *testing.T) *Metrics {
	t.Helper()
	m, err := NewMetrics(prometheus.NewRegistry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func nas(algorithm string) *v1beta1.Experiment {
	exp := conditional()
	exp.Spec.Parameters, exp.Spec.InitialTrials = nil, nil
	exp.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: algorithm}
	filter := choice("filter_size", "3", "5")
	stride := whole("stride", "1", "2", nil)
	stride.FeasibleSpace.Step = "1"
	exp.Spec.NasConfig = &v1beta1.NasConfig{
		GraphConfig: v1beta1.GraphConfig{NumLayers: ptr.To[int32](4), InputSizes: []int32{32, 32, 3}, OutputSizes: []int32{10}},
		Operations: []v1beta1.Operation{
			{OperationType: "convolution", Parameters: []v1beta1.ParameterSpec{filter, stride}},
			{OperationType: "reduction", Parameters: []v1beta1.ParameterSpec{choice("reduction_type", "max_pooling", "avg_pooling")}},
		},
	}
	return exp
}

// The trials of an architecture search are given what Katib's programs read, and
// their points are found again.
func TestArchitecturesAreWrittenAsInKatib(t *testing.T) {
	for algorithm, want := range map[string][]string{
		"enas":                  {"architecture", "nn_config"},
		"regularized-evolution": {"architecture", "nn_config"},
		"random":                {"architecture", "nn_config"},
		"darts":                 {"algorithm-settings", "search-space", "num-layers"},
	} {
		t.Run(algorithm, func(t *testing.T) {
			exp := nas(algorithm)
			if algorithm == "darts" {
				for i := range exp.Spec.NasConfig.Operations {
					exp.Spec.NasConfig.Operations[i].Parameters = []v1beta1.ParameterSpec{choice("filter_size", "3", "5")}
				}
			}
			if errs := (Algorithms{}).Check(&exp.Spec); len(errs) > 0 {
				t.Fatal(errs)
			}
			c := New(Options{Now: func() time.Time { return noon }, Metrics: newMetrics(t)})
			proposals, err := c.propose(t.Context(), exp, nil, 1)
			if err != nil || len(proposals) != 1 {
				t.Fatalf("%d proposals, %v", len(proposals), err)
			}
			var names []string
			trial := aTrial(0, created)
			for _, a := range proposals[0].assignments {
				names = append(names, a.Name)
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Error(diff)
			}
			trial.Spec.ParameterAssignments = proposals[0].assignments
			m, err := c.searcher(exp)
			if err != nil {
				t.Fatal(err)
			}
			if s := m.study(exp, []*v1beta1.Trial{trial}); !m.space.Contains(s.Trials[0].Point) {
				t.Errorf("the point of %v is not found again", proposals[0].assignments)
			}
		})
	}
}

func TestFaultsOfArchitecturesAreFound(t *testing.T) {
	cases := map[string]struct {
		algorithm string
		change    func(*v1beta1.ExperimentSpec)
		want      string
	}{
		"no layers":     {"enas", func(s *v1beta1.ExperimentSpec) { s.NasConfig.GraphConfig.NumLayers = nil }, "spec.nasConfig"},
		"no operations": {"enas", func(s *v1beta1.ExperimentSpec) { s.NasConfig.Operations = nil }, "spec.nasConfig"},
		"a wrong setting": {"darts", func(s *v1beta1.ExperimentSpec) {
			s.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "num_epochs", Value: "many"}}
		}, "spec.algorithm.algorithmSettings"},
	}
	for name, c := range cases {
		exp := nas(c.algorithm)
		c.change(&exp.Spec)
		if errs := (Algorithms{}).Check(&exp.Spec); len(errs) == 0 || errs[0].Field != c.want {
			t.Errorf("%s: got %v, want an error at %s", name, errs, c.want)
		}
	}
}
