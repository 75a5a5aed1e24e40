package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/report"
)

func TestWithoutAServiceTheSummaryHasTheResult(t *testing.T) {
	b := newBench(t)
	b.away()
	// A fifth of it is left for the reading once the service was given up.
	s := b.run("--kind=StdOut", "--metric=loss", "--grace=15s")
	if err := b.exec("sh", "-c", "for v in 3 0.50 nan 2; do echo loss=$v; done").Run(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Process.Signal(unix.SIGTERM)
	if err := s.cmd.Wait(); err == nil || s.cmd.ProcessState.ExitCode() != exitFailed {
		t.Errorf("the sidecar ended with %v", err)
	}
	summary := b.wantSummary("loss", 4)
	m := summary.Metrics[0]
	if summary.Final || m.Min.String() != "0.50" || m.Max.String() != "3" || m.Last.String() != "2" {
		t.Errorf("summary %+v", summary)
	}
	if !strings.Contains(s.said.String(), "not all points were delivered") {
		t.Errorf("the sidecar said %q", s.said.String())
	}
}

// What a program measured before it was started again counts up to the step from
// which it went on, as in the store.
func TestOfAServiceThatRefusesTheSummaryIsOfAllAttempts(t *testing.T) {
	b := newBench(t)
	b.token = "of nobody" // such a service is given up at once
	s := b.run("--kind=StdOut", "--metric=loss")
	for _, said := range []string{
		"step=1 loss=0.1; step=2 loss=0.2; step=3 loss=9; step=4 loss=0.01",
		"step=3 loss=1.3",
	} {
		if err := b.exec("sh", "-c", "for l in "+strings.ReplaceAll("'"+said+"'", "; ", "' '")+"; do echo $l; done").Run(); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.cmd.Process.Signal(unix.SIGTERM)
	_ = s.cmd.Wait()
	summary := b.wantSummary("loss", 3)
	m := summary.Metrics[0]
	if summary.Final || summary.Attempt.ID != podUID+"/1" || m.Min.String() != "0.1" || m.Max.String() != "1.3" || m.Last.String() != "1.3" {
		t.Errorf("summary %+v", summary)
	}
}

func TestASidecarOutlivesTheServiceAndGoesOn(t *testing.T) {
	b := newBench(t)
	s := b.run("--kind=StdOut", "--metric=loss")
	gate := filepath.Join(b.dir, "gate")
	program := b.exec("sh", "-c", "echo loss=1; while [ ! -e "+gate+" ]; do sleep 0.01; done; echo loss=2")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	b.untilPoints(1)
	b.away()
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Fatal(err)
	}
	b.serve(strings.TrimPrefix(b.url, "http://"), [][]byte{bytes.Repeat([]byte("k"), report.MinKeySize)})
	s.term()
	want(t, "losses", []float64{1, 2}, values(b.points("loss")[0].Points))
}
