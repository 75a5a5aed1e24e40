package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/file"
)

// shared is a pod's directory in which a sidecar is said to be ready.
func shared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	up(t, dir)
	return dir
}

func execIn(t *testing.T, dir string, argv ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), program(t), append([]string{"exec", "--dir=" + dir, "--"}, argv...)...)
}

// kept returns the points that a sidecar would find.
func kept(t *testing.T, dir string, metrics ...string) (points []collector.Point) {
	t.Helper()
	over := make(chan struct{})
	close(over)
	s, err := file.OpenStream(file.Config{Path: filepath.Join(attemptDir(dir, 0), streamName), Format: parse.FormatText, Metrics: metrics, Drain: over})
	if err != nil {
		t.Fatal(err)
	}
	for p, err := range s.Points(t.Context()) {
		if err != nil {
			t.Logf("stream: %v", err)
			continue
		}
		points = append(points, p)
	}
	return points
}

func TestExecEndsAsItsProgramDoes(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		argv     []string
		wantCode int
		wantSaid string // on stderr
	}{
		"success":                        {[]string{"true"}, 0, ""},
		"failure":                        {[]string{"sh", "-c", "exit 7"}, 7, ""},
		"killed":                         {[]string{"sh", "-c", "kill -9 $$"}, 137, ""},
		"terminated":                     {[]string{"sh", "-c", "kill -TERM $$"}, 143, ""},
		"not found in PATH":              {[]string{"no-such-program-here", "x"}, 127, `command not found: "no-such-program-here" is not in PATH=`},
		"not found by path":              {[]string{"/no/such/file"}, 127, `there is no file "/no/such/file"`},
		"not executable":                 {[]string{script("plain", "text", 0o644)}, 126, "chmod +x"},
		"a directory":                    {[]string{dir}, 126, "is not executable"},
		"no format that the system runs": {[]string{script("garbage", "\x7fnothing", 0o755)}, 126, "cannot be started"},
		"a missing interpreter":          {[]string{script("bad", "#!/no/such/interpreter\n", 0o755)}, 126, "interpreter"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := shared(t)
			cmd := execIn(t, dir, tc.argv...)
			var said bytes.Buffer
			cmd.Stderr = &said
			cmd.Run() //nolint:errcheck // the code is looked at
			if got := cmd.ProcessState.ExitCode(); got != tc.wantCode {
				t.Errorf("exit code %d, want %d; it said %q", got, tc.wantCode, said.String())
			}
			if !strings.Contains(said.String(), tc.wantSaid) || tc.wantSaid == "" && said.Len() > 0 {
				t.Errorf("it said %q, want %q in it", said.String(), tc.wantSaid)
			}
		})
	}
}

// Every argument arrives as it is: no shell is between.
func TestExecPassesArgumentsUnchanged(t *testing.T) {
	for name, args := range map[string][]string{
		"none":               {},
		"JSON":               {`--config={"lr": 0.1, "name": "it's \"quoted\"", "l": [1, 2]}`},
		"spaces and nothing": {"a b", " ", "", "\ttab"},
		"shell characters":   {"$HOME", "`id`", "$(id)", "*", "a;b", "a|b", ">x", "&", "\\", "!", "#"},
		"newlines":           {"a\nb", "c\r\n"},
		"flags of ours":      {"--dir=/elsewhere", "-h", "--", "--cap", "1"},
		"other alphabets":    {"größe=1", "损失"},
		"long":               {strings.Repeat("x", 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := execIn(t, shared(t), append([]string{self, "-test.run=^TestSayArguments$", "--"}, args...)...)
			cmd.Env = append(os.Environ(), "VERNIER_TEST_SAY_ARGUMENTS=1")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			line, _, _ := strings.Cut(string(out), "\n")
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%v: %q", err, out)
			}
			if d := cmp.Diff(append([]string{"--"}, args...), got); d != "" {
				t.Errorf("arguments (-want +got):\n%s", d)
			}
		})
	}
}

// TestSayArguments is the program that the test above runs.
func TestSayArguments(t *testing.T) {
	if os.Getenv("VERNIER_TEST_SAY_ARGUMENTS") == "" {
		t.Skip("only as a program of another test")
	}
	if err := json.NewEncoder(os.Stdout).Encode(os.Args[2:]); err != nil {
		t.Fatal(err)
	}
}

func TestExecKeepsBothOutputsAndPassesThemOnApart(t *testing.T) {
	dir := shared(t)
	cmd := execIn(t, dir, "sh", "-c", "echo loss=1; echo accuracy=2 >&2; printf loss=3")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	want(t, "stdout", "loss=1\nloss=3", out.String())
	want(t, "stderr", "accuracy=2\n", errs.String())
	got := map[string][]float64{}
	for _, p := range kept(t, dir, "loss", "accuracy") {
		got[p.Metric] = append(got[p.Metric], p.Value)
	}
	want(t, "kept", map[string][]float64{"loss": {1, 3}, "accuracy": {2}}, got)
}

