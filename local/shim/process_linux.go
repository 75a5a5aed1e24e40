package shim

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// process is one line of the process table.
type process struct {
	pid, parent, group, session int
	zombie                      bool
	startTicks                  uint64
	residentPages               int64
}

// processes reads the process table. Processes that end meanwhile are left out.
func processes() (map[int]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, err
	}
	table := make(map[int]process, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, err := readProcess(pid); err == nil {
				table[pid] = p
			}
		}
	}
	return table, nil
}

func readProcess(pid int) (process, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(string(data))
}

// parseStat reads a line of /proc/PID/stat (proc_pid_stat(5)). The name in
// brackets may hold anything, so the fields are counted from the last bracket.
func parseStat(line string) (process, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return process{}, fmt.Errorf("no process name in %q", line)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line[:open]))
	if err != nil {
		return process{}, err
	}
	fields := strings.Fields(line[end+1:]) // fields[0] is field 3, the state
	if len(fields) < 22 {
		return process{}, fmt.Errorf("%d fields after the process name in %q", len(fields), line)
	}
	var numbers [22]int64
	for _, i := range []int{1, 2, 3, 19, 21} {
		if numbers[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return process{}, err
		}
	}
	return process{
		pid:           pid,
		parent:        int(numbers[1]),
		group:         int(numbers[2]),
		session:       int(numbers[3]),
		zombie:        fields[0] == "Z" || fields[0] == "X",
		startTicks:    uint64(numbers[19]),
		residentPages: numbers[21],
	}, nil
}

// hasEnv tells whether a process was started with that "NAME=value". It is false
// for processes that may not be looked at.
func hasEnv(pid int, entry string) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for item := range bytes.SplitSeq(data, []byte{0}) {
		if string(item) == entry {
			return true
		}
	}
	return false
}

// family returns the processes that match and their descendants, without zombies
// and those that are spared.
func family(table map[int]process, spared map[int]bool, matches func(process) bool) map[int]process {
	members := make(map[int]bool)
	for pid, p := range table {
		if !p.zombie && matches(p) {
			members[pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range table {
			if !members[pid] && members[p.parent] {
				members[pid], grown = true, true
			}
		}
	}
	found := make(map[int]process, len(members))
	for pid := range members {
		if p := table[pid]; !p.zombie && !spared[pid] {
			found[pid] = p
		}
	}
	return found
}

func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func startTicks(pid int) uint64 {
	p, err := readProcess(pid)
	if err != nil {
		return 0
	}
	return p.startTicks
}
