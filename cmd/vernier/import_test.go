package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/cmd/vernier/imported"
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
