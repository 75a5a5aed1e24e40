package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// Command is a program whose output is probed. Its Names runs it to its end.
type Command struct {
	// Argv is the program and its arguments.
	Argv []string
	// Format and Filters are as in Config; an empty format is TEXT.
	Format  string
	Filters []string
	// Dir is an empty directory for its output, as "collector exec" keeps it.
	Dir string
	// Stdout and Stderr get its output too.
	Stdout, Stderr io.Writer

	read    int64
	dropped int64
	code    int
}

var _ Target = (*Command)(nil)

// endPatience bounds how long a program that was told to end may take.
const endPatience = 10 * time.Second

func (c *Command) format() string {
	if c.Format == "" {
		return parse.FormatText
	}
	return c.Format
}

// Names implements Target.
func (c *Command) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if len(c.Argv) == 0 {
		return nil, nil, errors.New("no command")
	}
	var searches [2]*nameSearch // one for each output, so that lines are not mixed
	for i := range searches {
		if searches[i], err = newNameSearch(c.format(), c.Filters); err != nil {
			return nil, nil, err
		}
	}
	stream, err := source.NewStreamWriter(filepath.Join(c.Dir, "stream"), 0)
	if err != nil {
		return nil, nil, err
	}
	out, errs := stream.Lane(), stream.Lane()
	program := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	program.Stdin = os.Stdin
	program.Stdout, program.Stderr = io.MultiWriter(c.Stdout, out, searches[0]), io.MultiWriter(c.Stderr, errs, searches[1])
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
	program.WaitDelay = endPatience
	err = program.Run()
	if err := errors.Join(out.Close(), errs.Close(), stream.Close()); err != nil {
		return nil, nil, err
	}
	c.dropped = stream.Dropped()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case errors.As(err, &exit):
		c.code = exit.ExitCode() // what it printed before counts
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrNothing, err)
	}
	first := searches[0]
	first.end()
	searches[1].end()
	for _, name := range searches[1].names {
		first.add(name)
	}
	for name, hint := range searches[1].hints {
		first.hints[name] = hint
	}
	c.read = first.read + searches[1].read
	return first.names, first.hints, nil
}

// Source implements Target.
func (c *Command) Source(metrics []string) (collector.Source, error) {
	parser, err := parse.NewLine(c.format(), metrics, c.Filters)
	if err != nil {
		return nil, err
	}
	return source.NewStream(source.StreamConfig{Dir: filepath.Join(c.Dir, "stream"), Parser: parser, Drain: ended(), Clock: timeless})
}

// Trouble implements Target.
func (c *Command) Trouble(err error) Trouble { return plain(err, "stdout") }

// Describe implements Target.
func (c *Command) Describe(r *Report) {
	r.Kind, r.Path, r.Format, r.Bytes, r.ExitCode = StdOut, strings.Join(c.Argv, " "), c.format(), c.read, &c.code
	if c.dropped > 0 {
		r.Troubles = append(r.Troubles, Trouble{Text: fmt.Sprintf("%d bytes of output were not kept: the disk is full", c.dropped)})
	}
}
