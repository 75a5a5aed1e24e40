package shim

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func isNotRunning(err error) bool { return errors.Is(err, ErrNotRunning) }

func TestAnotherClientFindsTheContainers(t *testing.T) {
	p := newPod(t, MountsNone)
	p.start(p.shell("while ! test -e go; do sleep 0.01; done; exit 42"))
	second, _, err := Attach(t.Context(), p.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Signal(t.Context(), "main", 0, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := p.end("main", 0); got.Signal != int(syscall.SIGKILL) {
		t.Errorf("got %+v", got)
	}
	state, err := second.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	onDisk, err := ReadState(p.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(state, onDisk); diff != "" {
		t.Errorf("the file differs (-shim +file)\n%s", diff)
	}
	if state.BootID == "" || state.StartTicks == 0 || state.StartTicks != startTicks(state.PID) {
		t.Errorf("the shim is not identified: %+v", state)
	}
}

// TestShimSurvivesItsParent spawns from a process that is then killed.
func TestShimSurvivesItsParent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pod")
	parent := exec.Command(testProgram, testBinary, dir)
	parent.Env = append(os.Environ(), helperEnv+"=spawn")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parent.Process.Kill() })
	await(t, "the container runs", func() bool {
		state, err := ReadState(dir)
		run, _ := state.Find("main", 0)
		return err == nil && run.Phase == Running
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()

	c, _, err := Attach(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{Client: c, t: t}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.end("main", 0); got.ExitCode != 42 {
		t.Errorf("got %+v, want exit code 42", got)
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	state, err := ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if run, _ := state.Find("main", 0); run.ExitCode != 42 {
		t.Errorf("after the shutdown the file says %+v", run)
	}
}

func TestSpawnTwiceIsOneShim(t *testing.T) {
	p := newPod(t, MountsNone)
	first, err := p.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := Spawn(t.Context(), p.options)
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.PID != second.PID {
		t.Errorf("two shims: %d and %d", first.PID, second.PID)
	}
	other := p.options
	other.PodUID = "another"
	if _, err := Spawn(t.Context(), other); !errors.Is(err, ErrConflict) {
		t.Errorf("spawn for another pod: %v, want ErrConflict", err)
	}
	out, err := exec.Command(testBinary, "serve", "--dir", p.Dir(), "--pod-uid", p.options.PodUID, "--mounts", "none").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another shim serves this directory") {
		t.Errorf("a second shim: %v, %s", err, out)
	}
}

func TestSpawnSaysWhyTheShimEnded(t *testing.T) {
	o := Options{Binary: testBinary, Dir: filepath.Join(t.TempDir(), "pod"), PodUID: "x", Mounts: "sideways"}
	if _, err := Spawn(t.Context(), o); err == nil || !strings.Contains(err.Error(), `"sideways"`) {
		t.Errorf("got %v", err)
	}
	o.Mounts, o.Binary = MountsNone, "/no/such/shim"
	if _, err := Spawn(t.Context(), o); err == nil || !strings.Contains(err.Error(), "/no/such/shim") {
		t.Errorf("got %v", err)
	}
}

func TestLongDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40), "pod")
	p := spawnPod(t, Options{Dir: dir, Mounts: MountsNone})
	if got := p.run(p.shell("exit 5")); got.ExitCode != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestRequestsAreIdempotent(t *testing.T) {
	p := newPod(t, MountsNone)
	spec := p.shell("echo started; while ! test -e go; do sleep 0.01; done; exit 6")
	spec.Dir = t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := p.Start(t.Context(), spec); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	next := spec
	next.Run = 1
	if _, err := p.Start(t.Context(), next); !errors.Is(err, ErrConflict) {
		t.Errorf("a second run beside the first: %v, want ErrConflict", err)
	}
	if err := os.WriteFile(filepath.Join(spec.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.end("main", 0)
	if got := p.start(spec); got.ExitCode != 6 {
		t.Errorf("a start after the end: %+v", got)
	}
	if diff := cmp.Diff("started\n", p.output("main", 0)); diff != "" {
		t.Errorf("the program ran more than once\n%s", diff)
	}
	p.run(next)
	older := spec
	older.Run = 0
	if got, err := p.Start(t.Context(), older); err != nil || got.ExitCode != 6 {
		t.Errorf("a start of a run that is kept: %+v, %v", got, err)
	}
	for name, f := range map[string]func() error{
		"signal": func() error { return p.Signal(t.Context(), "absent", 0, syscall.SIGTERM) },
		"kill":   func() error { return p.Signal(t.Context(), "main", 7, syscall.SIGKILL) },
	} {
		if err := f(); !errors.Is(err, ErrUnknownRun) {
			t.Errorf("%s of an unknown run: %v, want ErrUnknownRun", name, err)
		}
	}
}

func TestBadSpecsAreRefused(t *testing.T) {
	p := newPod(t, MountsNone)
	cases := map[string]ContainerSpec{
		"no name":          {Argv: []string{"true"}},
		"a slash in it":    {Name: "a/b", Argv: []string{"true"}},
		"no command":       {Name: "a"},
		"a negative run":   {Name: "a", Run: -1, Argv: []string{"true"}},
		"nothing whatever": {},
	}
	for name, spec := range cases {
		t.Run(name, func(t *testing.T) {
			if run, err := p.Start(t.Context(), spec); err == nil {
				t.Errorf("accepted: %+v", run)
			}
		})
	}
	state, err := p.State(t.Context())
	if err != nil || len(state.Runs) != 0 {
		t.Errorf("runs %+v, %v", state.Runs, err)
	}
}

func TestWatch(t *testing.T) {
	p := newPod(t, MountsNone)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var phases []Phase
	for state, err := range p.Watch(ctx, 0) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		run, found := state.Find("main", 0)
		switch {
		case !found:
			p.start(p.shell("exit 0"))
		case len(phases) == 0 || phases[len(phases)-1] != run.Phase:
			phases = append(phases, run.Phase)
		}
		if run.Phase == Exited {
			cancel()
		}
	}
	if len(phases) == 0 || phases[len(phases)-1] != Exited {
		t.Errorf("phases %v", phases)
	}
	t.Run("ends when the shim does", func(t *testing.T) {
		p := newPod(t, MountsNone)
		var last error
		for _, err := range p.Watch(t.Context(), 0) {
			if err == nil {
				err = p.Shutdown(t.Context())
			}
			last = err
		}
		if !isNotRunning(last) {
			t.Errorf("got %v, want ErrNotRunning", last)
		}
	})
}

func TestShutdownRecordsTheEnds(t *testing.T) {
	p := newPod(t, MountsNone)
	run := p.start(p.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done"))
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lives(run.PID) {
		t.Error("the container lives on")
	}
	state, err := ReadState(p.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := state.Find("main", 0); got.Phase != Exited || got.ExitCode != 137 {
		t.Errorf("got %+v", got)
	}
	await(t, "the shim ends", func() bool { return !lives(state.PID) })
	if _, err := os.Stat(filepath.Join(p.Dir(), socketName)); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Errorf("a second shutdown: %v", err)
	}
}

func TestIdleShimEnds(t *testing.T) {
	// On a busy machine it may take as long until the new shim is asked for anything.
	p := spawnPod(t, Options{Dir: filepath.Join(t.TempDir(), "pod"), Mounts: MountsNone, IdleExit: 2500 * time.Millisecond})
	// The container outlasts IdleExit, and no client is connected meanwhile.
	p.start(p.shell("sleep 2.8; exit 9"))
	state, err := ReadState(p.Dir())
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the shim ends", func() bool { return !lives(state.PID) })
	if state, err = ReadState(p.Dir()); err != nil {
		t.Fatal(err)
	}
	if got, _ := state.Find("main", 0); got.ExitCode != 9 {
		t.Errorf("got %+v, want the exit code 9", got)
	}
}

func TestOtherVersionsAreRefused(t *testing.T) {
	p := newPod(t, MountsNone)
	conn, err := DialIn(t.Context(), p.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := json.NewEncoder(conn).Encode(request{Version: Version + 1, Op: opWatch}); err != nil {
		t.Fatal(err)
	}
	var r response
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(r.err(), ErrVersion) {
		t.Errorf("got %v, want ErrVersion", r.err())
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, stateName), []byte(`{"version":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadState(dir); !errors.Is(err, ErrVersion) {
		t.Errorf("state of another version: %v, want ErrVersion", err)
	}
}

// After a power cut a file may be there and empty.
func TestAStateThatCannotBeReadIsLeftAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pod")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := spawnPod(t, Options{Dir: dir, Mounts: MountsNone})
	if got := p.run(p.shell("exit 4")); got.ExitCode != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestTheProbeOfMountsNeedsNoTMPDIR(t *testing.T) {
	mode := mountMode(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", "/nonexistent")
	if got, err := ProbeMounts(t.Context(), testBinary, dir); got != mode {
		t.Errorf("got %s, %v; want %s", got, err, mode)
	}
}
