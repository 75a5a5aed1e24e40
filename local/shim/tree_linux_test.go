package shim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// orphanOf waits for the pid that the helper "orphan" prints.
func orphanOf(t *testing.T, p *pod, name string, run int) int {
	t.Helper()
	pid := 0
	await(t, "the helper tells its child's pid", func() bool {
		pid, _ = strconv.Atoi(strings.TrimSpace(p.output(name, run)))
		return pid > 0
	})
	return pid
}

func TestWhatAContainerLeavesBehindIsKilledWithIt(t *testing.T) {
	cases := map[string]struct{ args []string }{
		"in a session of its own":                {[]string{"orphan"}},
		"that cleared its environment":           {[]string{"orphan", "unmarked"}},
		"that holds the output of the container": {[]string{"orphan", "holding-output"}},
	}
	for how, mode := range modes(t) {
		for name, c := range cases {
			t.Run(how+"/a process "+name, func(t *testing.T) {
				p := newPod(t, mode)
				spec := p.helper(c.args...)
				if mode != MountsNone {
					spec.Mounts = []Mount{{HostPath: t.TempDir(), MountPath: "/vernier-test/volume"}}
				}
				run := p.run(spec)
				if run.ExitCode != 0 || run.Message != "" {
					t.Errorf("got %+v", run)
				}
				if pid := orphanOf(t, p, "main", 0); lives(pid) {
					t.Errorf("process %d lives on", pid)
				}
			})
		}
	}
}

