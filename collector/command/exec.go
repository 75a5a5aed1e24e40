package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/source/file"
)

func execCommand(_ context.Context, args []string, stdout, stderr io.Writer) int {
	limit := int64(file.DefaultStreamLimit)
	dir, argv, err := parseDir("exec", args, stderr, func(flags *flag.FlagSet) {
		flags.Int64Var(&limit, contract.FlagCap, limit, "bytes of output to keep there")
	})
	if err == nil && len(argv) == 0 {
		err = errors.New("no command; write: collector exec -- COMMAND [ARGUMENT...]")
	}
	if err != nil {
		return fail(stderr, exitUsage, "exec", err)
	}
	return execute(&execution{argv: argv, dir: dir, stdout: stdout, stderr: stderr}, limit)
}

// execute runs a program, keeps at most limit bytes of its output, and returns its exit
// code once it can be stopped without loss.
func execute(e *execution, limit int64) int {
	e.started, e.signals = time.Now(), make(chan os.Signal, 64)
	signal.Notify(e.signals, passedOn()...)
	defer signal.Stop(e.signals)
	if err := e.open(limit); err != nil {
		// Better to fail now than to train for hours unmeasured.
		return fail(e.stderr, exitNotKept, "exec", fmt.Errorf("the output cannot be kept, so no metric could be read: %w", err))
	}
	return e.finish(e.run())
}

// execution is one run of a program.
type execution struct {
	argv           []string
	dir            string // shared with the sidecar
	stdout, stderr io.Writer
	started        time.Time
	signals        chan os.Signal
	toldToEnd      bool   // the program, by a signal that was passed on
	attempt        string // directory
	lock           *os.File
	stream         *file.StreamWriter
}

func (e *execution) open(limit int64) (err error) {
	if e.attempt, e.lock, err = newAttempt(e.dir, start{e.started.UTC()}); err != nil {
		return err
	}
	if err := makeRoom(e.dir, cmp.Or(limit, file.DefaultStreamLimit)); err != nil {
		return err
	}
	stream := filepath.Join(e.attempt, streamName)
	if e.stream, err = file.NewStreamWriter(stream, limit); err != nil {
		return err
	}
	return os.Chmod(stream, 0o755)
}

// run runs the program and returns how it ended.
func (e *execution) run() exit {
	path, code, err := find(e.argv[0])
	if err != nil {
		return exit{Code: code, Error: err.Error()}
	}
	end, err := e.child(path)
	if err != nil {
		return exit{Code: exitNotExecutable, Error: startError(path, err)}
	}
	return end
}

// finish closes the output, which tells the sidecar of the end, and returns the exit
// code.
func (e *execution) finish(end exit) int {
	if end.Error != "" {
		fmt.Fprintf(e.stderr, "collector exec: %s\n", end.Error)
	}
	whole := end.Code == 0 && end.Error == "" && e.stream.Dropped() == 0
	if err := errors.Join(e.stream.End(whole), e.lock.Close()); err != nil {
		// The program's own end counts more than our record of it.
		fmt.Fprintf(e.stderr, "collector exec: the end was not recorded: %v\n", err)
	}
	e.awaitSidecar()
	return end.Code
}

// awaitSidecar waits for a sidecar that has not come up, or was killed, which would be
// stopped before it can read what is there: not as long when the program was told to end, and
// until a signal tells this process.
func (e *execution) awaitSidecar() {
	wait := lateWait
	if e.toldToEnd {
		wait = readyWait
	}
	if !awaitReady(e.dir, wait, e.signals) {
		fmt.Fprintln(e.stderr, "collector exec: the collector's sidecar is not up, and what the program measured may be lost; see why in the log of its container")
	}
}

// find looks for the program as a shell would.
func find(name string) (path string, code int, err error) {
	path, err = osexec.LookPath(name)
	switch {
	case err == nil:
		return path, 0, nil
	case errors.Is(err, osexec.ErrDot):
		return "", exitNotFound, fmt.Errorf("command %q lies in the working directory; write ./%s", name, name)
	case errors.Is(err, unix.EISDIR):
		return "", exitNotExecutable, fmt.Errorf("command %q is not executable: it is a directory", name)
	case errors.Is(err, fs.ErrPermission):
		return "", exitNotExecutable, fmt.Errorf("command %q is not executable (%w); set its mode with chmod +x", name, errors.Unwrap(err))
	case strings.Contains(name, "/"):
		return "", exitNotFound, fmt.Errorf("command not found: there is no file %q", name)
	}
	return "", exitNotFound, fmt.Errorf("command not found: %q is not in PATH=%s", name, os.Getenv("PATH"))
}

func startError(path string, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("command %q cannot be started: the interpreter that its first line or header names does not exist", path)
	}
	return fmt.Sprintf("command %q cannot be started: %v", path, err)
}
