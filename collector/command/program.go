package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	osexec "os/exec"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/file"
)

const (
	// flagUndelivered is given to the reporter beside a program, whose container has one
	// termination message for both.
	flagUndelivered = "undelivered"
	// reporterPause is between a reporter that died and the next.
	reporterPause = time.Second
	// reporterReserve is what the reporter has at least, to read the rest and leave its
	// summary, where the program took all of the grace.
	reporterReserve = 4 * time.Second
)

// runProgram is "collector run -- PROGRAM": exec and the sidecar in one container. The
// reporter is a process of its own, and is started again: what happens to it does not
// happen to the program.
func runProgram(ctx context.Context, args, argv []string, stdout, stderr io.Writer) int {
	cfg, err := parseRun(args, os.Getenv, stderr)
	if err == nil {
		err = checkProgram(ctx, cfg, argv)
	}
	if err != nil {
		return fail(stderr, exitUsage, "run", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fail(stderr, exitFailed, "run", err)
	}
	r := &reporter{
		argv: append([]string{self, "run", "--" + flagUndelivered}, args...), env: os.Environ(), dir: cfg.dir, stderr: stderr, grace: cfg.grace,
		signals: make(chan os.Signal, 1), told: make(chan struct{}), ended: make(chan struct{}),
	}
	// The program must not inherit what only the reporter needs, and what may be logged.
	for _, name := range []string{contract.EnvURL, contract.EnvToken, contract.EnvCA, contract.EnvPodUID} {
		if err := os.Unsetenv(name); err != nil {
			return fail(stderr, exitFailed, "run", err)
		}
	}
	signal.Notify(r.signals, unix.SIGTERM)
	go r.keep()
	code := execute(&execution{argv: argv, dir: cfg.dir, stdout: stdout, stderr: stderr}, file.DefaultStreamLimit)
	close(r.told)
	<-r.ended
	return code
}

// checkProgram finds now what the reporter would fail for each time.
func checkProgram(ctx context.Context, cfg runConfig, argv []string) error {
	if len(argv) == 0 {
		return errors.New("no command; write: collector run [flags] -- COMMAND [ARGUMENT...]")
	}
	r, err := newRunner(ctx, cfg, slog.New(slog.DiscardHandler), nil)
	if err == nil && !r.kind.wraps {
		err = fmt.Errorf("--%s=%s reports beside a program that something else runs: give no command", contract.FlagKind, cfg.kind)
	}
	return err
}

// reporter is the process that reports beside a program.
type reporter struct {
	argv, env []string
	dir       string // shared with the program
	stderr    io.Writer
	grace     time.Duration
	signals   chan os.Signal
	signalled time.Time     // when the container was told to end
	told      chan struct{} // closed when the program has ended
	until     time.Time     // when the reporter must have ended; zero before it is told to
	ended     chan struct{} // closed when the reporter has, for good
}

// keep keeps a reporter running until one has ended because it was told to. One that was
// killed may have left values unread, even if the program has ended since.
func (r *reporter) keep() {
	defer close(r.ended)
	runtime.LockOSThread() // as for the program
	for !r.one() && (r.until.IsZero() || time.Now().Before(r.until)) {
		<-time.After(reporterPause)
	}
}

// one runs one reporter, and returns false if another must take its place. It tells the
// reporter to end when the program has ended, or so late in the grace of the pod that the
// program will be killed.
func (r *reporter) one() (done bool) {
	attributes := processAttributes()
	attributes.Setsid = true // a terminal's signals are for the program
	cmd := &osexec.Cmd{Path: r.argv[0], Args: r.argv, Env: r.env, Stderr: r.stderr, SysProcAttr: attributes}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(r.stderr, "collector run: the reporter cannot be started, and is tried again: %v\n", err)
		return false
	}
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // what reaps orphans may have been faster
		close(over)
	}()
	var late <-chan time.Time
	for told := false; !told; {
		select {
		case <-over:
			return false
		case <-r.signals:
			if r.signalled.IsZero() {
				r.signalled = time.Now()
				late = time.After(r.grace)
			}
		case <-late:
			told = true
		case <-r.told:
			told = true
		}
	}
	return r.end(cmd, over)
}

// end tells a reporter to end, and returns false if it was killed by something else.
func (r *reporter) end(cmd *osexec.Cmd, over <-chan struct{}) (done bool) {
	reaping := !source.Closed(r.told) // by what waits for the program
	if r.until.IsZero() {
		r.until = time.Now().Add(r.left())
	}
	deadline := time.After(time.Until(r.until))
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		// Before it is ready, the signal would kill it.
		if isReady(r.dir) {
			poll.Stop()
			_ = cmd.Process.Signal(unix.SIGTERM) // it may just have ended
		}
		select {
		case <-over:
			if cmd.ProcessState == nil {
				return reaping
			}
			return cmd.ProcessState.Exited()
		case <-deadline:
			_ = cmd.Process.Kill()
			<-over
			return true
		case <-poll.C:
		}
	}
}

// left is how long reporters may take from when the first is told to end: it ends by
// itself after the grace, and when the pod is ending, that began with its signal.
func (r *reporter) left() time.Duration {
	if r.signalled.IsZero() {
		return r.grace + reporterPause
	}
	return max(time.Until(r.signalled.Add(r.grace)), reporterReserve)
}
