package probe

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// Input is lines that come from elsewhere, such as standard input. They are read
// as those of a Command are, to their end.
type Input struct {
	// From is what is read, and Path its name in the report.
	From io.Reader
	Path string
	// Format and Filters are as in Config; an empty format is TEXT.
	Format  string
	Filters []string
	// Interrupts are the signals that tell this process to end; nil: none. The
	// first one ends the reading, and what was read is reported.
	Interrupts <-chan os.Signal

	lines *lines
	began time.Time
}

var _ Target = (*Input)(nil)

// Names implements Target. It looks at the beginning.
func (in *Input) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if in.lines, err = newLines(in.Format, in.Filters); err != nil {
		return nil, nil, err
	}
	return in.lines.names(ctx, in.start(ctx))
}

// start reads in the background, since a read that waits cannot be ended.
func (in *Input) start(ctx context.Context) io.Reader {
	reader, writer := io.Pipe()
	in.began = time.Now()
	go func() {
		_, err := io.Copy(writer, in.From)
		_ = writer.CloseWithError(err) // always nil
	}()
	go func() {
		select {
		case <-in.Interrupts: // nil: never
			_ = writer.CloseWithError(errInterrupted)
		case <-ctx.Done():
			_ = writer.CloseWithError(ctx.Err())
		}
	}()
	return reader
}

// Source implements Target.
func (in *Input) Source(metrics []string) (collector.Source, error) { return in.lines.source(metrics) }

// Trouble implements Target.
func (in *Input) Trouble(err error) Trouble { return plain(err, "stdout") }

// Describe implements Target. It waits for the end.
func (in *Input) Describe(r *Report) {
	in.lines.describe(r)
	r.Path, r.Interrupted, r.Seconds = in.Path, in.lines.interrupted, time.Since(in.began).Seconds()
}
