package probe_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/probe"
)

// TestProbeCommandIsInterrupted holds that a signal ends the program, and that
// all that it printed is reported, also what it says at its end.
func TestProbeCommandIsInterrupted(t *testing.T) {
	const script = `trap 'echo loss=1; exit 5' TERM; echo loss=3; echo loss=2; while :; do sleep 0.01; done`
	tests := map[string]struct {
		argv    []string
		metrics []string
		code    int
		want    []string
	}{
		"a program that says something more": {argv: []string{"sh", "-c", script}, code: 5, want: []string{"loss: 3, 3 to 1, in [1, 3]"}},
		"in a process group of its own":      {argv: []string{"setsid", "sh", "-c", script}, metrics: []string{"loss"}, code: 5, want: []string{"loss: 3, 3 to 1, in [1, 3]"}},
		"a program that ends by the signal":  {argv: []string{"sh", "-c", "echo loss=2; exec sleep 1000"}, code: 143, want: []string{"loss: 1, 2 to 2, in [2, 2]"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(tc.argv[0]); err != nil {
				t.Skip("SKIPPED: ", err)
			}
			signals := make(chan os.Signal, 1)
			began := writerFunc(func(b []byte) (int, error) {
				if bytes.Contains(b, []byte("loss=2")) {
					signals <- syscall.SIGTERM
				}
				return len(b), nil
			})
			c := &probe.Command{Argv: tc.argv, Stdout: began, Stderr: io.Discard, Interrupts: signals}
			r, err := probe.Run(t.Context(), c, tc.metrics)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(brief{Kind: "StdOut", Format: "TEXT", Found: tc.want, Seen: []string{}}, inShort(r)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if !r.Interrupted || r.ExitCode == nil || *r.ExitCode != tc.code {
				t.Errorf("interrupted %v, code %v, want %d", r.Interrupted, r.ExitCode, tc.code)
			}
		})
	}
}

// TestProbeToldAfterTheProgram holds that a signal counts which this process is
// handed after the program has ended by it: the group gets it at once.
func TestProbeToldAfterTheProgram(t *testing.T) {
	tests := map[string]struct {
		script string
		told   bool
		want   bool
	}{
		"it ends by the signal":         {script: "kill -INT $$", told: true, want: true},
		"it ends as by the signal":      {script: "exit 143", told: true, want: true},
		"it fails, and nobody was told": {script: "exit 1"},
		"it ends well, nobody was told": {script: "exit 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			signals, pids := make(chan os.Signal, 1), make(chan int, 1)
			stdout := writerFunc(func(b []byte) (int, error) {
				pid, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(string(b)), "pid="))
				pids <- pid
				return len(b), err
			})
			c := &probe.Command{Argv: []string{"sh", "-c", "echo pid=$$;" + tc.script}, Stdout: stdout, Stderr: io.Discard, Interrupts: signals}
			go func() {
				for pid := <-pids; syscall.Kill(pid, 0) == nil; { // until it was waited for
					runtime.Gosched()
				}
				if tc.told {
					signals <- os.Interrupt
				}
			}()
			r, err := probe.Run(t.Context(), c, []string{"pid"})
			if err != nil {
				t.Fatal(err)
			}
			if r.Interrupted != tc.want {
				t.Errorf("interrupted %v, want %v", r.Interrupted, tc.want)
			}
		})
	}
}
