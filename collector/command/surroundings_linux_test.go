package command

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// seen is a program that prints all that it can see of what surrounds it.
const seen = `
set -- $(cat /proc/$$/stat)
echo "leads its process group: $([ "$5" = $$ ] && echo yes || echo no)"
echo "leads its session: $([ "$6" = $$ ] && echo yes || echo no)"
echo "terminal: $7, niceness: ${19}"
[ -t 0 ] && echo "standard input is a terminal"
[ -t 1 ] && echo "standard output is a terminal"
echo "umask: $(umask), directory: $(pwd), beside it: $(ls | tr '\n' ' ')"
echo open files: /proc/self/fd/*
grep -E '^(SigIgn|SigBlk|CapEff|NoNewPrivs|Seccomp)' /proc/self/status
cat /proc/$$/limits /proc/$$/oom_score_adj
yes 2>/dev/null | head -n 1
trap 'echo "got the signal"; exit 3' TERM
env | sort
kill -TERM $$
`

// TestWhatSurroundsAProgramStaysAsItIs runs a program as a container runtime does,
// and under each of the commands that the injector puts before it.
func TestWhatSurroundsAProgramStaysAsItIs(t *testing.T) {
	wrappers := map[string]struct {
		command string
		sidecar []string
	}{
		"StdOut": {"exec", nil},
		"Push":   {"env", nil},
		"File, in a container that may be started again": {"env", []string{"--kind=File", "--path=/tmp/no-such-file-here"}},
	}
	script := filepath.Join(t.TempDir(), "seen.sh")
	if err := os.WriteFile(script, []byte(seen), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(argv []string) (said string, code int) {
		beside := t.TempDir()
		if err := os.WriteFile(filepath.Join(beside, "data.csv"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = beside, []string{"PATH=" + os.Getenv("PATH"), "A=b"}
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		if errs.Len() > 0 {
			t.Errorf("%q: standard error %q", argv, errs.String())
		}
		return strings.ReplaceAll(out.String(), beside, "DIR"), cmd.ProcessState.ExitCode()
	}
	plain, code := run([]string{"sh", script})
	for kind, w := range wrappers {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			args := w.sidecar
			if args == nil {
				args = []string{"--kind=" + kind}
			}
			b.start(append(args, "--metric=loss")...)
			b.until("ready", func() bool { return isReady(b.dir) })
			argv := []string{program(t), w.command, "--dir=" + b.dir, "--", "sh", script}
			got, gotCode := run(argv)
			if diff := cmp.Diff(strings.Split(plain, "\n"), strings.Split(got, "\n")); diff != "" || gotCode != code {
				t.Errorf("exit code %d, plainly %d; what it sees (-plainly +here):\n%s", gotCode, code, diff)
			}
		})
	}
}

// TestAProgramReadsItsTerminal runs a program as a container with tty: true does.
func TestAProgramReadsItsTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := execIn(t, shared(t), "sh", "-c", `read word; echo "it read $word"`)
	cmd.Stdin = tty
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(master, "hello\n"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil || out.String() != "it read hello\n" {
			t.Errorf("%v; it said %q", err, out.String())
		}
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("it hangs: a program in the background may not read its terminal")
	}
	_ = tty.Close()
}
