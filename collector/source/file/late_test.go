package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// A network file system may show a file's new size before the data, and zeros in
// their place.
func TestFileReadsDataThatComesAfterTheSize(t *testing.T) {
	for name, tc := range map[string]struct{ format, before, text string }{
		"lines":                {"TEXT", "loss=1\nloss=2\n", "loss=1\nloss=2\nloss=3\n"},
		"within a line":        {"TEXT", "loss=1\nloss=2\nlo", "loss=1\nloss=2\nloss=3\n"},
		"rows":                 {"CSV", "loss\n1\n2\n", "loss\n1\n2\n3\n"},
		"the first of all":     {"TEXT", "", "loss=1\nloss=2\nloss=3\n"},
		"the first row of all": {"CSV", "", "loss\n1\n2\n3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics")
			write := func(text string) {
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				defer sourcetest.Shut(t, f)
				if _, err := f.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			write(tc.before + strings.Repeat("\x00", len(tc.text)-len(tc.before)))
			drain, pauses := make(chan struct{}), 0
			clock := source.Clock{After: func(time.Duration) <-chan time.Time {
				switch pauses++; pauses {
				case 3:
					write(tc.text)
				case 6:
					close(drain)
				}
				return time.After(time.Millisecond)
			}}
			src, err := Open(Config{Path: path, Format: tc.format, Metrics: []string{"loss"}, Drain: drain, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			var got []float64
			for p, err := range src.Points(t.Context()) {
				if err != nil {
					t.Error(err)
					continue
				}
				got = append(got, p.Value)
			}
			if diff := cmp.Diff([]float64{1, 2, 3}, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// A program that ended within a quoted cell, or that quotes badly, takes the rows
// after the quote with it: that must be said.
func TestTableSaysThatAQuoteIsNotClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.csv")
	if err := os.WriteFile(path, []byte("step,note,loss\n1,fine,0.5\n2,\"bad,0.4\n3,fine,0.3\n4,fine,0.2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := Open(Config{Path: path, Format: FormatCSV, Metrics: []string{"loss"}, Drain: sourcetest.Closed()})
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	var got []float64
	for p, err := range src.Points(t.Context()) {
		if err != nil {
			said += err.Error()
			continue
		}
		got = append(got, p.Value)
	}
	t.Log(got)
	if !strings.Contains(said, "a quote that is not closed") {
		t.Errorf("it says %q", said)
	}
}

// Text that pads its lines with zeros is no sign of a kill: only a kept output has it.
func TestFileReadsLinesPaddedWithZeros(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics")
	if err := os.WriteFile(path, []byte("loss=0.5\x00\x00\x00\nloss=0.25\x00\x00\x00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := Open(Config{Path: path, Format: "TEXT", Metrics: []string{"loss"}, Drain: sourcetest.Closed()})
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for p, err := range src.Points(t.Context()) {
		if err != nil {
			t.Error(err)
			continue
		}
		got = append(got, p.Value)
	}
	if diff := cmp.Diff([]float64{0.5, 0.25}, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}
