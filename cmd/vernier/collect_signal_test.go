package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestCollectAndSignals holds what Ctrl-C does: each signal goes to the whole
// process group, as from a terminal.
func TestCollectAndSignals(t *testing.T) {
	tests := map[string]struct {
		script  string
		signals []syscall.Signal
		code    int
		want    string
	}{
		"one signal shows what was read": {script: "echo loss=3; echo ready >&2; exec sleep 1000", signals: []syscall.Signal{syscall.SIGINT},
			code: exitInterrupted, want: "interrupted; the program ended with code 130"},
		"so does SIGTERM": {script: "echo loss=3; echo ready >&2; exec sleep 1000", signals: []syscall.Signal{syscall.SIGTERM},
			code: exitTerminated, want: "interrupted; the program ended with code 143"},
		"also where the program deals with it": {script: "trap 'sleep 1; exit 0' INT; echo loss=3; echo ready >&2; while :; do sleep 0.01; done", signals: []syscall.Signal{syscall.SIGINT},
			code: exitInterrupted, want: "interrupted; the program ended with code 0"},
		"a second one ends all": {script: "trap '' INT; echo loss=3; echo ready >&2; exec sleep 1000", signals: []syscall.Signal{syscall.SIGINT, syscall.SIGINT},
			code: exitInterrupted, want: "left on interrupt"},
		"also a second one of another kind": {script: "trap '' INT TERM; echo loss=3; echo ready >&2; exec sleep 1000", signals: []syscall.Signal{syscall.SIGINT, syscall.SIGTERM},
			code: exitTerminated, want: "left on terminated"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			alive, held, err := os.Pipe() // the probe and its program hold it open
			if err != nil {
				t.Fatal(err)
			}
			defer alive.Close()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "collect", "--probe", "-m", "loss", "--", "sh", "-c", tc.script)
			cmd.Env = append(os.Environ(), actVariable+"=1")
			cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{held}, &syscall.SysProcAttr{Setpgid: true}
			var out bytes.Buffer
			cmd.Stdout = &out
			stderr, err := cmd.StderrPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := held.Close(); err != nil {
				t.Fatal(err)
			}
			left, said := tc.signals, ""
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				said += lines.Text() + "\n"
				if next := strings.HasPrefix(lines.Text(), "ready") || strings.HasPrefix(lines.Text(), "vernier: waiting"); next && len(left) > 0 {
					if err := syscall.Kill(-cmd.Process.Pid, left[0]); err != nil {
						t.Fatal(err)
					}
					left = left[1:]
				}
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(out.String()+said, tc.want) {
				t.Errorf("code %d, want %d and %q; printed\n%s%s", code, tc.code, tc.want, out.String(), said)
			}
			if table := strings.Contains(out.String(), "loss"); table != (len(tc.signals) == 1) {
				t.Errorf("printed\n%s", out.String())
			}
			if _, err := io.ReadAll(alive); err != nil { // returns when all have ended
				t.Error(err)
			}
		})
	}
}
