package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

// A part of the verdict half could be looked at before the page is written.
func TestTheVerdictHalfIsPlayedAsAWhole(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is to be played, whatever is wrong
	for _, part := range [][]string{{"-problem", "hpobench-car"}, {"-suite", problem.Tabular}} {
		err := realCommand(ctx, append([]string{"-verdict", "-out", out, "-version", "v1"}, part...))
		if err == nil || !strings.Contains(err.Error(), "as a whole") {
			t.Errorf("%v: error %v", part, err)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there are results")
	}
}

func TestASourceHasAVersionOfItsOwn(t *testing.T) {
	folder := t.TempDir()
	version := func(file, text string) string {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		v, err := sourceVersion(folder)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := version("a.go", "package a")
	if tested := version("a_test.go", "package a"); tested != first {
		t.Errorf("a test makes %s of %s", tested, first)
	}
	if changed := version("a.go", "package b"); changed == first {
		t.Errorf("the same version %s for another source", changed)
	}
}

func TestThePageSaysWhoseVerdictWasSeen(t *testing.T) {
	var records []play.Record
	for _, r := range [][2]string{{"auto", "src-1"}, {"optuna-tpe", "optuna==5.0.0"}, {"auto", "src-2"}, {"auto", "src-1"}} {
		records = append(records, play.Record{Key: play.Key{Method: r[0], Version: r[1]}})
	}
	if head := string(verdictHead(records, play.Sequential)); !strings.Contains(head, "seen: src-1, src-2.") || strings.Contains(head, "-regime") {
		t.Errorf("it says %q", head)
	}
	if head := string(verdictHead(records, play.BatchOf8)); !strings.Contains(head, `REAL="-regime batch8"`) {
		t.Errorf("of batches it says %q", head)
	}
}
