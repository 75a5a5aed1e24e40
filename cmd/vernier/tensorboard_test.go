package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"github.com/vernier-ml/vernier/collector/store"
)

// contents are the files below a folder, by paths. Links are followed.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, root+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tensorboardTrial(number int, state v1beta1.TrialConditionType) v1beta1.Trial {
	trial := aTrial(number, state, "")
	trial.UID = types.UID(trial.Name)
	return trial
}

func TestRunsOfTrialsGrow(t *testing.T) {
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "points.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := collector.Attempt{ID: "pod/0", Started: noon}
	second := collector.Attempt{ID: "pod/1", Started: noon.Add(time.Minute)}
	report := func(a collector.Attempt, seq, step int64, value float64) {
		t.Helper()
		p := collector.Point{Metric: "loss", Value: value, Step: step, Seq: seq, Source: "stdout", Time: noon.Add(time.Duration(seq) * time.Second)}
		if err := s.Append(t.Context(), collector.TrialID{UID: "charlm-0001"}, a, []collector.Point{p}); err != nil {
			t.Fatal(err)
		}
	}
	wall := func(seconds int) float64 { return float64(noon.Unix() + int64(seconds)) }
	f := newRunFolder(&session{}, filepath.Join(t.TempDir(), "runs"))
	write := func(trials ...v1beta1.Trial) map[string]string {
		t.Helper()
		if err := f.write(t.Context(), newExperimentView(anExperiment(), trials), s); err != nil {
			t.Fatal(err)
		}
		return contents(t, f.root)
	}
	curve := fmt.Sprintf("charlm-0001/events.out.tfevents.%d.vernier-run.pod.0", noon.Unix())
	const parameters = "charlm-0001/events.out.tfevents.0000000000.vernier-run.charlm-0001"
	version := string(sourcetest.EventFile(wall(0)))

	report(first, 0, 1, 0.5)
	report(first, 1, collector.NoStep, 0.25)
	before := write(tensorboardTrial(1, v1beta1.TrialRunning), tensorboardTrial(2, v1beta1.TrialRunning))
	want := version + string(sourcetest.Event(wall(0), 1, "loss", 0.5)) + string(sourcetest.Event(wall(1), 0, "loss", 0.25))
	if diff := cmp.Diff(want, before[curve]); diff != "" {
		t.Errorf("the curve of the first attempt (-want +got)\n%q", diff)
	}
	if !strings.Contains(before[parameters], "session_start_info") || strings.Contains(before[parameters], "session_end_info") {
		t.Errorf("the parameters of a trial that runs: %q", before[parameters])
	}
	old := identity(t, filepath.Join(f.root, curve))

	report(first, 2, 3, 0.125)
	report(second, 0, 1, 2)
	after := write(tensorboardTrial(1, v1beta1.TrialSucceeded))
	if got, want := after[curve], want+string(sourcetest.Event(wall(2), 3, "loss", 0.125)); got != want {
		t.Errorf("the curve became %q, want %q", got, want)
	}
	if !os.SameFile(old, identity(t, filepath.Join(f.root, curve))) {
		t.Error("the file of the curve was replaced: a TensorBoard that reads it would not go on")
	}
	if !strings.Contains(after[parameters], "session_end_info") || !strings.HasPrefix(after[parameters], before[parameters]) {
		t.Errorf("the parameters of a trial that has ended: %q", after[parameters])
	}
	if got := slices.Sorted(maps.Keys(after)); len(got) != 4 {
		t.Errorf("files %q, want that of the folder, a file for each attempt and the parameters, and none of a trial that is gone", got)
	}
}

func identity(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestEventFilesOfATrialAreLinked(t *testing.T) {
	folder, run := t.TempDir(), t.TempDir()
	for _, name := range []string{"train/events.out.tfevents.1.host", "events.out.tfevents.2.host", "model.ckpt", "events.out.tfevents.0000000000.vernier.charlm-0001"} {
		sourcetest.Put(t, folder, name, []byte(name))
	}
	for range 2 {
		if err := linkEvents(folder, run); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"train/events.out.tfevents.1.host": "train/events.out.tfevents.1.host", "events.out.tfevents.2.host": "events.out.tfevents.2.host"}
	if diff := cmp.Diff(want, contents(t, run)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTensorboardIsFound(t *testing.T) {
	venv, path := t.TempDir(), t.TempDir()
	t.Setenv("VIRTUAL_ENV", venv)
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("PATH", path)
	if _, err := findTensorboard(); err == nil || exitCode(err) != exitNotFound || !strings.Contains(err.Error(), "pip install tensorboard") {
		t.Errorf("without one: %v", err)
	}
	for _, file := range []string{filepath.Join(path, "tensorboard"), filepath.Join(venv, "bin", "tensorboard")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := findTensorboard(); err != nil || got != file {
			t.Errorf("found %q, %v, want %q", got, err, file)
		}
	}
}
