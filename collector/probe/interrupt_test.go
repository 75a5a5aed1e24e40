package probe_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
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

// TestProbeProgramThatASignalEnded holds that a program which a signal ends was
// interrupted, whether or not this process was handed one by then.
func TestProbeProgramThatASignalEnded(t *testing.T) {
	for script, want := range map[string]bool{"kill -INT $$": true, "exit 143": true, "exit 1": false, "exit 0": false} {
		c := &probe.Command{Argv: []string{"sh", "-c", script}, Stdout: io.Discard, Stderr: io.Discard, Interrupts: make(chan os.Signal)}
		r, err := probe.Run(t.Context(), c, []string{"loss"})
		if err != nil {
			t.Fatal(err)
		}
		if r.Interrupted != want {
			t.Errorf("%s: interrupted %v, want %v", script, r.Interrupted, want)
		}
	}
}
