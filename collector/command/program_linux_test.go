package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/contract"
)

// both starts a program with its reporter in one process tree, and finish waits for it.
func (b *bench) both(argv ...string) *sidecar {
	b.t.Helper()
	b.env = append(b.env, "PATH="+os.Getenv("PATH"))
	return b.start(append([]string{"--kind=StdOut", "--metric=loss", "--grace=3s", "--"}, argv...)...)
}

func (s *sidecar) finish() (code int, out string) {
	s.t.Helper()
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode(), s.log.String()
}

func TestAProgramIsMeasuredWithoutASidecar(t *testing.T) {
	b := newBench(t)
	b.env = []string{"MINE=1"}
	s := b.both("sh", "-c", `echo loss=0.5; env; echo loss=0.25; echo tail >&2; exit 3`)
	code, out := s.finish()
	if code != 3 || !strings.Contains(out, "MINE=1\n") || !strings.HasSuffix(out, "loss=0.25\n") || s.said.String() != "tail\n" {
		t.Errorf("exit code %d, output %q, errors %q", code, out, s.said.String())
	}
	for _, hidden := range []string{b.token, b.url, contract.EnvPodUID} {
		if strings.Contains(out, hidden) {
			t.Errorf("the program sees %q", hidden)
		}
	}
	want(t, "losses", []float64{0.5, 0.25}, values(b.points("loss")[0].Points))
	if states := b.attempts(); len(states) != 1 || states[0].Attempt.ID != podUID+"/0" || !states[0].Final {
		t.Errorf("attempts %+v", states)
	}
	// The kubelet takes the program's last lines where this is empty.
	if left, err := os.ReadFile(b.log); err == nil && len(left) > 0 {
		t.Errorf("termination message %q", left)
	}
	// The container is started again.
	if code, _ := b.both("echo", "loss=0.125").finish(); code != 0 {
		t.Errorf("exit code %d of the second start", code)
	}
	series := b.points("loss")
	if len(series) != 2 {
		t.Fatalf("series %+v", series)
	}
	want(t, "losses of the second start", []float64{0.125}, values(series[1].Points))
}

func TestAProgramWithoutASidecarIsToldToEnd(t *testing.T) {
	b := newBench(t)
	s := b.both("sh", "-c", `trap 'echo loss=2; exit 9' TERM; echo loss=1; while :; do sleep 0.01; done`)
	b.untilPoints(1)
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, _ := s.finish(); code != 9 {
		t.Errorf("exit code %d", code)
	}
	want(t, "losses", []float64{1, 2}, values(b.points("loss")[0].Points))
}

// The program takes all of the grace, and will be killed: what it measured is reported
// before.
func TestAProgramWithoutASidecarDoesNotEnd(t *testing.T) {
	b := newBench(t)
	s := b.both("sh", "-c", `trap '' TERM; echo loss=1; while :; do sleep 0.01; done`)
	b.untilPoints(1)
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	b.until("final", func() bool { a := b.attempts(); return len(a) == 1 && a[0].Final })
}

func TestAProgramWithoutASidecarLeavesASummaryOfWhatIsNotStored(t *testing.T) {
	b := newBench(t)
	b.away()
	code, _ := b.both("sh", "-c", "echo loss=1; exit 5").finish()
	if code != 5 {
		t.Errorf("exit code %d", code)
	}
	b.wantSummary("loss", 1)
}

func TestAReporterThatDiesIsStartedAgain(t *testing.T) {
	b := newBench(t)
	gate := filepath.Join(b.dir, "gate")
	s := b.both("sh", "-c", fmt.Sprintf(`echo loss=1; until [ -e %s ]; do sleep 0.01; done; echo loss=2; exit 4`, gate))
	b.untilPoints(1)
	if err := unix.Kill(reporterOf(t, s), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _ := s.finish(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	want(t, "losses", []float64{1, 2}, values(b.points("loss")[0].Points))
}

// The reporter is killed once the program has ended, before it has read the last value.
func TestAReporterThatDiesAfterTheProgramIsStartedAgain(t *testing.T) {
	b := newBench(t)
	gate := filepath.Join(b.dir, "gate")
	b.env = []string{"PATH=" + os.Getenv("PATH")}
	s := b.start("--kind=StdOut", "--metric=loss", "--grace=1m", "--", "sh", "-c",
		fmt.Sprintf(`echo loss=1; until [ -e %s ]; do sleep 0.01; done; echo loss=2; exit 4`, gate))
	b.untilPoints(1)
	reporter := reporterOf(t, s)
	if err := unix.Kill(reporter, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.until("told to end", func() bool { return isPending(t, reporter, unix.SIGTERM) })
	if err := unix.Kill(reporter, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, _ := s.finish(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	want(t, "losses", []float64{1, 2}, values(b.points("loss")[0].Points))
}

func reporterOf(t *testing.T, s *sidecar) (pid int) {
	t.Helper()
	for _, pid := range children(t, s.cmd.Process.Pid) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(line), "\x00--"+flagUndelivered+"\x00") {
			return pid
		}
	}
	t.Fatal("there is no reporter")
	return 0
}

// isPending returns whether a process was sent a signal that it has not taken.
func isPending(t *testing.T, pid int, signal unix.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nShdPnd:\t")
	word, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(word, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return mask&(1<<(signal-1)) != 0
}

func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
