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

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/file"
)

// Command is a program whose output is probed, while it runs. Nothing of the
// output is kept but its first 8 MiB, until names were looked for in them, so a
// program that prints faster than it is read is held up. When the context ends, the
// program is killed and nothing is reported.
type Command struct {
	// Argv is the program and its arguments.
	Argv []string
	// Format and Filters are as in Config; an empty format is TEXT.
	Format  string
	Filters []string
	// Stdout and Stderr get its output too.
	Stdout, Stderr io.Writer
	// Interrupts are the signals that tell this process to end; nil: none. The
	// first one ends the program, whose output until then is reported.
	Interrupts <-chan os.Signal

	output       *Input
	began, ended time.Time
	cancel       context.CancelFunc
	stopped      <-chan struct{} // closed when the context ends
	done         chan struct{}   // closed when the program has ended; after it, err
	err          error
	watched      chan bool // whether it was interrupted, later than done
}

var _ Target = (*Command)(nil)

const (
	// endPatience bounds how long a program that was told to end may take, and how
	// long its output may be held open by what it has left running.
	endPatience = 10 * time.Second
	// passPatience is how long a program of this process' own group has to end by
	// a signal that the whole group may have got, before it is passed on; and how
	// long after its end by a signal one to this process is waited for.
	passPatience = time.Second
)

// Names implements Target. It starts the program and looks at its first output.
func (c *Command) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if len(c.Argv) == 0 {
		return nil, nil, errors.New("no command")
	}
	c.output = &Input{Path: strings.Join(c.Argv, " "), Format: c.Format, Filters: c.Filters}
	// What is wrong with the format or a filter is said before anything runs.
	if err := c.output.check(); err != nil {
		return nil, nil, err
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.stopped = ctx.Done()
	if err := c.start(ctx); err != nil {
		c.cancel()
		return nil, nil, err
	}
	if names, hints, err = c.output.Names(ctx); err != nil {
		c.stop()
	}
	return names, hints, err
}

// start runs the program, with both outputs in one pipe, by whole lines.
func (c *Command) start(ctx context.Context) error {
	reader, writer := io.Pipe()
	out, errs := file.WholeLines(writer), file.WholeLines(writer)
	program := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	program.Stdin = os.Stdin
	program.Stdout, program.Stderr = io.MultiWriter(c.Stdout, out), io.MultiWriter(c.Stderr, errs)
	program.WaitDelay = endPatience
	c.output.From, c.began = reader, time.Now()
	if err := program.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: the command cannot be found: %w", ErrNothing, err)
		}
		return fmt.Errorf("the command cannot be run: %w", err)
	}
	c.done, c.watched = make(chan struct{}), make(chan bool, 1)
	go func() {
		c.err = errors.Join(program.Wait(), out.Close(), errs.Close())
		c.ended = time.Now()
		close(c.done)
		_ = writer.Close() // always nil
	}()
	go func() {
		interrupted := c.watch(program.Process)
		select {
		case <-c.done:
		case <-ctx.Done():
			// What the program has started may hold its output open.
			_ = reader.CloseWithError(io.ErrClosedPipe) // always nil
			<-c.done
		}
		c.watched <- interrupted
	}()
	return nil
}

// watch passes the first signal on to the program. It says whether a signal to
// this process came before the program's end, or has ended it.
func (c *Command) watch(program *os.Process) (interrupted bool) {
	select {
	case s := <-c.Interrupts: // nil: never
		c.pass(s, program)
		return true
	case <-c.done:
	}
	// A group gets a signal at once, but the program may have ended by it before it
	// is handed on in this process.
	var exit *exec.ExitError
	if c.Interrupts == nil || !errors.As(c.err, &exit) {
		return false
	}
	patience := time.Duration(0)
	if code := exitCode(exit); code == signalled+int(syscall.SIGINT) || code == signalled+int(syscall.SIGTERM) {
		patience = passPatience
	}
	select {
	case <-c.Interrupts:
		return true
	case <-time.After(patience):
		return false
	}
}

// pass gives the program a signal, unless it has it from the terminal. Two of
// them would end a program that deals with one.
func (c *Command) pass(s os.Signal, program *os.Process) {
	group, err := syscall.Getpgid(program.Pid)
	if err == nil && group == syscall.Getpgrp() {
		if s == os.Interrupt && inForeground() {
			return
		}
		select {
		case <-time.After(passPatience):
		case <-c.done:
			return
		}
	}
	_ = program.Signal(s) // it may have ended
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

// stop kills the program. Something else may hold its output open.
func (c *Command) stop() {
	c.cancel()
	select {
	case <-c.done:
	case <-time.After(passPatience):
	}
}

// Source implements Target.
func (c *Command) Source(metrics []string) (collector.Source, error) {
	from, err := c.output.Source(metrics)
	if err != nil {
		c.stop()
	}
	return from, err
}

// Describe implements Target. It waits for the end of the program.
func (c *Command) Describe(r *Report) {
	c.output.Describe(r)
	select {
	case r.Interrupted = <-c.watched:
	case <-c.stopped:
		c.stop()
		return // nothing is reported
	}
	c.cancel()
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(c.err, &exit):
		code = exitCode(exit)
	case errors.Is(c.err, exec.ErrWaitDelay):
		r.Troubles = append(r.Troubles, Trouble{Text: fmt.Sprintf("the program has ended, and something that it started held its output open; what that printed more than %s later was not read", endPatience)})
	case c.err != nil:
		r.Troubles = append(r.Troubles, Trouble{Text: c.err.Error()})
	}
	r.ExitCode, r.Seconds = &code, c.ended.Sub(c.began).Seconds()
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
