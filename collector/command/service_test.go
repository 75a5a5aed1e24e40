package command

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
	b.say("step=1 loss=3", "step=2 loss=0.50", "step=3 loss=nan", "step=4 loss=0.01")
	b.say("step=4 loss=2") // started again: the summary is of this attempt
	_ = s.cmd.Process.Signal(unix.SIGTERM)
	if err := s.cmd.Wait(); err == nil || s.cmd.ProcessState.ExitCode() != exitFailed {
		t.Errorf("the sidecar ended with %v", err)
	}
	summary := b.wantSummary("loss", 1)
	m := summary.Metrics[0]
	if summary.Final || summary.Attempt.ID != podUID+"/1" || m.Min.Text != "2" || m.Max.Text != "2" || m.Last.Text != "2" {
		t.Errorf("summary %+v", summary)
	}
	if !strings.Contains(s.said.String(), "not all points were delivered") {
		t.Errorf("the sidecar said %q", s.said.String())
	}
}

// say runs a program that prints lines.
func (b *bench) say(lines ...string) {
	b.t.Helper()
	if err := b.exec(append([]string{"printf", `%s\n`}, lines...)...).Run(); err != nil {
		b.t.Fatal(err)
	}
}

func TestWhereTheServiceRefusesTheSummaryIsOfTheLastAttempt(t *testing.T) {
	b := newBench(t)
	b.token = "of no trial" // such a service is given up at once
	s := b.run("--kind=StdOut", "--metric=loss")
	b.say("step=1 loss=0.1", "step=2 loss=0.2", "step=3 loss=9", "step=4 loss=0.01")
	b.say("step=3 loss=1.3")
	_ = s.cmd.Process.Signal(unix.SIGTERM)
	_ = s.cmd.Wait()
	summary := b.wantSummary("loss", 1)
	m := summary.Metrics[0]
	if summary.Final || summary.Attempt.ID != podUID+"/1" || m.Min.Text != "1.3" || m.Max.Text != "1.3" || m.Last.Text != "1.3" {
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
