package script

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func aSpec(t *testing.T, argv []string, parameters ...string) Spec {
	t.Helper()
	s := Spec{
		Name: "train", Argv: argv, Dir: "/work", Metrics: "text", Algorithm: "random", Pass: AsFlags, Trials: 9, Parallel: 3,
		Objectives: []v1beta1.ObjectiveMetric{{ObjectiveMetricName: "loss", Type: v1beta1.ObjectiveTypeMinimize}},
	}
	for _, text := range parameters {
		p, err := ParseParameter(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Parameters = append(s.Parameters, p)
	}
	return s
}

func containerOf(t *testing.T, s Spec) (corev1.Container, corev1.PodTemplateSpec) {
	t.Helper()
	e, err := s.Experiment()
	if err != nil {
		t.Fatal(err)
	}
	var job batchv1.Job
	if err := json.Unmarshal(e.Spec.TrialTemplate.TrialSpec.Raw, &job); err != nil {
		t.Fatal(err)
	}
	return job.Spec.Template.Spec.Containers[0], job.Spec.Template
}

func TestMetricsBesideTheObjectivesAreKept(t *testing.T) {
	acc := v1beta1.ObjectiveMetric{ObjectiveMetricName: "acc", Type: v1beta1.ObjectiveTypeMaximize}
	for name, others := range map[string][]v1beta1.ObjectiveMetric{"one objective": nil, "two objectives": {acc}} {
		t.Run(name, func(t *testing.T) {
			s := aSpec(t, []string{"prog"}, "lr=log(1e-5,1)")
			s.Objectives, s.Additional = append(s.Objectives, others...), []string{"train_loss"}
			e, err := s.Experiment()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.Additional, e.Spec.Objective.AdditionalMetricNames); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			s.Additional = []string{"grad_norm"}
			other, err := s.Experiment()
			if err != nil {
				t.Fatal(err)
			}
			got, err := Differences(e, other)
			if diff := cmp.Diff([]string{`other metrics: "train_loss" there, "grad_norm" here`}, got); err != nil || diff != "" {
				t.Errorf("%v, another command line (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParametersReachTheProgram(t *testing.T) {
	two := []string{"batch_size=int(1,4)", "opt=choice(sgd,adam)"}
	tests := map[string]struct {
		edit func(*Spec)
		argv []string
		want []string
		env  []string
	}{
		"as flags":              {func(*Spec) {}, []string{"prog"}, []string{"prog", "--batch_size=${trialParameters.batch_size}", "--opt=${trialParameters.opt}"}, nil},
		"as the program has it": {func(s *Spec) { s.Flags = Interface{Flags: []Flag{{Option: "--batch-size"}, {Option: "-opt"}}} }, []string{"prog"}, []string{"prog", "--batch-size=${trialParameters.batch_size}", "-opt=${trialParameters.opt}"}, nil},
		"as assignments":        {func(s *Spec) { s.Pass = AsAssignments }, []string{"prog"}, []string{"prog", "batch_size=${trialParameters.batch_size}", "opt=${trialParameters.opt}"}, nil},
		"by macros":             {func(*Spec) {}, []string{"prog", "-b{batch_size}", "--out={trial}", "--seed={seed}", "{other} $HOME"}, []string{"prog", "-b${trialParameters.batch_size}", "--out=${trialParameters.trial}", "--seed=${trialSeed}", "{other} $$HOME", "--opt=${trialParameters.opt}"}, nil},
		"by the environment":    {func(s *Spec) { s.Pass = AsEnvironment }, []string{"prog"}, []string{"prog"}, []string{"VERNIER_PARAM_BATCH_SIZE=${trialParameters.batch_size}", "VERNIER_PARAM_OPT=${trialParameters.opt}"}},
		"in a file":             {func(s *Spec) { s.Pass = AsFile }, []string{"prog"}, []string{"prog"}, []string{"VERNIER_PARAMS_FILE=/tmp/vernier-params/params.json"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := aSpec(t, test.argv, two...)
			test.edit(&s)
			c, pod := containerOf(t, s)
			if diff := cmp.Diff(test.want, c.Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			var env []string
			for _, e := range c.Env {
				env = append(env, e.Name+"="+e.Value)
			}
			if diff := cmp.Diff(test.env, env); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if want := `{"batch_size": ${trialParameters.batch_size}, "opt": "${trialParameters.opt}"}`; s.Pass == AsFile && pod.Annotations["vernier.ml/params"] != want {
				t.Errorf("the file is %s, want %s", pod.Annotations["vernier.ml/params"], want)
			}
		})
	}
}

func TestWhatCannotRunIsRefused(t *testing.T) {
	tests := map[string]struct {
		s    Spec
		want string
	}{
		"a range upside down":      {aSpec(t, []string{"prog"}, "x=uniform(2,1)"), "-p 'x=uniform(2,1)', min"},
		"a condition on nothing":   {aSpec(t, []string{"prog"}, "x=uniform(0,1) if y=1"), "y"},
		"a parameter given twice":  {aSpec(t, []string{"prog"}, "x=uniform(0,1)", "x=int(1,2)"), "rename one of them"},
		"a quote in a file":        {func() Spec { s := aSpec(t, []string{"prog"}, `x=choice(a,b\c)`); s.Pass = AsFile; return s }(), "backslash"},
		"a tab in a file":          {func() Spec { s := aSpec(t, []string{"prog"}, "x=choice(a,b\tc)"); s.Pass = AsFile; return s }(), "cannot be passed in a file"},
		"a number that JSON lacks": {func() Spec { s := aSpec(t, []string{"prog"}, "x=choice(.5,2)"); s.Pass = AsFile; return s }(), `write 0.5 in place of ".5"`},
		"one variable for two": {func() Spec {
			s := aSpec(t, []string{"prog"}, "n=int(1,2)", "N=int(1,2)")
			s.Pass = AsEnvironment
			return s
		}(), "VERNIER_PARAM_N"},
		"two meanings of a macro":     {aSpec(t, []string{"prog", "{trial}"}, "trial=int(1,2)"), "another name"},
		"event files without a place": {func() Spec { s := aSpec(t, []string{"prog"}, "x=int(1,2)"); s.Metrics = "tensorboard:"; return s }(), "tensorboard:runs"},
		"a macro in a path":           {func() Spec { s := aSpec(t, []string{"prog"}, "x=int(1,2)"); s.Metrics = "runs/{trial}/m.csv"; return s }(), "the same path for all"},
		"a macro in a directory": {func() Spec {
			s := aSpec(t, []string{"prog"}, "x=int(1,2)")
			s.Metrics = "tensorboard:runs/{x}"
			return s
		}(), "{x} is not replaced"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := test.s.Experiment(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestDifferencesOfSearches(t *testing.T) {
	of := func(s Spec) *v1beta1.Experiment {
		e, err := s.Experiment()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	before := aSpec(t, []string{"prog"}, "x=int(1,2)")
	more, other := before, aSpec(t, []string{"prog"}, "x=int(1,3)")
	more.Trials, more.Parallel, more.Env = 50, 5, []corev1.EnvVar{{Name: "PATH", Value: "/new"}}
	if differ, err := Differences(of(before), of(more)); err != nil || len(differ) > 0 {
		t.Errorf("more trials in another shell: %v, %v; want no difference", differ, err)
	}
	differ, err := Differences(of(before), of(other))
	if diff := cmp.Diff([]string{`parameters: "x=int(1,2)" there, "x=int(1,3)" here`}, differ); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	stopped := before
	stopped.Stopping = v1beta1.EarlyStoppingSpec{AlgorithmName: "asha", AlgorithmSettings: []v1beta1.EarlyStoppingSetting{{Name: "r_max", Value: "27"}}}
	if diff := cmp.Diff(&stopped.Stopping, of(stopped).Spec.EarlyStopping); diff != "" {
		t.Errorf("the experiment's rule (-want +got):\n%s", diff)
	}
	differ, err = Differences(of(before), of(stopped))
	if diff := cmp.Diff([]string{`stopping: "" there, "asha r_max=27" here`}, differ); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	warm := before
	warm.WarmStart = []string{"earlier"}
	if diff := cmp.Diff([]v1beta1.WarmStart{{Experiment: "earlier"}}, of(warm).Spec.WarmStartFrom); diff != "" {
		t.Errorf("what the experiment begins with (-want +got):\n%s", diff)
	}
	differ, err = Differences(of(before), of(warm))
	if diff := cmp.Diff([]string{`warm start: "" there, "earlier" here`}, differ); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if differ, err := Differences(&v1beta1.Experiment{}, of(before)); err != nil || len(differ) != 1 {
		t.Errorf("an experiment of a file: %v, %v", differ, err)
	}
}

func TestPlainHasNoMacros(t *testing.T) {
	s := aSpec(t, []string{"prog", "{lr}", "{n}", "{big}", "{o}", "{trial}", "{seed}", "{other}"}, "lr=log(1e-4,1e-2)", "n=int(1,4)", "big=int(0,10000002)", "o=choice(a,b)")
	if diff := cmp.Diff([]string{"prog", "0.001", "2", "5000001", "a", "train-probe", "0", "{other}"}, s.Plain()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlainHasWhatTheProgramNeeds(t *testing.T) {
	s := aSpec(t, []string{"prog"}, "lr=log(1e-4,1e-2)", "n=int(1,4)", "batch_size=int(2,8)")
	s.Flags = Interface{Source: "argparse", Flags: []Flag{{Option: "--lr", Required: true}, {Option: "--n"}, {Option: "--batch-size", Required: true}}}
	if diff := cmp.Diff([]string{"prog", "--lr=0.001", "--batch-size=5"}, s.Plain()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
