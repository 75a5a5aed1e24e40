package study

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	kept, err := New(exp)
	if err != nil {
		t.Fatal(err)
	}
	s := kept.question()
	var initial []string
	for _, p := range s.Initial {
		initial = append(initial, fmt.Sprint(s.Space.Assignments(p)))
	}
	if diff := cmp.Diff([]string{"[{model mlp} {layers 2}]", "[{model svm}]"}, initial); diff != "" {
		t.Error(diff)
	}
	if s.Budget != 9 || s.Parallel != 4 || s.Objectives[0].Direction != suggest.Maximize {
		t.Errorf("budget %d, parallel %d, objectives %v", s.Budget, s.Parallel, s.Objectives)
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
			errs := Check(&exp.Spec)
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
		"no place for checkpoints": {
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
			errs := Check(&exp.Spec)
			if len(errs) != 1 || errs[0].Field != c.want {
				t.Errorf("got %v, want one error at %s", errs, c.want)
			}
		})
	}
	if errs := Check(&conditional().Spec); len(errs) > 0 {
		t.Errorf("a good experiment: %v", errs)
	}
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
			if errs := Check(&exp.Spec); len(errs) > 0 {
				t.Fatal(errs)
			}
			kept, err := New(exp)
			if err != nil {
				t.Fatal(err)
			}
			proposals, err := kept.Propose(t.Context(), 1)
			if err != nil || len(proposals) != 1 {
				t.Fatalf("%d proposals, %v", len(proposals), err)
			}
			var names []string
			for _, a := range proposals[0].Assignments {
				names = append(names, a.Name)
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Error(diff)
			}
			trial := aTrial(0, v1beta1.TrialCreated)
			trial.Spec.ParameterAssignments = proposals[0].Assignments
			kept.Update([]*v1beta1.Trial{trial})
			if s := kept.question(); !s.Space.Contains(s.Trials[0].Point) {
				t.Errorf("the point of %v is not found again", proposals[0].Assignments)
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
		if errs := Check(&exp.Spec); len(errs) == 0 || errs[0].Field != c.want {
			t.Errorf("%s: got %v, want an error at %s", name, errs, c.want)
		}
	}
}

func TestRepeatsAreAllowedByTheTemplateOrTheSpec(t *testing.T) {
	seeded := &v1beta1.TrialTemplate{TrialSource: v1beta1.TrialSource{TrialSpec: &runtime.RawExtension{Raw: []byte(`{"args":["--seed=${trialSeed}"]}`)}}}
	plain := &v1beta1.TrialTemplate{TrialSource: v1beta1.TrialSource{TrialSpec: &runtime.RawExtension{Raw: []byte(`{"args":["--lr=1"]}`)}}}
	for name, c := range map[string]struct {
		template *v1beta1.TrialTemplate
		policy   v1beta1.RepeatPolicy
		want     bool
	}{
		"a template with a seed":          {seeded, "", true},
		"a template with a seed, never":   {seeded, v1beta1.RepeatNever, false},
		"a template without a seed":       {plain, "", false},
		"a template without a seed, auto": {plain, v1beta1.RepeatAuto, true},
		"no template":                     {nil, "", false},
		"no template, auto":               {nil, v1beta1.RepeatAuto, true},
	} {
		t.Run(name, func(t *testing.T) {
			exp := conditional()
			exp.Spec.TrialTemplate, exp.Spec.Repeats = c.template, c.policy
			s, err := New(exp)
			if err != nil || s.question().Repeats != c.want {
				t.Errorf("repeats are %v, want %v; %v", s.question().Repeats, c.want, err)
			}
		})
	}
}

// The recommendation follows the trials, and says what it knows of their noise.
func TestTheRankingRecommends(t *testing.T) {
	exp := conditional()
	exp.Spec.Parameters = []v1beta1.ParameterSpec{whole("width", "1", "20", nil)}
	exp.Spec.InitialTrials, exp.Spec.Repeats = nil, v1beta1.RepeatAuto
	s, err := New(exp)
	if err != nil {
		t.Fatal(err)
	}
	var trials []*v1beta1.Trial
	add := func(width int, accuracy string) {
		trials = append(trials, resultOf(len(trials), fmt.Sprint(width), accuracy))
		s.Update(trials)
		s.Recommend(t.Context())
	}
	for width := 1; width <= 12; width++ {
		add(width, fmt.Sprint(0.9-0.01*float64((width-8)*(width-8))))
	}
	add(2, "0.99") // lucky: its neighbours and its own first result are far below
	r := s.Ranking().Recommended()
	if r == nil || r.ParameterAssignments[0].Value != "8" || r.TrialName != "tree-0007" || r.Trials != 1 {
		t.Fatalf("recommended is %+v, want width 8 of trial 7", r)
	}
	if best := s.Ranking().Best(); best.Name != "tree-0012" {
		t.Errorf("the best observed is %s", best.Name)
	}
	cut, stop := context.WithCancel(t.Context())
	stop()
	before := *r
	trials = append(trials, resultOf(len(trials), "8", "0.9"))
	s.Update(trials)
	if s.Recommend(cut); !cmp.Equal(s.Ranking().Recommended(), &before) {
		t.Errorf("when there was no time, %+v is recommended, want the last one", s.Ranking().Recommended())
	}
	if s.Recommend(t.Context()); s.Ranking().Recommended() == nil || s.Ranking().Recommended().Trials != 2 {
		t.Errorf("with time again, %+v is recommended, want two results of width 8", s.Ranking().Recommended())
	}
	exp.Spec.Repeats = v1beta1.RepeatNever
	if s, err = New(exp); err != nil {
		t.Fatal(err)
	}
	s.Update(trials)
	if s.Recommend(t.Context()); s.Ranking().Recommended() != nil {
		t.Error("something is recommended although trials are not repeated")
	}
}

func resultOf(number int, width, accuracy string) *v1beta1.Trial {
	trial := &v1beta1.Trial{}
	trial.Name = v1beta1.TrialName("tree", number)
	trial.Labels = map[string]string{v1beta1.LabelTrialNumber: fmt.Sprint(number)}
	trial.Spec.ParameterAssignments = assigned("width", width)
	trial.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "accuracy", Min: accuracy, Max: accuracy, Latest: accuracy}}}
	trial.MarkSucceeded("", metav1.Time{})
	return trial
}
