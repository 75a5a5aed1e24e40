package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// tablesAll reads a directory of tables to its end. Before each look but the
// last, the next of steps is done.
func tablesAll(t *testing.T, dir, state string, steps ...func()) (points, errs []string) {
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
		Now:   func() time.Time { now = now.Add(2 * time.Second); return now },
		After: func(time.Duration) <-chan time.Time { next(); return sourcetest.Quick().After(0) },
	}
	src, err := Open(Config{Format: FormatCSV, Path: dir + "/", Metrics: []string{"loss"}, State: state, Drain: drain, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	read, errs := sourcetest.Collected(t, src)
	for _, p := range read {
		rel, err := filepath.Rel(dir, strings.TrimSuffix(strings.TrimPrefix(p.Source, "file:"), "#loss"))
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, fmt.Sprintf("%s %d: %s=%v at %d", rel, p.Seq, p.Metric, p.Value, p.Step))
	}
	slices.Sort(points) // tables are read side by side
	return points, errs
}

func TestTables(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	first, second := filepath.Join(dir, "logs/version_0/metrics.csv"), filepath.Join(dir, "logs/version_1/metrics.csv")
	points, errs := tablesAll(t, dir, state,
		func() {}, // there is nothing yet
		func() { sourcetest.Append(t, first, []byte("step,loss\n1,3\n")) },
		func() { sourcetest.Append(t, first, []byte("2,2\n")) },
		func() { sourcetest.Append(t, second, []byte("step,acc,loss\n1,0,9\n")) },
		func() { sourcetest.Append(t, filepath.Join(dir, "logs/version_1/hparams.yaml"), []byte("loss: 1\n")) },
		func() { sourcetest.Append(t, second, []byte("2,0,8")) }, // a last row without an end
	)
	want := []string{
		"logs/version_0/metrics.csv 0: loss=3 at 1", "logs/version_0/metrics.csv 1: loss=2 at 2",
		"logs/version_1/metrics.csv 0: loss=9 at 1", "logs/version_1/metrics.csv 1: loss=8 at 2",
	}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Errorf("points (-want +got)\n%s", diff)
	}
	if len(errs) != 1 || !strings.Contains(errs[0], "the metric loss is in several tables") {
		t.Errorf("errors %q, want that of several tables", errs)
	}
	again, _ := tablesAll(t, dir, state)
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("read again (-want +got)\n%s", diff)
	}
	if states, err := filepath.Glob(state + ".*"); err != nil || len(states) != 2 {
		t.Errorf("states %q, want one for each table (%v)", states, err)
	}
}

func TestTablesSayWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	if _, errs := tablesAll(t, dir, ""); len(errs) != 1 || !strings.Contains(errs[0], "no file *.csv was written below") {
		t.Errorf("errors %q", errs)
	}
	for i := range maxTableFiles + 1 {
		sourcetest.Append(t, filepath.Join(dir, fmt.Sprintf("%03d.csv", i)), []byte("loss\n1\n"))
	}
	points, errs := tablesAll(t, dir, "")
	if len(points) != maxTableFiles || !slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, "more than 100 tables") }) {
		t.Errorf("%d points, errors %q", len(points), errs)
	}
}

func TestTablesEndWithTheirContext(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte("loss\n1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, enough := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		src, err := Open(Config{Format: FormatCSV, Path: dir + "/", Metrics: []string{"loss"}, Clock: sourcetest.Quick()})
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, last = range src.Points(ctx) {
			if enough {
				break
			}
			cancel()
		}
		if !enough && !errors.Is(last, context.Canceled) {
			t.Errorf("ended with %v, want the context's error", last)
		}
	}
}
