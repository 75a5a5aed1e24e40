package file

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func TestFileReadsDataThatComesAfterTheSize(t *testing.T) {
	const lines, rows = "loss=1\nloss=2\nloss=3\n", "loss\n1\n2\n3\n"
	for name, tc := range map[string]struct{ format, text, shown string }{
		"lines":                {"TEXT", lines, "loss=1\nloss=2\n"},
		"within a line":        {"TEXT", lines, "loss=1\nloss=2\nlo"},
		"rows":                 {"CSV", rows, "loss\n1\n2\n"},
		"the first of all":     {"TEXT", lines, ""},
		"the first row of all": {"CSV", rows, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics")
			clock, drain := sourcetest.Late(t, path, []byte(tc.text), len(tc.shown))
			src, err := Open(Config{Path: path, Format: tc.format, Metrics: []string{"loss"}, Drain: drain, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]float64{1, 2, 3}, sourcetest.Values(t, src)); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// A program that ended within a quoted cell, or that quotes badly, takes the rows
// after the quote with it: that must be said.
func TestTableSaysThatAQuoteIsNotClosed(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Put(t, dir, "metrics.csv", []byte("step,note,loss\n1,fine,0.5\n2,\"bad,0.4\n3,fine,0.3\n4,fine,0.2\n"))
	src, err := Open(Config{Path: filepath.Join(dir, "metrics.csv"), Format: FormatCSV, Metrics: []string{"loss"}, Drain: sourcetest.Closed()})
	if err != nil {
		t.Fatal(err)
	}
	points, errs := sourcetest.Collected(t, src)
	if len(points) != 1 || points[0].Value != 0.5 {
		t.Errorf("points %+v, want the row before the quote", points)
	}
	if said := strings.Join(errs, "; "); !strings.Contains(said, "a quote that is not closed") {
		t.Errorf("it says %q", said)
	}
}

// Text that pads its lines with zeros is no sign of a kill: only a kept output has it.
func TestFileReadsLinesPaddedWithZeros(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Put(t, dir, "metrics", []byte("loss=0.5\x00\x00\x00\nloss=0.25\x00\x00\x00\n"))
	src, err := Open(Config{Path: filepath.Join(dir, "metrics"), Format: "TEXT", Metrics: []string{"loss"}, Drain: sourcetest.Closed()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{0.5, 0.25}, sourcetest.Values(t, src)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}
