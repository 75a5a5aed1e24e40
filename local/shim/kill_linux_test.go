package shim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestKillShimSparesAnotherProcessOfItsNumber(t *testing.T) {
	tests := map[string]struct {
		change     func(*State)
		wantKilled bool
	}{
		"the process that the state names is killed": {func(*State) {}, true},
		"a process started at another time is not":   {func(s *State) { s.StartTicks++ }, false},
		"a process of an earlier boot is not":        {func(s *State) { s.BootID = "earlier" }, false},
		"no process is none":                         {func(s *State) { s.PID = 0 }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			victim := exec.Command("sleep", "1000")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			defer victim.Wait() //nolint:errcheck // it ends by a signal
			defer func() { _ = victim.Process.Kill() }()
			state := State{Version: Version, PID: victim.Process.Pid, StartTicks: startTicks(victim.Process.Pid), BootID: bootID()}
			test.change(&state)
			dir := t.TempDir()
			data, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, stateName), data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := KillShim(dir); err != nil {
				t.Fatal(err)
			}
			if test.wantKilled {
				if err := victim.Wait(); err == nil {
					t.Error("it ended well instead of by a signal")
				}
				return
			}
			if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("it is gone: %v", err)
			}
		})
	}
}

func TestKillShimOfADirectoryWithoutOne(t *testing.T) {
	if err := KillShim(t.TempDir()); err != nil {
		t.Error(err)
	}
}
