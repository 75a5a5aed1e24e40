package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/source/file"
)

// Command is a program whose output is probed once it has ended. When the context
// ends, the program is killed and nothing is reported.
type Command struct {
	// Argv is the program and its arguments.
	Argv []string
	// Env is what it gets besides the environment of this process, as NAME=VALUE.
	Env []string
	// Format and Filters are as in Config; an empty format is TEXT.
	Format  string
	Filters []string
	// Stdout and Stderr get its output too.
	Stdout, Stderr io.Writer
	// Interrupts are the signals that tell this process to end; nil: none. The
	// first one ends the program, whose output until then is reported.
	Interrupts <-chan os.Signal

	*live
	code int
}

var _ Target = (*Command)(nil)

// endPatience bounds how long a program that was told to end may take, and how
// long its output may be held open by what it has left running.
const endPatience = 10 * time.Second

// Names implements Target. It runs the program.
func (c *Command) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if len(c.Argv) == 0 {
		return nil, nil, errors.New("no command")
	}
	// What is wrong with the format or a filter is said before anything runs.
	if c.live, err = keep(strings.Join(c.Argv, " "), c.Format, c.Filters); err != nil {
		return nil, nil, err
	}
	if err := c.run(ctx); err != nil {
		return nil, nil, err
	}
	return c.live.Names(ctx)
}

// run runs the program, and keeps both outputs in one file, by whole lines.
func (c *Command) run(ctx context.Context) error {
	out, errs := file.WholeLines(c.live), file.WholeLines(c.live)
	program := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	program.Env = append(os.Environ(), c.Env...)
	program.Stdin = os.Stdin
	program.Stdout, program.Stderr = io.MultiWriter(c.Stdout, out), io.MultiWriter(c.Stderr, errs)
	program.WaitDelay = endPatience
	began := time.Now()
	if err := program.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: the command cannot be found: %w", ErrNothing, err)
		}
		return fmt.Errorf("the command cannot be run: %w", err)
	}
	done, passed := make(chan struct{}), make(chan bool)
	go func() { passed <- c.pass(program.Process, done) }()
	err := program.Wait()
	c.took = time.Since(began)
	close(done)
	c.interrupted = <-passed
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		c.code = exitCode(exit)
		// A signal to the whole group may end it before this process is handed the same.
		ended := c.code == signalled+int(syscall.SIGINT) || c.code == signalled+int(syscall.SIGTERM)
		c.interrupted = c.interrupted || ended && c.Interrupts != nil
	case errors.Is(err, exec.ErrWaitDelay):
		c.troubles = append(c.troubles, Trouble{Text: fmt.Sprintf("the program has ended, and something that it started held its output open; what that printed more than %s later was not read", endPatience)})
	case err != nil:
		c.troubles = append(c.troubles, Trouble{Text: err.Error()})
	}
	return errors.Join(out.Close(), errs.Close())
}

// pass gives the program the first signal to this process, unless it has it from
// the terminal: two of them would end a program that deals with one. It returns
// whether there was one before the program's end.
func (c *Command) pass(program *os.Process, done <-chan struct{}) (interrupted bool) {
	select {
	case s := <-c.Interrupts: // nil: never
		if s != os.Interrupt || !inForeground() {
			_ = program.Signal(s) // it may have ended
		}
		return true
	case <-done:
		return false
	}
}

// inForeground reports whether Ctrl-C at the terminal reaches this process'
// group.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false // there is none
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// Describe implements Target.
func (c *Command) Describe(r *Report) {
	c.live.Describe(r)
	r.ExitCode = &c.code
}

// signalled is added to a signal's number, as a shell does.
const signalled = 128

// exitCode is that of a program; one that a signal ended has none of its own.
func exitCode(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int(status.Signal())
	}
	return exit.ExitCode()
}