func TestOrphansBelongToTheirOwnContainer(t *testing.T) {
	p := newPod(t, MountsNone)
	stays := p.shell(testProgram + " & wait; sleep 3600")
	stays.Name, stays.LogPath = "stays", p.log("stays", 0)
	stays.Env = append(stays.Env, helperEnv+"=orphan")
	p.start(stays)
	orphan := orphanOf(t, p, "stays", 0)

	p.run(p.helper("orphan"))
	if left := orphanOf(t, p, "main", 0); lives(left) {
		t.Errorf("the orphan %d of the container that ended lives on", left)
	}
	if !lives(orphan) {
		t.Error("the orphan of the container that runs was killed")
	}
	if err := p.Signal(t.Context(), "stays", 0, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := p.end("stays", 0); got.ExitCode != 137 || got.Reason != ReasonError || got.Message != "" {
		t.Errorf("got %+v, want 137 without a remark", got)
	}
	if lives(orphan) {
		t.Error("the orphan outlives its container")
	}
}

// A process that cannot be told from others' while another container runs holds
// the output of a container that ends.
func TestStrangerHoldingTheOutputDoesNotHoldTheEnd(t *testing.T) {
	p := newPod(t, MountsNone)
	stays := p.shell("sleep 3600")
	stays.Name = "stays"
	p.start(stays)
	run := p.run(p.helper("orphan", "unmarked", "holding-output"))
	stranger := orphanOf(t, p, "main", 0)
	if run.ExitCode != 0 {
		t.Errorf("got %+v", run)
	}
	if !lives(stranger) {
		t.Error("the stranger was killed: this test shows nothing")
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lives(stranger) {
		t.Error("the stranger outlives the pod")
	}
}

func TestKillEndsATreeThatIgnoresSignals(t *testing.T) {
	p := newPod(t, MountsNone)
	spec := p.shell(`trap '' TERM HUP INT; for i in 1 2 3; do sh -c 'trap "" TERM; sh -c "sleep 3600; :" & wait; :' & done; echo ready; wait`)
	run := p.start(spec)
	await(t, "the tree stands", func() bool { return len(inSession(t, run.PID)) == 10 })
	members := inSession(t, run.PID)
	if err := p.Signal(t.Context(), "main", 0, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(t.Context(), "main", 0, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.end("main", 0)
	for _, pid := range members {
		if lives(pid) {
			t.Errorf("process %d lives on", pid)
		}
	}
}

func inSession(t *testing.T, session int) []int {
	t.Helper()
	table, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for pid, p := range table {
		if p.session == session && !p.zombie {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestDeathOfTheShim(t *testing.T) {
	p := newPod(t, MountsNone)
	spec := p.helper("orphan")
	spec.Name, spec.LogPath = "ended", p.log("ended", 0)
	ended := p.run(spec)
	run := p.start(p.shell(testProgram + "; sleep 3600")) // no helper: prints nothing
	orphaned := p.shell("")
	orphaned.Name, orphaned.LogPath = "orphaned", p.log("orphaned", 0)
	orphaned.Argv = []string{"sh", "-c", helperEnv + "=orphan " + testProgram + "; sleep 3600"}
	p.start(orphaned)
	orphan := orphanOf(t, p, "orphaned", 0)

	state, err := p.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the main process dies with the shim", func() bool { return !lives(run.PID) })
	if !lives(orphan) {
		t.Error("the orphan died by itself: this test shows nothing")
	}
	if _, _, err := Attach(t.Context(), p.Dir()); !isNotRunning(err) {
		t.Errorf("attach: %v, want ErrNotRunning", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if n, err := KillOrphans(ctx, p.options.PodUID); err != nil || n < 1 {
		t.Errorf("killed %d leftovers, %v", n, err)
	}
	if lives(orphan) {
		t.Error("the orphan outlives KillOrphans")
	}

	again, err := Spawn(t.Context(), p.options)
	if err != nil {
		t.Fatal(err)
	}
	state, err = again.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := state.Find("ended", 0); got != ended {
		t.Errorf("the run that had ended is now %+v, was %+v", got, ended)
	}
	if got, _ := state.Find("main", 0); got.Phase != Exited || got.Reason != ReasonLost || got.ExitCode != 137 || got.Message == "" {
		t.Errorf("the run that was running is now %+v", got)
	}
}

func TestKillOrphansSparesOthers(t *testing.T) {
	mine, other := exec.Command("sleep", "3600"), exec.Command("sleep", "3600")
	uid := fmt.Sprintf("leftover-%d", os.Getpid())
	mine.Env = []string{EnvPodUID + "=" + uid}
	other.Env = []string{EnvPodUID + "=" + uid + "0"}
	for _, cmd := range []*exec.Cmd{mine, other} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	n, err := KillOrphans(t.Context(), uid)
	if n != 1 || err != nil {
		t.Errorf("killed %d, %v; want 1", n, err)
	}
	if lives(mine.Process.Pid) || !lives(other.Process.Pid) {
		t.Errorf("mine lives: %v, the other lives: %v", lives(mine.Process.Pid), lives(other.Process.Pid))
	}
	if _, err := KillOrphans(t.Context(), ""); err == nil {
		t.Error("no error for an empty UID")
	}
}

func TestManyContainersLeakNothing(t *testing.T) {
	for how, mode := range modes(t) {
		t.Run(how, func(t *testing.T) {
			p := newPod(t, mode)
			volume := t.TempDir()
			once := func(run int) {
				spec := p.shell("echo hello; sleep 3600 & exit 3")
				spec.Run, spec.LogPath = run, p.log("main", run)
				if mode != MountsNone {
					spec.Mounts = []Mount{{HostPath: volume, MountPath: "/vernier-test/volume"}}
				}
				if got := p.run(spec); got.ExitCode != 3 || p.output("main", run) != "hello\n" {
					t.Fatalf("run %d: %+v, output %q", run, got, p.output("main", run))
				}
			}
			once(0)
			state, err := p.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := openFiles(t, state.PID)
			for run := 1; run <= 50; run++ {
				once(run)
			}
			await(t, "no file is left open", func() bool { return openFiles(t, state.PID) <= before })
			await(t, "all children are reaped", func() bool { return len(children(t, state.PID)) == 0 })
			state, err = p.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(state.Runs) != KeepRuns || state.Runs[KeepRuns-1].Run != 50 {
				t.Errorf("runs kept: %+v", state.Runs)
			}
		})
	}
}

func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + itoa(pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func children(t *testing.T, parent int) []int {
	t.Helper()
	table, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for pid, p := range table {
		if p.parent == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestStatLines(t *testing.T) {
	const rest = " S 10 20 30 34816 30 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987 1000 250 18446744073709551615"
	want := process{pid: 7, parent: 10, group: 20, session: 30, startTicks: 987, residentPages: 250, cpuTicks: 5 + 6 + 7 + 8}
	zombie := want
	zombie.zombie = true
	cases := map[string]struct {
		line string
		want process
		bad  bool
	}{
		"a plain name":                   {"7 (sleep)" + rest, want, false},
		"a name with brackets and space": {"7 (a) S 1 (b c)" + rest, want, false},
		"a name with a newline":          {"7 (a\nb)" + rest, want, false},
		"a zombie":                       {"7 (sleep)" + strings.Replace(rest, " S ", " Z ", 1), zombie, false},
		"no name":                        {"7 sleep" + rest, process{}, true},
		"too few fields":                 {"7 (sleep) S 1 2 3", process{}, true},
		"nothing":                        {"", process{}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(c.line)
			if got != c.want || (err != nil) != c.bad {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func FuzzStatNeverPanics(f *testing.F) {
	f.Add("7 (sleep) S 10 20 30 34816 30 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987 1000 250 1")
	f.Add(") (")
	f.Fuzz(func(t *testing.T, line string) {
		if p, err := parseStat(line); err != nil && p != (process{}) {
			t.Errorf("%+v with the error %v", p, err)
		}
	})
}
