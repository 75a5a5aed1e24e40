package shim

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one line of the process table.
type process struct {
	pid, parent, group, session int
	zombie                      bool
	startTicks                  uint64
	residentPages               int64
	// cpuTicks is the CPU time of it and of its children that it has waited for.
	cpuTicks int64
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
	for _, i := range []int{1, 2, 3, 11, 12, 13, 14, 19, 21} {
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
		cpuTicks:      numbers[11] + numbers[12] + numbers[13] + numbers[14],
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

// exitStatus is how a child ended.
type exitStatus struct {
	code, signal int
	at           time.Time
}

// reaper forks the main processes and waits for every child, orphans that the
// kernel hands to us included.
type reaper struct {
	now   func() time.Time
	forks chan func()

	// mu is held while forking and while reaping, so that no child is reaped
	// before it is known and no pid is used after it was given back.
	mu    sync.Mutex
	exits map[int]chan exitStatus
}

func newReaper(now func() time.Time) (*reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	r := &reaper{now: now, forks: make(chan func()), exits: make(map[int]chan exitStatus)}
	go func() {
		// Children are killed when the thread that made them ends (PDEATHSIG), so
		// it must be one that lives as long as the shim.
		runtime.LockOSThread()
		for f := range r.forks {
			f()
		}
	}()
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			r.reap()
		}
	}()
	return r, nil
}

// fork starts a child and returns a channel that yields how it ended.
func (r *reaper) fork(path string, argv []string, attr *syscall.ProcAttr) (pid int, exit <-chan exitStatus, err error) {
	done := make(chan struct{})
	r.forks <- func() {
		defer close(done)
		r.mu.Lock()
		defer r.mu.Unlock()
		if pid, err = syscall.ForkExec(path, argv, attr); err == nil {
			ch := make(chan exitStatus, 1)
			r.exits[pid], exit = ch, ch
		}
	}
	<-done
	return pid, exit, err
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			break
		}
		if ch, ours := r.exits[pid]; ours {
			delete(r.exits, pid)
			ch <- toExit(status, r.now())
		}
	}
}

// signal signals a main process that was not reaped yet.
func (r *reaper) signal(pid int, sig syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, lives := r.exits[pid]; !lives {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

// killGroup kills the process group of a child that was not reaped yet.
func (r *reaper) killGroup(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, lives := r.exits[pid]; lives {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // fails when nothing is left
	}
}

// mains are the main processes that live.
func (r *reaper) mains() map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pids := make(map[int]bool, len(r.exits))
	for pid := range r.exits {
		pids[pid] = true
	}
	return pids
}

// sweepTimeout bounds the wait for processes that do not end although they were
// killed, because they sit in the kernel.
const sweepTimeout = 5 * time.Second

// tree finds the processes of one run: its session, the orphans that carry its
// mark, and the descendants of both.
type tree struct {
	reaper *reaper
	main   int
	mark   string // "VERNIER_CONTAINER=name/run"
	// sole says that orphans without any mark are this run's, because no other
	// runs. nil means never.
	sole func() bool
}

func (t tree) members() (map[int]process, error) {
	table, err := processes()
	if err != nil {
		return nil, err
	}
	mains, self, sole := t.reaper.mains(), os.Getpid(), t.sole != nil && t.sole()
	return family(table, map[int]bool{self: true}, func(p process) bool {
		if p.parent == self && !mains[p.pid] && !mains[p.session] {
			return p.session == t.main || sole || hasEnv(p.pid, t.mark)
		}
		return p.pid == t.main || p.session == t.main
	}), nil
}

// kill sends SIGKILL to every process of the run that exists now.
func (t tree) kill() (int, error) {
	members, err := t.members()
	if err != nil {
		return 0, err
	}
	return len(members), killAll(members)
}

func killAll(members map[int]process) error {
	for pid := range members {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}

// sweep kills what the main process left behind, until nothing is left. Killing a
// process hands us its children, so one round is not enough.
func (t tree) sweep() error {
	if childless() {
		return nil
	}
	deadline := time.NewTimer(sweepTimeout)
	defer deadline.Stop()
	for {
		n, err := t.kill()
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-deadline.C:
			return fmt.Errorf("%d processes do not end although they were killed", n)
		}
	}
}

// childless says without reading the process table that there is nothing to sweep.
func childless() bool {
	err := unix.EINTR
	for err == unix.EINTR {
		var info unix.Siginfo
		e := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		err, _ = e.(syscall.Errno) //nolint:errorlint // a system call gives nothing else
	}
	return err == unix.ECHILD
}
