package local

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAProgramThatIsMissingIsAnErrorThatNamesIt(t *testing.T) {
	k := &keeper{
		component: component{name: "test", path: "/no/such/program"}, starter: newStarter(),
		logFile: filepath.Join(t.TempDir(), "test.log"), stopping: make(chan struct{}), changed: func(int, error) {},
	}
	wantError(t, k.runOnce(t.Context()), "/no/such/program")
}

func TestAComponentGetsItsEnvironmentWithoutEtcdsVariables(t *testing.T) {
	t.Setenv("ETCD_DATA_DIR", "/elsewhere")
	t.Setenv("INHERITED", "yes")
	log := filepath.Join(t.TempDir(), "test.log")
	k := &keeper{
		component: component{name: "test", path: "/bin/sh", args: []string{"-c", "echo $GREETING $INHERITED $ETCD_DATA_DIR"}, env: []string{"GREETING=hello"}},
		starter:   newStarter(), logFile: log, stopping: make(chan struct{}), changed: func(int, error) {},
	}
	if err := k.runOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, log); got != "hello yes\n" {
		t.Errorf("the component says %q", got)
	}
}

func TestAComponentThatEndsByItselfOnSIGTERMEndsInItsOwnWay(t *testing.T) {
	up := filepath.Join(t.TempDir(), "up")
	changes, stop := keepShell(t, `trap 'exit 0' TERM; >`+up+`; while :; do sleep 0.01; done`, time.Minute)
	next(t, changes)
	eventually(t, "the component is up", func() bool { return sizeOf(up) == 0 })
	stop()
	if ended := next(t, changes); ended.err != nil {
		t.Errorf("it ended with %v", ended.err)
	}
	if len(changes) != 0 {
		t.Errorf("a component that was stopped was started again: %+v", next(t, changes))
	}
}

func TestComponentsEndWithASupervisorThatIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent death signal")
	}
	parent, line := startProgram(t, "parent")
	child, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("the parent says %q", line)
	}
	if !isAlive(child) {
		t.Fatal("the component does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the component has ended", func() bool { return !isAlive(child) || isZombie(child) })
}

// isZombie says whether a process has ended and waits for its parent to ask.
func isZombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(data), ") Z ")
}

func TestTheWriterOfALogGoesOnAfterItWasShortened(t *testing.T) {
	for name, tc := range map[string]struct {
		size, wantSize, wantAside int64
	}{
		"a small log is left alone":   {size: maxLog - 1, wantSize: maxLog - 1, wantAside: -1},
		"a large log is copied aside": {size: maxLog, wantSize: 0, wantAside: maxLog},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			writer, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			if err := writer.Truncate(tc.size); err != nil {
				t.Fatal(err)
			}
			if err := rotate(file); err != nil {
				t.Fatal(err)
			}
			if got := sizeOf(file + ".1"); got != tc.wantAside {
				t.Errorf("%d bytes are copied aside, want %d", got, tc.wantAside)
			}
			if _, err := writer.WriteString("more"); err != nil {
				t.Fatal(err)
			}
			if got := sizeOf(file); got != tc.wantSize+4 {
				t.Errorf("after one more write the log has %d bytes, want %d", got, tc.wantSize+4)
			}
		})
	}
}

// sizeOf is -1 for a file that is not there.
func sizeOf(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return -1
	}
	return info.Size()
}
