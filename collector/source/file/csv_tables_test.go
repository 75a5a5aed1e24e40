package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// csvStates reads a file that has one content after the other and returns the
// points as text.
func csvStates(t *testing.T, cfg Config, states ...string) (points, errs []string) {
	t.Helper()
	w := &table{path: cfg.Path}
	for _, text := range states {
		w.step(func() error {
			// As another file, as programs do that care.
			if rest, replaced := strings.CutPrefix(text, "replace:"); replaced {
				if err := os.WriteFile(w.path+".tmp", []byte(rest), 0o644); err != nil {
					return err
				}
				return os.Rename(w.path+".tmp", w.path)
			}
			return os.WriteFile(w.path, []byte(text), 0o644)
		})
		w.step(func() error { return nil }) // the reader looks once more
	}
	drain := make(chan struct{})
	cfg.Drain, cfg.Clock = drain, stepping(t, w, drain)
	src, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	read, errs := sourcetest.Collected(t, src)
	for _, p := range read {
		points = append(points, fmt.Sprintf("%s@%d.%d step %d: %v%s", p.Metric, p.Seq>>generationShift, p.Seq&(1<<generationShift-1), p.Step, p.Value, p.Text))
	}
	return points, errs
}

func TestCSVTables(t *testing.T) {
	tests := map[string]struct {
		states  []string
		want    []string
		wantErr string
	}{
		"rows": {
			states: []string{"step,loss\n0,1\n1,2\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2"},
		},
		"a last row without an end": {
			states: []string{"step,loss\n0,1\n1,2"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2"},
		},
		"a last row that was cut": {
			states: []string{"step,loss,x\n0,1,5\n1,2"},
			want:   []string{"loss@0.0 step 0: 1"},
		},
		"a row that grows": {
			states: []string{"step,loss\n0,1", "step,loss\n0,1.5\n"},
			want:   []string{"loss@0.0 step 0: 1.5"},
		},
		"a column before": {
			states: []string{"step,val_loss\n0,1\n", "loss,step,val_loss\n,0,1\n2,1,\n"},
			want:   []string{"val_loss@0.0 step 0: 1", "loss@0.1 step 1: 2"},
		},
		"a column at the end of a long header": {
			states: []string{strings.Repeat("x", 100) + ",loss\n1,1\n", strings.Repeat("x", 100) + ",loss,val_loss\n1,1,\n1,1,3\n"},
			want:   []string{"loss@0.0 step -1: 1", "loss@0.1 step -1: 1", "val_loss@0.1 step -1: 3"},
		},
		"a file that another replaces": {
			states: []string{"step,loss\n0,1\n", "replace:step,loss\n0,1\n1,2\n", "replace:step,loss\n0,1\n1,2\n2,3\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2", "loss@0.2 step 2: 3"},
		},
		"numbers written in another way": {
			states: []string{"step,loss\n0,1\n", "acc,step,loss\n,0.0,1.000\n0.5,1.0,2\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2"},
		},
		"a table of one row, written anew": {
			states: []string{"epoch,loss\n0,1\n", "epoch,loss\n1,2\n", "epoch,loss\n2,3\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@1.0 step 1: 2", "loss@2.0 step 2: 3"},
		},
		"a training that begins again": {
			states: []string{"step,loss\n0,1\n1,2\n2,3\n", "step,loss\n0,1.5\n1,2\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2", "loss@0.2 step 2: 3", "loss@1.0 step 0: 1.5", "loss@1.1 step 1: 2"},
		},
		"cells that are filled in the order of their column": {
			states: []string{"step,loss,val_loss\n0,1,\n1,2,\n", "step,loss,val_loss\n0,1,\n1,2,5\n", "step,loss,val_loss\n0,1,\n1,2,5\n2,3,\n", "step,loss,val_loss\n0,1,\n1,2,5\n2,3,6\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2", "val_loss@0.1 step 1: 5", "loss@0.2 step 2: 3", "val_loss@0.2 step 2: 6"},
		},
		"cells that are filled after a later row": {
			states:  []string{"step,loss\n0,1\n1,\n2,3\n3,4\n", "step,loss\n0,1\n1,20\n2,3\n3,4\n", "step,loss\n0,1\n1,20\n2,3\n3,4\n4,5\n"},
			want:    []string{"loss@0.0 step 0: 1", "loss@0.2 step 2: 3", "loss@0.3 step 3: 4", "loss@0.4 step 4: 5"},
			wantErr: "cells that were filled after a later row of their column had been read are not counted: 1 of loss: write a row when all of it is known",
		},
		"cells of two columns that are filled too late": {
			states:  []string{"step,loss,val_loss\n0,,\n1,,\n2,3,4\n", "step,loss,val_loss\n0,1,\n1,,\n2,3,4\n", "step,loss,val_loss\n0,1,7\n1,2,\n2,3,4\n"},
			want:    []string{"loss@0.2 step 2: 3", "val_loss@0.2 step 2: 4"},
			wantErr: "2 of loss, 1 of val_loss",
		},
		"a later table has no cells of an earlier one": {
			states: []string{"step,loss\n0,1\n1,2\n2,3\n", "step,loss\n0,9\n", "step,loss\n0,9\n1,\n2,8\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2", "loss@0.2 step 2: 3", "loss@1.0 step 0: 9", "loss@1.2 step 2: 8"},
		},
		"a table that is written anew piece by piece": {
			states: []string{"step,loss\n0,1\n1,2\n2,3\n", "step,loss\n0,1\n", "step,loss\n0,1\n1,2\n2,3\n3,4\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2", "loss@0.2 step 2: 3", "loss@0.3 step 3: 4"},
		},
		"a header in the middle": {
			states: []string{"epoch,loss\n0,1\nepoch,loss,val_loss\n1,2,3\n"},
			want:   []string{"loss@0.0 step 0: 1", "loss@0.1 step 1: 2", "val_loss@0.1 step 1: 3"},
		},
		"empty lines":             {states: []string{"loss\n\n1\n\n\n2\n"}, want: []string{"loss@0.0 step -1: 1", "loss@0.1 step -1: 2"}},
		"texts and NaN":           {states: []string{"loss\nnan\nbad\n"}, want: []string{"loss@0.0 step -1: NaNnan", "loss@0.1 step -1: NaNbad"}},
		"no such column":          {states: []string{"step,Loss\n0,1\n"}, wantErr: "loss was not found: did you mean Loss?; val_loss was not found: did you mean Loss?; there is step, Loss"},
		"one column is missing":   {states: []string{"loss,Val_loss\n1,2\n"}, want: []string{"loss@0.0 step -1: 1"}, wantErr: "val_loss was not found: did you mean Val_loss?; there is loss, Val_loss"},
		"one column is empty":     {states: []string{"loss,val_loss\n1,\n"}, want: []string{"loss@0.0 step -1: 1"}, wantErr: "the table has no value of val_loss"},
		"semicolons":              {states: []string{"loss;val_loss\n1;2\n"}, wantErr: "the table is separated by ;: only commas are read; loss was not found"},
		"no header":               {states: []string{""}, wantErr: "the table has no header"},
		"never written":           {wantErr: "was never written"},
		"a file of zeros":         {states: []string{strings.Repeat("\x00", 5<<20)}, wantErr: "is longer than 1048576 bytes"},
		"a quote left open":       {states: []string{"loss,note\n1,\"a\n" + strings.Repeat("2,b\n", 1<<18) + "3,c\n4,d\n"}, want: []string{"loss@0.1 step -1: 2", "loss@0.2 step -1: 3", "loss@0.3 step -1: 4"}, wantErr: "the record at byte 10 is longer"},
		"bytes that are no UTF-8": {states: []string{"loss,\xff\n1,\xfe\n", "a,loss,\xff\n,1,\xfe\n,2,\n"}, want: []string{"loss@0.0 step -1: 1", "loss@0.1 step -1: 2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := Config{Format: FormatCSV, Path: filepath.Join(dir, "m.csv"), Metrics: []string{"loss", "val_loss"}, State: filepath.Join(dir, "state")}
			points, errs := csvStates(t, cfg, tc.states...)
			if diff := cmp.Diff(tc.want, points); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			if tc.wantErr == "" { // most tables have one of the two
				errs = slices.DeleteFunc(errs, func(e string) bool { return strings.Contains(e, "val_loss was not found: did you mean loss?") })
			}
			if got := strings.Join(errs, "; "); tc.wantErr == "" != (got == "") || !strings.Contains(got, tc.wantErr) {
				t.Errorf("errors %q, want %q", got, tc.wantErr)
			}
		})
	}
}

// The numbers of tables outlive the collector, however many tables there were.
func TestCSVTableNumbersAfterARestart(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Format: FormatCSV, Path: filepath.Join(dir, "m.csv"), Metrics: []string{"loss"}, State: filepath.Join(dir, "state")}
	for i := range maxGenerations + 8 {
		for range 2 {
			points, errs := csvStates(t, cfg, fmt.Sprintf("loss\n%d\n", i))
			if want := fmt.Sprintf("loss@%d.0 step -1: %d", i, i); len(points) != 1 || points[0] != want || len(errs) > 0 {
				t.Fatalf("got %q, errors %q, want %s", points, errs, want)
			}
			if err := os.Remove(cfg.Path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(cfg.State, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs := csvStates(t, cfg, "loss\n1\n"); len(errs) != 1 || !strings.Contains(errs[0], "state of an earlier collector is lost") {
		t.Errorf("got errors %q", errs)
	}
}

func TestCSVOfARealLogger(t *testing.T) {
	// As written by a training with two metrics a step and one an epoch.
	text := "epoch,lr,step,train_loss,val_loss\r\n0,,9,0.6931471824645996,\r\n0,0.1,9,,\r\n0,,19,,0.5\r\n1,,29,0.25,\r\n"
	path := filepath.Join(t.TempDir(), "metrics.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := Open(Config{Format: FormatCSV, Path: path, Metrics: []string{"train_loss", "val_loss"}, Drain: sourcetest.Closed()})
	if err != nil {
		t.Fatal(err)
	}
	points, errs := sourcetest.Collected(t, src)
	if len(errs) > 0 {
		t.Errorf("errors %q", errs)
	}
	got := map[string][]collector.Point{}
	for _, p := range points {
		if p.Time.IsZero() {
			t.Error("a point without a time")
		}
		p.Time = time.Time{}
		got[p.Metric] = append(got[p.Metric], p)
	}
	source := "file:" + path
	want := map[string][]collector.Point{
		"train_loss": {
			{Metric: "train_loss", Value: 0.6931471824645996, Step: 9, Source: source + "#train_loss", Seq: 0},
			{Metric: "train_loss", Value: 0.25, Step: 29, Source: source + "#train_loss", Seq: 3},
		},
		"val_loss": {{Metric: "val_loss", Value: 0.5, Step: 19, Source: source + "#val_loss", Seq: 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if _, err := Open(Config{Format: FormatCSV, Path: path}); err == nil {
		t.Error("a source without metrics is accepted")
	}
	if _, err := Open(Config{Format: FormatCSV, Metrics: []string{"x"}}); err == nil {
		t.Error("a source without a path is accepted")
	}
}
