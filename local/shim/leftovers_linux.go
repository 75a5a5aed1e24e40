package shim

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// KillLeftovers kills every process of a pod, found by the mark that the shim puts
// into the environment of its containers, with their descendants, and returns how
// many. Use it when the pod's shim is dead, and after Shutdown for processes that
// were started by Command. The caller and its ancestors are spared. A process that
// cleared its environment and left its parent is not found.
func KillLeftovers(ctx context.Context, podUID string) (int, error) {
	if podUID == "" {
		return 0, fmt.Errorf("kill leftovers: the pod's UID is missing")
	}
	mark := EnvPodUID + "=" + podUID
	killed := make(map[int]bool)
	for {
		members, err := marked(mark)
		if err != nil {
			return len(killed), fmt.Errorf("kill leftovers of pod %s: %w", podUID, err)
		}
		if len(members) == 0 {
			return len(killed), nil
		}
		for pid := range members {
			killed[pid] = true
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				return len(killed), fmt.Errorf("kill leftover process %d of pod %s: %w", pid, podUID, err)
			}
		}
		// They are not our children, so nothing tells us when they are gone.
		select {
		case <-ctx.Done():
			return len(killed), fmt.Errorf("kill leftovers of pod %s: %d processes do not end: %w", podUID, len(members), ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func marked(mark string) (map[int]bool, error) {
	table, err := processes()
	if err != nil {
		return nil, err
	}
	spared := make(map[int]bool)
	for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = table[pid].parent {
		spared[pid] = true
	}
	members := make(map[int]bool)
	for pid, p := range table {
		if !p.zombie && !spared[pid] && hasEnv(pid, mark) {
			members[pid] = true
		}
	}
	grow(table, members)
	for pid := range members {
		if spared[pid] || table[pid].zombie {
			delete(members, pid)
		}
	}
	return members, nil
}
