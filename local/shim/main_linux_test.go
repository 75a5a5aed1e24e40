package shim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperEnv makes the test binary behave as a program in a container.
const helperEnv = "SHIM_TEST_HELPER"

var (
	// testBinary is the shim's binary that the tests run.
	testBinary string
	// testProgram is the test binary, which runs as a helper in containers.
	testProgram string
)

func TestMain(m *testing.M) {
	if helper := os.Getenv(helperEnv); helper != "" {
		os.Exit(runHelper(helper))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	var err error
	if testProgram, err = os.Executable(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// A test run as a user who has no Go tool brings the binary along.
	if testBinary = os.Getenv("SHIM_TEST_BINARY"); testBinary == "" {
		dir, err := os.MkdirTemp("", "shim-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		testBinary = filepath.Join(dir, "shim")
		build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", testBinary, "../../cmd/shim")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the shim: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// runHelper is the main function of the test binary inside a container.
func runHelper(helper string) int {
	switch helper {
	case "hog": // holds the number of MiB in its argument
		n, _ := strconv.Atoi(os.Args[1])
		held := make([]byte, n<<20)
		for i := 0; i < len(held); i += 4096 {
			held[i] = 1
		}
		fmt.Println("full")
		<-time.After(time.Hour)
		runtime.KeepAlive(held)
	case "spawn": // starts a shim and a container in a directory, and hangs
		c, err := Spawn(context.Background(), Options{Binary: os.Args[1], Dir: os.Args[2], PodUID: "survivor", Mounts: MountsNone})
		if err == nil {
			_, err = c.Start(context.Background(), ContainerSpec{
				Name: "main", Argv: []string{"sh", "-c", "while ! test -e go; do sleep 0.01; done; exit 42"},
				Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: os.Args[2],
			})
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		<-time.After(time.Hour)
	case "orphan": // leaves a process behind, in a session of its own
		cmd := exec.Command("sleep", "3600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if slices.Contains(os.Args, "unmarked") {
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		}
		if slices.Contains(os.Args, "holding-output") {
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		}
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(cmd.Process.Pid)
	}
	return 0
}

// pod is a shim with its directory.
type pod struct {
	*Client
	t       testing.TB
	options Options
}

func newPod(t testing.TB, mounts MountMode) *pod {
	t.Helper()
	return spawnPod(t, Options{Dir: filepath.Join(t.TempDir(), "pod"), Mounts: mounts})
}

func spawnPod(t testing.TB, o Options) *pod {
	t.Helper()
	o.Binary = testBinary
	o.PodUID = fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano())
	c, err := Spawn(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := c.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if _, err := KillOrphans(ctx, o.PodUID); err != nil {
			t.Errorf("kill orphans: %v", err)
		}
	})
	return &pod{Client: c, t: t, options: o}
}

// mountMode is how mounts can be made here; a test that needs them is skipped
// where they cannot.
func mountMode(t testing.TB) MountMode {
	t.Helper()
	mode, err := ProbeMounts(t.Context(), testBinary, t.TempDir())
	if mode == MountsNone {
		t.Skipf("no mounts on this machine: %v", err)
	}
	return mode
}

// log is where the pod's containers log.
func (p *pod) log(name string, run int) string {
	return filepath.Join(p.Dir(), name, fmt.Sprintf("%d.log", run))
}

// shell is a spec that runs a script.
func (p *pod) shell(script string) ContainerSpec {
	return ContainerSpec{
		Name: "main", Argv: []string{"sh", "-c", script},
		Env: []string{"PATH=" + os.Getenv("PATH")}, LogPath: p.log("main", 0),
	}
}

// helper is a spec that runs a helper of the test binary.
func (p *pod) helper(args ...string) ContainerSpec {
	spec := p.shell("")
	spec.Argv = append([]string{testProgram}, args[1:]...)
	spec.Env = append(spec.Env, helperEnv+"="+args[0])
	return spec
}

func (p *pod) start(spec ContainerSpec) Run {
	p.t.Helper()
	if p.options.Mounts != MountsNone {
		removeMountPoints(p.t, spec.allMounts())
	}
	run, err := p.Start(p.t.Context(), spec)
	if err != nil {
		p.t.Fatal(err)
	}
	return run
}

// run starts a container and waits for its end.
func (p *pod) run(spec ContainerSpec) Run {
	p.t.Helper()
	p.start(spec)
	return p.end(spec.Name, spec.Run)
}

// end waits until a run has ended.
func (p *pod) end(name string, run int) Run {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	for state, err := range p.Watch(ctx, 0) {
		if err != nil {
			p.t.Fatalf("wait for the end of %s/%d: %v", name, run, err)
		}
		if r, ok := state.Find(name, run); ok && r.Phase == Exited {
			return r
		}
	}
	return Run{}
}

// output returns what a container wrote, without the log's frame.
func (p *pod) output(name string, run int) string {
	p.t.Helper()
	return strings.Join(logTexts(p.t, p.log(name, run)), "")
}

// await polls until the condition holds.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline, tick := time.After(20*time.Second), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("timed out: %s", what)
		case <-tick.C:
		}
	}
}

// lives tells whether a process exists and is no zombie.
func lives(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && !p.zombie
}

func itoa(n int) string { return strconv.Itoa(n) }
