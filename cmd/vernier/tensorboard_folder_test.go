package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"github.com/vernier-ml/vernier/collector/store"
)

func emptyStore(t *testing.T) collector.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "points.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// writeRuns is what vernier tensorboard --logdir root does for the trials of an
// experiment.
func writeRuns(t *testing.T, root string, experiment types.UID, trials ...v1beta1.Trial) error {
	t.Helper()
	e := anExperiment()
	e.UID = experiment
	return newRunFolder(&session{}, root).write(t.Context(), newExperimentView(e, trials), emptyStore(t))
}

// A --logdir with the log directories of trials, where the collector put the file that
// it writes, is left as it is.
func TestAFolderOfOthersIsRefused(t *testing.T) {
	for name, file := range map[string]string{
		"log directories of trials": "charlm-0001/events.out.tfevents.0000000000.vernier.charlm-0001",
		"anything":                  "notes.txt",
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			sourcetest.Put(t, root, file, []byte("a week's work"))
			err := writeRuns(t, root, "a", tensorboardTrial(2, v1beta1.TrialRunning))
			if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "empty folder by --logdir") {
				t.Errorf("error %v, want one that says what to name", err)
			}
			if diff := cmp.Diff(map[string]string{file: "a week's work"}, contents(t, root)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestExperimentsShareNoFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "new", "folder")
	trial := tensorboardTrial(1, v1beta1.TrialRunning)
	for range 2 {
		if err := writeRuns(t, root, "a", trial); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, root)
	err := writeRuns(t, root, "b", tensorboardTrial(2, v1beta1.TrialRunning))
	if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "another experiment") {
		t.Errorf("error %v, want one that says whose folder it is", err)
	}
	if diff := cmp.Diff(before, contents(t, root)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The folder may have been the log directory of the trials from the beginning: what they
// write stays when they are deleted.
func TestOnlyWhatWasWrittenIsForgotten(t *testing.T) {
	root, volume := t.TempDir(), t.TempDir()
	if err := writeRuns(t, root, "a", tensorboardTrial(1, v1beta1.TrialRunning), tensorboardTrial(2, v1beta1.TrialRunning)); err != nil {
		t.Fatal(err)
	}
	theirs := map[string]string{
		"charlm-0001/events.out.tfevents.0000000000.vernier.charlm-0001": "the collector's",
		"charlm-0001/model.ckpt":                                         "a week's work",
		"charlm-0001/train/events.out.tfevents.1700000000.host":          "points",
		"charlm-0003/events.out.tfevents.0000000000.vernier.charlm-0003": "of a trial that is gone",
	}
	for name, text := range theirs {
		sourcetest.Put(t, root, name, []byte(text))
	}
	sourcetest.Put(t, volume, "deep/below/events.out.tfevents.1.host", nil)
	for _, trial := range []string{"charlm-0001", "charlm-0002"} {
		if err := linkEvents(volume, filepath.Join(root, trial)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeRuns(t, root, "a"); err != nil {
		t.Fatal(err)
	}
	got := contents(t, root)
	delete(got, folderSign+"a")
	if diff := cmp.Diff(theirs, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, gone := range []string{"charlm-0001/deep", "charlm-0002"} {
		if _, err := os.Lstat(filepath.Join(root, gone)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
}
