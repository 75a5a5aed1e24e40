package source

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// table writes a file as Lightning's CSVLogger does: rows are appended, and when
// a metric appears, the file is truncated and written again with one more
// column, at its place in the alphabet. What it does is kept as a list of steps,
// each one call of the operating system, so that a test can stop between them.
type table struct {
	path  string
	keys  []string
	rows  []map[string]string
	block int // bytes written at once
	steps []func() error
	want  map[id]float64
}

func (w *table) step(do func() error) { w.steps = append(w.steps, do) }

// write adds the steps that append b, in blocks.
func (w *table) write(b []byte) {
	for block := range slices.Chunk(b, w.block) {
		w.step(func() error {
			f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
			if err != nil {
				return err
			}
			_, err = f.Write(block)
			return errors.Join(err, f.Close())
		})
	}
}

func (w *table) format(header bool, rows ...map[string]string) []byte {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	out.UseCRLF = true
	var records [][]string
	if header {
		records = append(records, w.keys)
	}
	for _, row := range rows {
		var record []string
		for _, k := range w.keys {
			record = append(record, row[k])
		}
		records = append(records, record)
	}
	if err := out.WriteAll(records); err != nil {
		panic(err) // a buffer has no errors
	}
	return b.Bytes()
}

// save logs rows at once.
func (w *table) save(rows ...map[string]string) {
	fresh := len(w.rows) == 0
	grown := false
	for _, row := range rows {
		for k := range row {
			if !slices.Contains(w.keys, k) {
				w.keys = append(w.keys, k)
				grown = true
			}
		}
	}
	slices.Sort(w.keys)
	switch {
	case fresh:
		w.write(w.format(true))
	case grown:
		w.step(func() error { return os.Truncate(w.path, 0) })
		w.write(w.format(true, w.rows...))
	}
	w.write(w.format(false, rows...))
	for _, row := range rows {
		for k, text := range row {
			if v, err := strconv.ParseFloat(text, 64); err == nil && slices.Contains(csvMetrics, k) {
				w.want[id{"file:" + w.path + "#" + k, int64(len(w.rows))}] = v
			}
		}
		w.rows = append(w.rows, row)
	}
}

var csvMetrics = []string{"loss", "val_acc", "val_loss", "a,b"}

// lightning is a training of some epochs, in which metrics appear one by one.
func lightning(path string, block int) *table {
	w := &table{path: path, block: block, want: map[id]float64{}}
	n := 0
	value := func() string { n++; return fmt.Sprint(n, ".5") }
	for epoch := range 4 {
		for range 3 {
			step := strconv.Itoa(len(w.rows))
			row := map[string]string{"epoch": strconv.Itoa(epoch), "step": step, "loss": value()}
			if epoch > 0 {
				row["lr"] = "0.001"
			}
			w.save(row, map[string]string{"step": step, "note": `a "quoted", long` + "\nnote"})
		}
		row := map[string]string{"epoch": strconv.Itoa(epoch), "step": strconv.Itoa(len(w.rows)), "val_loss": value()}
		if epoch > 1 {
			row["val_acc"] = value()
		}
		if epoch > 2 {
			row["a,b"] = value()
		}
		w.save(row)
	}
	return w
}

// identities checks that points are those that the table has.
func (w *table) identities(t *testing.T, rec *record) {
	t.Helper()
	got := map[id]float64{}
	for key, p := range rec.points {
		got[key] = p.Value
	}
	if diff := cmp.Diff(w.want, got, cmp.AllowUnexported(id{})); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if len(rec.errs) > 0 {
		t.Errorf("errors: %q", rec.errs)
	}
}

// stepping is a clock on which the writer takes a step in every pause, and the
// drain closes after the last.
func stepping(t *testing.T, w *table, drain chan struct{}) Clock {
	done := 0
	ready := make(chan time.Time)
	close(ready)
	return Clock{After: func(time.Duration) <-chan time.Time {
		if done < len(w.steps) {
			if err := w.steps[done](); err != nil {
				t.Error(err)
			}
		} else if done == len(w.steps) {
			close(drain)
		}
		done++
		return ready
	}}
}

// However much the writer has written when the reader looks, and wherever the
// reader is killed, each value arrives, under one identity.
func TestCSVReadsRewritingAtEveryKillPoint(t *testing.T) {
	total := len(lightning("x", 1<<20).want)
	for _, block := range []int{1 << 20, 64, 13} {
		for kill := range total + 1 {
			dir := t.TempDir()
			w := lightning(filepath.Join(dir, "metrics.csv"), block)
			drain := make(chan struct{})
			cfg := CSVConfig{Path: w.path, Metrics: csvMetrics, State: filepath.Join(dir, "state"), Drain: drain, Clock: stepping(t, w, drain)}
			rec := newRecord()
			for limit := kill; ; limit = -1 {
				src, err := NewCSV(cfg)
				if err != nil {
					t.Fatal(err)
				}
				if rec.follow(t.Context(), t, src, limit) {
					break
				}
			}
			w.identities(t, rec)
			if t.Failed() {
				t.Fatalf("blocks of %d bytes, killed after %d points", block, kill)
			}
		}
	}
}

