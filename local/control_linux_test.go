package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

// upAsTest starts a home with the test binary as its supervisor.
func upAsTest(t *testing.T, home Home) (started bool, err error) {
	t.Helper()
	t.Setenv(asProgram, "supervisor")
	return Up(t.Context(), home, ownBinaries(t), func(string) {})
}

// ownBinaries has the test binary as vernier.
func ownBinaries(t *testing.T) Binaries {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "vernier")); err != nil {
		t.Fatal(err)
	}
	return Binaries(dir)
}

func downAtEnd(t *testing.T, home Home) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := Down(ctx, home); err != nil {
			t.Error(err)
		}
	})
}

func TestOfTwoStartsAtOnceOneStartsAndBothSucceed(t *testing.T) {
	home := Home(filepath.Join(t.TempDir(), "home"))
	downAtEnd(t, home)
	t.Setenv(asProgram, "supervisor")
	binaries := ownBinaries(t)
	var starts atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			started, err := Up(t.Context(), home, binaries, func(string) {})
			if err != nil {
				t.Error(err)
			}
			if started {
				starts.Add(1)
			}
		})
	}
	all.Wait()
	if n := starts.Load(); n != 1 {
		t.Errorf("%d of them started it, want 1", n)
	}
}

func TestAStartDuringAStopComesAfterIt(t *testing.T) {
	home := Home(filepath.Join(t.TempDir(), "home"))
	downAtEnd(t, home)
	if started, err := upAsTest(t, home); err != nil || !started {
		t.Fatalf("%v, %v", started, err)
	}
	before, err := ReadStatus(home)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(before.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is stopping", func() bool {
		s, err := ReadStatus(home)
		return err == nil && s.State != StateReady
	})
	if started, err := upAsTest(t, home); err != nil || !started {
		t.Fatalf("%v, %v", started, err)
	}
	if after, err := ReadStatus(home); err != nil || after.State != StateReady || after.PID == before.PID {
		t.Errorf("%+v, %v", after, err)
	}
}

func TestAStartThatIsInterruptedSaysThatItStarted(t *testing.T) {
	home := Home(filepath.Join(t.TempDir(), "home"))
	downAtEnd(t, home)
	t.Setenv(asProgram, "starting")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started, err := Up(ctx, home, ownBinaries(t), func(string) { cancel() }) // Ctrl-C while it waits for etcd
	if !started || !errors.Is(err, context.Canceled) {
		t.Errorf("started %v, %v; the caller could not stop it again", started, err)
	}
}

// A command that looks whether the home is taken holds its lock for a moment.
func TestALookAtTheHomeDoesNotStopAStart(t *testing.T) {
	home := testHome(t)
	unlock, err := home.lock()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	look, err := os.Open(home.path("run", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(look.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	over := time.AfterFunc(100*time.Millisecond, func() { look.Close() })
	defer over.Stop()
	unlock, err = home.lock()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestWhatTheNodeOffersIsKept(t *testing.T) {
	home := testHome(t)
	if err := home.SetResources(Resources{CPU: "4", GPUs: "none", GPUSharing: 2}); err != nil {
		t.Fatal(err)
	}
	flags, _, err := home.resourceFlags()
	if diff := cmp.Diff([]string{"--cpu=4", "--gpus=", "--gpu-sharing=2"}, flags); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	s, err := newSupervisor(Options{Home: home, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	if args := s.agent().args; !slices.Contains(args, "--cpu=4") || !slices.Contains(args, "--gpus=") {
		t.Errorf("the agent is not told: %q", args)
	}
	for _, bad := range []Resources{{CPU: "four"}, {Memory: "-1Gi"}, {GPUSharing: -1}} {
		if home.SetResources(bad) == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestAnotherShellIsTold(t *testing.T) {
	home := testHome(t)
	t.Setenv("VIRTUAL_ENV", "/yesterday")
	if err := home.recordShell(); err != nil {
		t.Fatal(err)
	}
	if note := home.DifferentShell(os.Getenv); note != "" {
		t.Errorf("the same shell: %q", note)
	}
	path := os.Getenv("PATH")
	for _, same := range []string{path + ":" + path, path + ":/no/such/folder:"} {
		t.Setenv("PATH", same)
		if note := home.DifferentShell(os.Getenv); note != "" {
			t.Errorf("the same folders: %q", note)
		}
	}
	t.Setenv("PATH", t.TempDir()+":"+path)
	if note := home.DifferentShell(os.Getenv); !strings.Contains(note, "PATH") {
		t.Errorf("another folder comes first: %q", note)
	}
	t.Setenv("VIRTUAL_ENV", "/today")
	if note := home.DifferentShell(os.Getenv); !strings.Contains(note, "/yesterday") || !strings.Contains(note, "/today") {
		t.Errorf("another environment: %q", note)
	}
}

func TestProcessOneReapsOrphans(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=init")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("process namespaces need root")
	}
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v: %s; want exit code 7", err, out)
	}
}
