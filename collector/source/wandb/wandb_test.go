package wandb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// wandbAll reads a directory to its end. Before each poll but the last, the next
// of steps is done.
func wandbAll(t *testing.T, dir string, metrics []string, steps ...func()) (points, errs []string) {
	t.Helper()
	drain := make(chan struct{})
	next := func() {
		if len(steps) == 0 {
			close(drain)
			return
		}
		steps[0]()
		steps = steps[1:]
	}
	next()
	now := time.Unix(0, 0)
	clock := source.Clock{
		Now:   func() time.Time { now = now.Add(time.Second); return now },
		After: func(time.Duration) <-chan time.Time { next(); return sourcetest.Quick().After(0) },
	}
	src, err := New(Config{Dir: dir, Metrics: metrics, Drain: drain, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	seq := map[string]int64{}
	read, errs := sourcetest.Collected(t, src)
	for _, p := range read {
		if last, seen := seq[p.Source]; seen && p.Seq <= last {
			t.Errorf("%s: Seq %d after %d", p.Source, p.Seq, last)
		}
		seq[p.Source] = p.Seq
		points = append(points, fmt.Sprintf("%s %s=%v at %d", p.Source, p.Metric, p.Value, p.Step))
	}
	return points, errs
}

func TestWandbDir(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "wandb/offline-run-1-a/run-a.wandb"), filepath.Join(dir, "wandb/offline-run-2-b/run-b.wandb")
	late := sourcetest.WandbLog(1, "loss", 2)
	points, errs := wandbAll(t, filepath.Join(dir, "wandb"), []string{"loss"},
		func() {}, // there is nothing yet
		func() { sourcetest.Append(t, first, []byte(sourcetest.WandbHeader[:3])) },
		func() {
			sourcetest.Append(t, first, append([]byte(sourcetest.WandbHeader[3:]), sourcetest.WandbLog(0, "loss", 3)...))
		},
		func() { sourcetest.Append(t, first, append(sourcetest.WandbLog(1, "acc", 9), late[:10]...)) },
		func() { sourcetest.Append(t, first, late[10:]) },
		func() {
			sourcetest.Append(t, second, append([]byte(sourcetest.WandbHeader), sourcetest.WandbLog(0, "loss", 4)...))
		},
		func() { sourcetest.Append(t, second, sourcetest.WandbLog(1, "loss", 1)) },
		func() { sourcetest.Append(t, filepath.Join(dir, "wandb/offline-run-2-b/files/notes.txt"), []byte("x")) },
		func() {
			if err := os.Symlink("offline-run-2-b", filepath.Join(dir, "wandb/latest-run")); err != nil {
				t.Error(err)
			}
			if err := os.Symlink(second, filepath.Join(dir, "wandb/link.wandb")); err != nil {
				t.Error(err)
			}
			if err := syscall.Mkfifo(filepath.Join(dir, "wandb/pipe.wandb"), 0o600); err != nil {
				t.Error(err)
			}
		},
	)
	want := []string{
		"wandb:offline-run-1-a/run-a.wandb loss=3 at 0", "wandb:offline-run-1-a/run-a.wandb loss=2 at 1",
		"wandb:offline-run-2-b/run-b.wandb loss=4 at 0", "wandb:offline-run-2-b/run-b.wandb loss=1 at 1",
	}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Errorf("points (-want +got)\n%s", diff)
	}
	wantErrs := []string{
		"wandb: the metric loss is in several runs, offline-run-1-a/run-a.wandb and offline-run-2-b/run-b.wandb; all are read",
		"wandb: pipe.wandb is not a regular file and is not read",
	}
	if diff := cmp.Diff(wantErrs, errs); diff != "" {
		t.Errorf("errors (-want +got)\n%s", diff)
	}
}

func TestWandbDirSaysWhatIsWrong(t *testing.T) {
	good := append([]byte(sourcetest.WandbHeader), sourcetest.WandbLog(0, "val_loss", 3)...)
	broken := append(append([]byte{}, good...), good[7:]...)
	broken[len(broken)-1] ^= 1
	tests := map[string]struct {
		file  []byte // nil: none
		steps func(path string) []func()
		want  string
	}{
		"no file":            {want: "no file *.wandb was written below"},
		"some other file":    {file: []byte("hello world"), want: "run-a.wandb: the file is not a W&B log of a known version"},
		"a mistyped metric":  {file: good, want: `val_los was not found: did you mean val_loss?; there is val_loss`},
		"a broken last line": {file: broken, want: "a part of the W&B log was passed over: at byte "},
		"a file that shrinks": {file: good, want: "has shrunk from", steps: func(path string) []func() {
			return []func(){func() {}, func() {
				if err := os.Truncate(path, 3); err != nil {
					t.Error(err)
				}
			}}
		}},
		"a record that breaks off": {file: good[:len(good)-2], want: "val_los was not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "run-a.wandb")
			if test.file != nil {
				sourcetest.Append(t, path, test.file)
			}
			var steps []func()
			if test.steps != nil {
				steps = test.steps(path)
			}
			points, errs := wandbAll(t, dir, []string{"val_los"}, steps...)
			if len(points) > 0 || !strings.Contains(strings.Join(errs, "\n"), test.want) {
				t.Errorf("points %q, errors %q; want one with %q", points, errs, test.want)
			}
		})
	}
}

func TestWandbDirEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	sourcetest.Append(t, filepath.Join(dir, "run-a.wandb"), append([]byte(sourcetest.WandbHeader), sourcetest.WandbLog(0, "loss", 3)...))
	src, err := New(Config{Dir: dir, Metrics: []string{"loss"}, Clock: sourcetest.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, last = range src.Points(ctx) {
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v", last)
	}
}

func TestWandbDirSaysWhatItDoesNotFindWhileTheProgramRuns(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "wandb/offline-run-1-a/run-a.wandb")
	steps := []func(){func() {
		sourcetest.Append(t, file, append([]byte(sourcetest.WandbHeader), sourcetest.WandbLog(1, "val_loss", 2)...))
	}}
	for range 200 { // a second each
		steps = append(steps, func() {})
	}
	steps = append(steps, func() { sourcetest.Append(t, file, sourcetest.WandbLog(2, "loss", 1)) })
	points, errs := wandbAll(t, filepath.Join(dir, "wandb"), []string{"loss"}, steps...)
	if len(points) != 1 || len(errs) != 1 || !strings.Contains(errs[0], "so far loss was not found: did you mean val_loss?") {
		t.Errorf("points %v, errors %q; want one that says what is not found so far", points, errs)
	}
}