// A reader that sees only some states of the file loses nothing either.
func TestCSVReadsRewritingThatItSeesSeldom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		dir := t.TempDir()
		w := lightning(filepath.Join(dir, "metrics.csv"), 1+random.IntN(100))
		var merged []func() error
		for rest := w.steps; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(20))
			some := rest[:n]
			merged = append(merged, func() error {
				for _, do := range some {
					if err := do(); err != nil {
						return err
					}
				}
				return nil
			})
			rest = rest[n:]
		}
		w.steps = merged
		drain := make(chan struct{})
		src, err := NewCSV(CSVConfig{Path: w.path, Metrics: csvMetrics, Drain: drain, Clock: stepping(t, w, drain)})
		if err != nil {
			t.Fatal(err)
		}
		rec := newRecord()
		rec.follow(t.Context(), t, src, -1)
		w.identities(t, rec)
		if rec.again > 0 {
			t.Errorf("%d points came twice", rec.again)
		}
	}
}

// A writer that does not wait for the reader.
func TestCSVWhileTheWriterRuns(t *testing.T) {
	for i := range 20 {
		dir := t.TempDir()
		w := lightning(filepath.Join(dir, "metrics.csv"), 100)
		drain := make(chan struct{})
		rec := newRecord()
		done := make(chan struct{})
		go func() {
			defer close(done)
			random := rand.New(rand.NewPCG(3, uint64(i)))
			for lives := 0; ; lives++ {
				src, err := NewCSV(CSVConfig{Path: w.path, Metrics: csvMetrics, State: filepath.Join(dir, "state"), Drain: drain, Clock: quick})
				if err != nil {
					t.Error(err)
					return
				}
				limit := -1
				if lives < 10 {
					limit = 1 + random.IntN(20)
				}
				if rec.follow(t.Context(), t, src, limit) {
					return
				}
			}
		}()
		for _, do := range w.steps {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		close(drain)
		<-done
		w.identities(t, rec)
	}
}

// csvStates reads a file that has one content after the other and returns the
// points as text.
func csvStates(t *testing.T, cfg CSVConfig, states ...string) (points, errs []string) {
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
	src, err := NewCSV(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for p, err := range src.Points(t.Context()) {
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
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
		"no such column":          {states: []string{"step,Loss\n0,1\n"}, wantErr: "the table has no column named loss or val_loss; did you mean Loss? it has step, Loss"},
		"one column is missing":   {states: []string{"loss,Val_loss\n1,2\n"}, want: []string{"loss@0.0 step -1: 1"}, wantErr: "the table has no column named val_loss; did you mean Val_loss? it has loss, Val_loss"},
		"one column is empty":     {states: []string{"loss,val_loss\n1,\n"}, want: []string{"loss@0.0 step -1: 1"}, wantErr: "the table has no value of val_loss"},
		"semicolons":              {states: []string{"loss;val_loss\n1;2\n"}, wantErr: "the table is separated by ;: only commas are read; the table has no column"},
		"no header":               {states: []string{""}, wantErr: "the table has no header"},
		"never written":           {wantErr: "was never written"},
		"a file of zeros":         {states: []string{strings.Repeat("\x00", 5<<20)}, wantErr: "is longer than 1048576 bytes"},
		"a quote left open":       {states: []string{"loss,note\n1,\"a\n" + strings.Repeat("2,b\n", 1<<18) + "3,c\n4,d\n"}, want: []string{"loss@0.1 step -1: 2", "loss@0.2 step -1: 3", "loss@0.3 step -1: 4"}, wantErr: "the record at byte 10 is longer"},
		"bytes that are no UTF-8": {states: []string{"loss,\xff\n1,\xfe\n", "a,loss,\xff\n,1,\xfe\n,2,\n"}, want: []string{"loss@0.0 step -1: 1", "loss@0.1 step -1: 2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := CSVConfig{Path: filepath.Join(dir, "m.csv"), Metrics: []string{"loss", "val_loss"}, State: filepath.Join(dir, "state")}
			points, errs := csvStates(t, cfg, tc.states...)
			if diff := cmp.Diff(tc.want, points); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			if tc.wantErr == "" { // most tables have one of the two
				errs = slices.DeleteFunc(errs, func(e string) bool { return strings.Contains(e, "no column named val_loss") })
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
	cfg := CSVConfig{Path: filepath.Join(dir, "m.csv"), Metrics: []string{"loss"}, State: filepath.Join(dir, "state")}
	for i := range maxTables + 8 {
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
	drain := make(chan struct{})
	close(drain)
	src, err := NewCSV(CSVConfig{Path: path, Metrics: []string{"train_loss", "val_loss"}, Drain: drain})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]collector.Point{}
	for p, err := range src.Points(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
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
	if _, err := NewCSV(CSVConfig{Path: path}); err == nil {
		t.Error("a source without metrics is accepted")
	}
	if _, err := NewCSV(CSVConfig{Metrics: []string{"x"}}); err == nil {
		t.Error("a source without a path is accepted")
	}
}