func TestExecInheritsStandardInput(t *testing.T) {
	cmd := execIn(t, shared(t), "cat")
	cmd.Stdin = strings.NewReader("typed\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want(t, "stdout", "typed\n", string(out))
}

// The kubelet signals the main process of a container: what that does with its
// children is its own matter.
func TestExecPassesSignalsToItsProgramAlone(t *testing.T) {
	// Where the tests run under nohup or in the background these are ignored, and
	// every child would inherit that. A signal that is caught is not inherited.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGHUP, unix.SIGINT)
	defer signal.Stop(caught)
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGINT, unix.SIGQUIT} {
		t.Run(unix.SignalName(s), func(t *testing.T) {
			script := `sh -c 'trap "echo child; exit 0" '$1'; echo up; while :; do sleep 0.01; done' &
				trap "sleep 0.2; echo parent; exit 5" $1; echo up; while :; do sleep 0.01; done`
			cmd := execIn(t, shared(t), "sh", "-c", script, "sh", strings.TrimPrefix(unix.SignalName(s), "SIG"))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			readUntil(t, out, func(said string) bool { return strings.Count(said, "up\n") == 2 })
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			said := readUntil(t, out, nil)
			cmd.Wait() //nolint:errcheck // the code is looked at
			if code := cmd.ProcessState.ExitCode(); code != 5 || said != "parent\n" {
				t.Errorf("code %d, said %q; want 5, and that the parent alone hears it", code, said)
			}
		})
	}
}

// readUntil reads until ok (nil: to the end).
func readUntil(t *testing.T, r io.Reader, ok func(string) bool) string {
	t.Helper()
	var said []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		said = append(said, buf[:n]...)
		if ok != nil && ok(string(said)) {
			return string(said)
		}
		if err != nil {
			if ok != nil {
				t.Fatalf("%v after %q", err, said)
			}
			return string(said)
		}
	}
}

func TestExecNeitherBlocksNorGrowsWithoutAReader(t *testing.T) {
	dir := shared(t)
	const limit = 1 << 20
	// 100 MB; no sidecar reads the stream at all.
	cmd := exec.CommandContext(t.Context(), program(t), "exec", "--dir="+dir, "--cap="+strconv.Itoa(limit), "--",
		"sh", "-c", "yes 'filler of some length on each line' | head -c 100000000; echo; echo loss=42")
	cmd.Stdout = io.Discard
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	stream := filepath.Join(attemptDir(dir, 0), streamName)
	files, err := os.ReadDir(stream)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size == 0 || size > limit+limit/4 {
		t.Errorf("%d bytes are kept, the limit is %d", size, limit)
	}
	if points := kept(t, dir, "loss"); len(points) != 1 || points[0].Value != 42 {
		t.Errorf("the newest output was not kept: %+v", points)
	}
}

// A program that is started again and again must not fill the node with unread
// output: the bound is that of all starts.
func TestExecKeepsABoundedOutputOfAllStarts(t *testing.T) {
	const limit = 1 << 20
	dir := shared(t)
	for range 4 {
		cmd := exec.CommandContext(t.Context(), program(t), "exec", "--dir="+dir, "--cap="+strconv.Itoa(limit), "--",
			"sh", "-c", "i=0; while [ $i -lt 20 ]; do head -c 100000 /dev/zero | tr '\\0' x; echo; i=$((i+1)); done")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if got := spoolBytes(dir); got > 2*limit {
		t.Errorf("%d bytes are kept, want at most %d for the newest start and as many for those before", got, limit)
	}
	if newest, err := filepath.Glob(filepath.Join(attemptDir(dir, 3), streamName, "*")); err != nil || len(newest) == 0 {
		t.Errorf("of the newest start nothing is kept (%v)", err)
	}
}

func TestExecOutlivesAClosedOutput(t *testing.T) {
	dir := shared(t)
	cmd := execIn(t, dir, "sh", "-c", "i=0; while [ $i -lt 2000 ]; do echo loss=$i; i=$((i+1)); done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if n := len(kept(t, dir, "loss")); n != 2000 {
		t.Errorf("%d points are kept, want 2000", n)
	}
}

func TestExecDoesNotWaitForWhatItsProgramLeftBehind(t *testing.T) {
	dir := shared(t)
	pidFile := filepath.Join(dir, "pid")
	cmd := execIn(t, dir, "sh", "-c", "sleep 600 & echo $! > "+pidFile+"; echo loss=1")
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(60 * time.Second):
		t.Error("it waits for the sleeper")
	}
	if b, err := os.ReadFile(pidFile); err != nil {
		t.Error(err)
	} else if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // our own sleeper
	}
	if n := len(kept(t, dir, "loss")); n != 1 {
		t.Errorf("%d points are kept, want 1", n)
	}
}

func TestExecFailsAtOnceWhenNothingCanBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := execIn(t, file, "true")
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != exitNotKept || !strings.Contains(string(out), "cannot be kept") {
		t.Errorf("%v, said %q", err, out)
	}
}

func TestAttemptsGetNumbersInOrderAndHoldTheirLock(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 {
		attempt, lock, err := newAttempt(dir, start{time.Unix(int64(n), 0).UTC()})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "directory", attemptDir(dir, n), attempt)
		over := make(chan error, 1)
		go func() { over <- awaitEnd(attempt) }()
		select {
		case err := <-over:
			t.Errorf("the attempt is over while its lock is held: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		lock.Close()
		if err := <-over; err != nil {
			t.Error(err)
		}
		var s start
		if err := readJSON(filepath.Join(attempt, startName), &s); err != nil || s.Started.Unix() != int64(n) {
			t.Errorf("start.json %+v, %v", s, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, attemptsDir, ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
