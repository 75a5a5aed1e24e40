package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func TestFileSeqIsTheOffset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.log")
	text := "hello\nloss=1 loss=2\n\n  x loss = 3"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, p := range drained(t, Config{Path: path, Format: "TEXT", Metrics: []string{"loss"}}) {
		got = append(got, p.Seq)
		if !strings.HasPrefix(text[p.Seq:], "loss") {
			t.Errorf("Seq %d is not at a match", p.Seq)
		}
	}
	if diff := cmp.Diff([]int64{6, 13, 25}, got); diff != "" {
		t.Errorf("Seq (-want +got):\n%s", diff)
	}
}

// drained reads what a file holds now.
func drained(t *testing.T, cfg Config) []collector.Point {
	t.Helper()
	cfg.Drain = sourcetest.Closed()
	src, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	points, errs := sourcetest.Collected(t, src)
	if len(errs) > 0 {
		t.Errorf("errors %q", errs)
	}
	return points
}

// Each file at a path, and each truncation, has a number that stays its own.
func TestFileSeqAfterGenerations(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Path: filepath.Join(dir, "m.log"), Format: "TEXT", Metrics: []string{"loss"}, State: filepath.Join(dir, "state")}
	write := func(s string) {
		if err := os.WriteFile(cfg.Path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seqs := func() (out []int64) {
		for _, p := range drained(t, cfg) {
			out = append(out, p.Seq)
		}
		return out
	}
	write("loss=1\n")
	first := seqs()
	write("loss=2\nloss=3\n") // truncated and overtaken between two reads
	second := seqs()
	if err := os.Rename(cfg.Path, cfg.Path+".1"); err != nil {
		t.Fatal(err)
	}
	write("loss=4\n")
	third := seqs()
	const g = 1 << generationShift
	want := [][]int64{{0}, {g, g + 7}, {g, g + 7, 2 * g}}
	if diff := cmp.Diff(want, [][]int64{first, second, third}); diff != "" {
		t.Errorf("Seq (-want +got):\n%s", diff)
	}
}
