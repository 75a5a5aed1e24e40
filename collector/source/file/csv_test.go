package file

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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
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
	want  map[sourcetest.ID]float64
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
				w.want[sourcetest.ID{Source: "file:" + w.path + "#" + k, Seq: int64(len(w.rows))}] = v
			}
		}
		w.rows = append(w.rows, row)
	}
}

var csvMetrics = []string{"loss", "val_acc", "val_loss", "a,b"}

// lightning is a training of some epochs, in which metrics appear one by one.
func lightning(path string, block int) *table {
	w := &table{path: path, block: block, want: map[sourcetest.ID]float64{}}
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
func (w *table) identities(t *testing.T, rec *sourcetest.Record) {
	t.Helper()
	got := map[sourcetest.ID]float64{}
	for key, p := range rec.Points {
		got[key] = p.Value
	}
	if diff := cmp.Diff(w.want, got, cmp.AllowUnexported(sourcetest.ID{})); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if len(rec.Errs) > 0 {
		t.Errorf("errors: %q", rec.Errs)
	}
}

// stepping is a clock on which the writer takes a step in every pause, and the
// drain closes after the last.
func stepping(t *testing.T, w *table, drain chan struct{}) source.Clock {
	done := 0
	ready := make(chan time.Time)
	close(ready)
	return source.Clock{After: func(time.Duration) <-chan time.Time {
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
			cfg := Config{Format: FormatCSV, Path: w.path, Metrics: csvMetrics, State: filepath.Join(dir, "state"), Drain: drain, Clock: stepping(t, w, drain)}
			rec := sourcetest.NewRecord()
			for limit := kill; ; limit = -1 {
				src, err := Open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				if rec.Follow(t.Context(), t, src, limit) {
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
		src, err := Open(Config{Format: FormatCSV, Path: w.path, Metrics: csvMetrics, Drain: drain, Clock: stepping(t, w, drain)})
		if err != nil {
			t.Fatal(err)
		}
		rec := sourcetest.NewRecord()
		rec.Follow(t.Context(), t, src, -1)
		w.identities(t, rec)
		if rec.Again > 0 {
			t.Errorf("%d points came twice", rec.Again)
		}
	}
}

// A writer that does not wait for the reader.
func TestCSVWhileTheWriterRuns(t *testing.T) {
	for i := range 20 {
		dir := t.TempDir()
		w := lightning(filepath.Join(dir, "metrics.csv"), 100)
		drain := make(chan struct{})
		rec := sourcetest.NewRecord()
		done := make(chan struct{})
		go func() {
			defer close(done)
			random := rand.New(rand.NewPCG(3, uint64(i)))
			for lives := 0; ; lives++ {
				src, err := Open(Config{Format: FormatCSV, Path: w.path, Metrics: csvMetrics, State: filepath.Join(dir, "state"), Drain: drain, Clock: sourcetest.Quick()})
				if err != nil {
					t.Error(err)
					return
				}
				limit := -1
				if lives < 10 {
					limit = 1 + random.IntN(20)
				}
				if rec.Follow(t.Context(), t, src, limit) {
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
