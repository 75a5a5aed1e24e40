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

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
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

	lines        *lines
	output       *io.PipeReader
	began, ended time.Time
	cancel       context.CancelFunc
	stopped      <-chan struct{} // closed when the context ends
	done         chan struct{}   // closed when the program has ended; after it, err
	err          error
	watched      chan struct{} // closed later than done; after it, interrupted
	interrupted  bool
}

var _ Target = (*Command)(nil)

// endPatience bounds how long a program that was told to end may take, and how
// long its output may be held open by what it has left running.
const endPatience = 10 * time.Second

// Names implements Target. It starts the program and looks at its first output.
func (c *Command) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if len(c.Argv) == 0 {
		return nil, nil, errors.New("no command")
	}
	// What is wrong with the format or a filter is said before anything runs.
	if c.lines, err = newLines(c.Format, c.Filters); err != nil {
		return nil, nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, nil, err
	}
	names, hints, err = c.lines.names(ctx, c.output)
	if err != nil {
		c.stop()
	}
	return names, hints, err
}

// start runs the program, with both outputs in one pipe, by whole lines.
func (c *Command) start(ctx context.Context) error {
	ctx, c.cancel = context.WithCancel(ctx)
	c.stopped = ctx.Done()
	reader, writer := io.Pipe()
	out, errs := source.WholeLines(writer), source.WholeLines(writer)
	program := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	program.Stdin = os.Stdin
	program.Stdout, program.Stderr = io.MultiWriter(c.Stdout, out), io.MultiWriter(c.Stderr, errs)
	program.WaitDelay = endPatience
	c.began = time.Now()
	if err := program.Start(); err != nil {
		c.cancel()
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: the command cannot be found: %w", ErrNothing, err)
		}
		return fmt.Errorf("the command cannot be run: %w", err)
	}
	c.output, c.done, c.watched = reader, make(chan struct{}), make(chan struct{})
	go func() {
		c.err = errors.Join(program.Wait(), out.Close(), errs.Close())
		c.ended = time.Now()
		close(c.done)
		_ = writer.Close() // always nil
	}()
	go func() {
		c.interrupted = c.watch(ctx, program.Process)
		<-c.done
		close(c.watched)
	}()
	return nil
}

// stop kills the program.
func (c *Command) stop() {
	c.cancel()
	select {
	case <-c.done:
	case <-time.After(killPatience): // something else holds its output open
	}
}

// Source implements Target.
func (c *Command) Source(metrics []string) (collector.Source, error) {
	from, err := c.lines.source(metrics)
	if err != nil {
		c.stop()
	}
	return from, err
}

// Trouble implements Target.
func (c *Command) Trouble(err error) Trouble { return plain(err, "stdout") }

// Describe implements Target. It waits for the end of the program.
func (c *Command) Describe(r *Report) {
	c.lines.describe(r)
	select {
	case <-c.watched:
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
	r.Path, r.ExitCode = strings.Join(c.Argv, " "), &code
	r.Seconds, r.Interrupted = c.ended.Sub(c.began).Seconds(), c.interrupted
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
