package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/imported"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
)

func TestExperimentsAreNamedAfterStudies(t *testing.T) {
	for path, want := range map[string]string{
		"old/My_Study.db": "my-study",
		"2024-resnet.db":  "run-2024-resnet",
		"a--b.csv":        "a--b",
	} {
		if got := studyName("", path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := studyName("Of The File", "a.db"); got != "of-the-file" {
		t.Errorf("a study with a name: %q", got)
	}
}

// A name that lacks what tells studies apart would add the trials of one to another.
func TestExperimentsOfStudiesAreToldApart(t *testing.T) {
	names := map[string]string{}
	for _, study := range []string{
		"no-name-0f0e7a2e-4b3f-4d31-9f0a-1c2d3e4f5a6b", "no-name-0f0e7a2e-4b3f-4d31-9f0a-1c2d3e4f0000", // as Optuna names them
		"2024-" + strings.Repeat("a", 40), "2024-" + strings.Repeat("a", 41), "\u7814\u7a76", "\u5b9f\u9a13",
	} {
		name := studyName(study, "a.db")
		if other, twice := names[name]; twice || len(name) > 40 || len(validation.IsDNS1035Label(name)) > 0 {
			t.Errorf("%q: %q, which is also that of %q", study, name, other)
		}
		names[name] = study
	}
}

// Optuna writes the time of its place, in which an hour of autumn is there twice.
func TestTimesOfImportedTrials(t *testing.T) {
	for name, c := range map[string]struct{ started, ended, wantStart, wantEnd time.Time }{
		"both":       {noon, noon.Add(time.Hour), noon, noon.Add(time.Hour)},
		"backwards":  {noon, noon.Add(-time.Minute), noon, time.Time{}},
		"no start":   {time.Time{}, noon, time.Time{}, time.Time{}},
		"no end":     {noon, time.Time{}, noon, time.Time{}},
		"no time":    {},
		"in no time": {noon, noon, noon, noon},
	} {
		t.Run(name, func(t *testing.T) {
			out := importedOut(imported.Trial{Started: c.started, Ended: c.ended})
			var start, end time.Time
			if out.GetStartTime() != nil {
				start = out.GetStartTime().AsTime()
			}
			if out.GetEndTime() != nil {
				end = out.GetEndTime().AsTime()
			}
			if diff := cmp.Diff([]time.Time{c.wantStart, c.wantEnd}, []time.Time{start, end}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetricsThatAnExperimentDoesNotHaveAreLeftOut(t *testing.T) {
	spec, err := structpb.NewStruct(map[string]any{"objective": map[string]any{"objectiveMetricName": "loss", "additionalMetricNames": []any{"acc"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec *structpb.Struct
		want map[string]float64
		says string
	}{
		"one of two": {spec, map[string]float64{"loss": 1, "acc": 2}, "metric size"},
		"no spec":    {nil, map[string]float64{"loss": 1}, "metric acc"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			study := &imported.Study{Metrics: []string{"acc", "size"}, Trials: []imported.Trial{{Values: map[string]float64{"loss": 1, "acc": 2, "size": 3}}}}
			leaveOut(study, &vernierv1.Experiment{Spec: c.spec}, &said)
			if diff := cmp.Diff(c.want, study.Trials[0].Values); diff != "" || !strings.Contains(said.String(), c.says) {
				t.Errorf("it said %q; values (-want +got):\n%s", said.String(), diff)
			}
		})
	}
}

func TestImportSaysWhatItTakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.csv")
	if err := os.WriteFile(path, []byte("loss,train_loss,lr,width\n1,2,1e-5,16\n2,3,0.01,32\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"as guessed": {[]string{"--minimize", "loss", "--metric", "train_loss"},
			"  metric     loss, minimized\n  metric     train_loss\n  parameter  lr=log(1e-05,0.01)\n  parameter  width=int(16,32)\n"},
		"as told": {[]string{"--maximize", "loss", "-p", "lr=uniform(0,1)", "-p", "width=choice(16,32)"},
			"  metric     loss, maximized\n  parameter  train_loss=int(2,3)\n  parameter  lr=uniform(0,1)\n  parameter  width=choice(16,32)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			cmd := newImportCommand(nil)
			cmd.SetOut(&bytes.Buffer{})
			cmd.SetErr(&said)
			cmd.SetArgs(append(c.args, path, "--dry-run"))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("2 trials would be added to experiment old\n"+c.want, said.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The same command again adds what is new, and another -p would be taken for one that counts.
func TestTheSpaceOfAnExperimentStays(t *testing.T) {
	parameter := func(name, kind string, feasible map[string]any) map[string]any {
		return map[string]any{"name": name, "parameterType": kind, "feasibleSpace": feasible}
	}
	momentum := parameter("momentum", "double", map[string]any{"min": "0", "max": "1", "distribution": "uniform"})
	momentum["when"] = map[string]any{"parameter": "opt", "in": []any{"sgd"}}
	spec, err := structpb.NewStruct(map[string]any{"parameters": []any{ // as admission completes them
		parameter("lr", "double", map[string]any{"min": "1e-5", "max": "1", "distribution": "logUniform"}),
		parameter("width", "int", map[string]any{"min": "1", "max": "8", "distribution": "uniform"}),
		parameter("opt", "categorical", map[string]any{"list": []any{"adam", "sgd"}, "distribution": "uniform"}),
		momentum,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for form, refused := range map[string]bool{
		"lr=log(1e-5,1)": false, "lr=log(1e-4,1)": true, "lr=uniform(1e-5,1)": true,
		"width=int(1,8)": false, "width=int(1,9)": true, "width=uniform(1,8)": true,
		"opt=choice(adam,sgd)": false, "opt=choice(adam,sgd,lion)": true,
		"momentum=uniform(0,1)": false, "momentum=uniform(0,1) if opt=sgd": false, "momentum=uniform(0,1) if opt=adam": true,
	} {
		p, err := script.ParseParameter(form)
		if err != nil {
			t.Fatal(err)
		}
		o := importOptions{Options: imported.Options{Space: []v1beta1.ParameterSpec{p}}}
		if err := o.sameSpace(&vernierv1.Experiment{Spec: spec}); (err != nil) != refused || refused && exitCode(err) != exitConflict {
			t.Errorf("%s: %v", form, err)
		}
	}
}
