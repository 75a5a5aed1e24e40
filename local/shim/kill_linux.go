package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/vernier-ml/vernier/local/statefile"
)

// KillShim ends the shim of a pod directory with SIGKILL, its main processes with
// it. It is for a shim that does not answer; Shutdown is the orderly way. Nothing
// happens when the process that the state names is gone, or is another one by now.
func KillShim(dir string) error {
	state, err := ReadState(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, statefile.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill the shim of %s: %w", dir, err)
	}
	if state.PID <= 1 || state.BootID != bootID() || state.StartTicks != startTicks(state.PID) {
		return nil
	}
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill the shim of %s (process %d): %w", dir, state.PID, err)
	}
	return nil
}

// KillOrphans kills every process of a pod, found by the mark that the shim puts
// into the environment of its containers, with their descendants, and returns how
// many. Use it when the pod's shim is dead, and after Shutdown for processes that
// Exec left. The caller and its ancestors are spared. A process that
// cleared its environment and left its parent is not found.
func KillOrphans(ctx context.Context, podUID string) (int, error) {
	if podUID == "" {
		return 0, fmt.Errorf("kill orphans: the pod's UID is missing")
	}
	mark := EnvPodUID + "=" + podUID
	killed := make(map[int]uint64) // start ticks by process: one that ends shows no environment
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		table, err := processes()
		if err != nil {
			return len(killed), fmt.Errorf("kill orphans of pod %s: %w", podUID, err)
		}
		spared := make(map[int]bool)
		for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = table[pid].parent {
			spared[pid] = true
		}
		members := family(table, spared, func(p process) bool { return killed[p.pid] == p.startTicks || hasEnv(p.pid, mark) })
		if len(members) == 0 {
			return len(killed), nil
		}
		for pid, p := range members {
			killed[pid] = p.startTicks
		}
		if err := killAll(members); err != nil {
			return len(killed), fmt.Errorf("kill orphans of pod %s: %w", podUID, err)
		}
		// They are not our children, so nothing tells us when they are gone.
		select {
		case <-ctx.Done():
			return len(killed), fmt.Errorf("kill orphans of pod %s: %d processes do not end: %w", podUID, len(members), ctx.Err())
		case <-time.After(pause):
		}
	}
}
