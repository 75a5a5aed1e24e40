package shim

import (
	"context"
	"fmt"
	"os"
	"time"
)

// KillOrphans kills every process of a pod, found by the mark that the shim puts
// into the environment of its containers, with their descendants, and returns how
// many. Use it when the pod's shim is dead, and after Shutdown for processes that
// were started by Command. The caller and its ancestors are spared. A process that
// cleared its environment and left its parent is not found.
func KillOrphans(ctx context.Context, podUID string) (int, error) {
	if podUID == "" {
		return 0, fmt.Errorf("kill orphans: the pod's UID is missing")
	}
	mark := EnvPodUID + "=" + podUID
	killed := make(map[int]bool)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		table, err := processes()
		if err != nil {
			return len(killed), fmt.Errorf("kill orphans of pod %s: %w", podUID, err)
		}
		spared := make(map[int]bool)
		for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = table[pid].parent {
			spared[pid] = true
		}
		members := family(table, spared, func(p process) bool { return hasEnv(p.pid, mark) })
		if len(members) == 0 {
			return len(killed), nil
		}
		for pid := range members {
			killed[pid] = true
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
