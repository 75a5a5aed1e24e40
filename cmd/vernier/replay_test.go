package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// searchedFor is an experiment whose trials an algorithm has proposed one after the other.
func searchedFor(t *testing.T, trials int) (*v1beta1.Experiment, []*v1beta1.Trial) {
	t.Helper()
	e := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "exp", UID: "e"}, Spec: v1beta1.ExperimentSpec{
		Parameters: []v1beta1.ParameterSpec{{Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"}}},
		Objective:  &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
		Algorithm:  &v1beta1.AlgorithmSpec{AlgorithmName: "tpe"}, Seed: ptr.To[int64](1),
	}}
	v1beta1.SetDefaults(e)
	s, err := study.New(e)
	if err != nil {
		t.Fatal(err)
	}
	var all []*v1beta1.Trial
	for n := range trials {
		s.Update(all)
		p, err := s.Propose(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		p[0].Asked.Version = "1.2 amd64"
		asked, err := json.Marshal(p[0].Asked)
		if err != nil {
			t.Fatal(err)
		}
		trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v1beta1.TrialName("exp", n), Labels: map[string]string{v1beta1.LabelTrialNumber: strconv.Itoa(n)}}}
		trial.UID, trial.Spec.ParameterAssignments = types.UID(trial.Name), p[0].Assignments
		trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
		trial.Annotations = map[string]string{v1beta1.AnnotationAsked: string(asked)}
		trial.MarkSucceeded("", metav1.Now())
		trial.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: "1", Max: "1", Latest: "1"}}}
		all = append(all, trial)
	}
	return e, all
}

// written is a file with objects, as kubectl get -o yaml writes it.
func written(t *testing.T, e *v1beta1.Experiment, trials []*v1beta1.Trial, others ...*v1beta1.Experiment) string {
	t.Helper()
	e.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Experiment"}
	items := []any{e}
	for _, other := range others {
		other.TypeMeta = e.TypeMeta
		items = append(items, other)
	}
	for _, trial := range trials {
		trial.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Trial"}
		items = append(items, trial)
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplay(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.Experiment, []*v1beta1.Trial)
		code   int
		want   []string
	}{
		"all is as it was": {func(*v1beta1.Experiment, []*v1beta1.Trial) {}, 0,
			[]string{"14 trials: 14 equal, 0 different, 0 not compared", "proposed by version 1.2 amd64, replayed by " + version}},
		"a point was changed": {func(_ *v1beta1.Experiment, all []*v1beta1.Trial) { all[12].Spec.ParameterAssignments[0].Value = "0.5" }, exitDiffers,
			[]string{"exp-0012 differs: lr was 0.5, now 0.", "14 trials: 12 equal, 1 different, 1 not compared", "not compared: exp-0013: what was known then has changed since"}},
		"nothing was recorded": {func(_ *v1beta1.Experiment, all []*v1beta1.Trial) {
			for _, trial := range all {
				trial.Annotations = nil
			}
		}, exitFailure, []string{"14 trials: 0 equal", "exp-0000, exp-0001, exp-0002 and 11 more: what the algorithm was asked is not recorded"}},
		"the rule needs curves": {func(e *v1beta1.Experiment, _ []*v1beta1.Trial) {
			e.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop"}
		}, exitUsage, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e, trials := searchedFor(t, 14)
			tc.change(e, trials)
			var out bytes.Buffer
			cmd := newReplayCommand(nil, noInstanceStore)
			cmd.SetArgs([]string{"exp", "-f", written(t, e, trials)})
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SilenceUsage = true
			if err := cmd.ExecuteContext(t.Context()); exitCode(err) != tc.code {
				t.Errorf("exit code %d, want %d: %v", exitCode(err), tc.code, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in\n%s", want, out.String())
				}
			}
		})
	}
}

func TestReplayTellsNamespacesInAFileApart(t *testing.T) {
	e, trials := searchedFor(t, 3)
	other := e.DeepCopy()
	other.Namespace, other.UID = "team", "other"
	path := written(t, e, trials, other)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"the one that is meant": {[]string{"-n", "default"}, 0, "3 trials: 3 equal"},
		"the other":             {[]string{"-n", "team"}, 0, "0 trials"},
		"neither":               {[]string{"-n", "else"}, exitNotFound, "no experiment else/exp"},
		"it is not said":        {nil, exitUsage, "default and team: say which by -n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := newReplayCommand(nil, noInstanceStore)
			cmd.Flags().StringP("namespace", "n", "", "")
			cmd.SetArgs(append([]string{"exp", "-f", path}, c.args...))
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SilenceUsage = true
			if err := cmd.ExecuteContext(t.Context()); exitCode(err) != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d, want %d:\n%s", exitCode(err), c.code, out.String())
			}
		})
	}
}
