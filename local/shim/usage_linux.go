package shim

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticks is how many units of CPU time the kernel counts in a second, on every
// architecture that Go has (USER_HZ).
const ticks = 100

// Usages is what the processes of each pod use, by the pod's UID. Processes that may
// not be looked at belong to the pod of their parent.
func Usages() (map[string]Usage, error) {
	table, err := processes()
	if err != nil {
		return nil, err
	}
	pods := map[int]string{}
	var podOf func(pid int) string
	podOf = func(pid int) string {
		if uid, known := pods[pid]; known {
			return uid
		}
		pods[pid] = "" // ends a circle, which a PID that was used again may make
		uid, found := environment(pid, EnvPodUID)
		if p, ok := table[pid]; !found && ok && p.parent > 1 {
			uid = podOf(p.parent)
		}
		pods[pid] = uid
		return uid
	}
	out := map[string]Usage{}
	for pid, p := range table {
		uid := podOf(pid)
		if uid == "" {
			continue
		}
		u := out[uid]
		u.CPU += time.Duration(p.cpuTicks) * (time.Second / ticks)
		u.Memory += p.residentPages * int64(os.Getpagesize())
		out[uid] = u
	}
	return out, nil
}

// environment is the value of a variable that a process was started with.
func environment(pid int, name string) (value string, found bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", false
	}
	for item := range bytes.SplitSeq(data, []byte{0}) {
		if value, found = strings.CutPrefix(string(item), name+"="); found {
			return value, true
		}
	}
	return "", false
}
