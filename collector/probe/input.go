package probe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
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

	head        bytes.Buffer // what was searched for names
	lines       *io.PipeReader
	read        int64
	began       time.Time
	interrupted bool
}

var _ Target = (*Input)(nil)

func (in *Input) format() string {
	if in.Format == "" {
		return parse.FormatText
	}
	return in.Format
}

// Names implements Target. It looks at the beginning.
func (in *Input) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if _, err := parse.NewLine(in.format(), []string{"metric"}, in.Filters); err != nil {
		return nil, nil, err
	}
	search, err := parse.NewNames(namesConfig(in.format(), in.Filters))
	if err != nil {
		return nil, nil, err
	}
	in.start(ctx)
	in.read, err = io.CopyN(&in.head, in.lines, maxSearched)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if _, err := search.Write(in.head.Bytes()); err != nil {
		return nil, nil, err
	}
	if err != nil { // all was seen
		search.End()
	}
	return search.Names(), hintsOf(search), nil
}

// start reads in the background, since a read that waits cannot be ended.
func (in *Input) start(ctx context.Context) {
	reader, writer := io.Pipe()
	in.lines, in.began = reader, time.Now()
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
}

// Read counts what is read.
func (in *Input) Read(b []byte) (int, error) {
	n, err := in.lines.Read(b)
	in.read += int64(n)
	if errors.Is(err, errInterrupted) {
		in.interrupted, err = true, io.EOF
	}
	return n, err
}

// Source implements Target.
func (in *Input) Source(metrics []string) (collector.Source, error) {
	parser, err := parse.NewLine(in.format(), metrics, in.Filters)
	if err != nil {
		return nil, err
	}
	return source.NewReader(io.MultiReader(&in.head, in), parser, timeless), nil
}

// Trouble implements Target.
func (in *Input) Trouble(err error) Trouble { return plain(err, "stdout") }

// Describe implements Target. It waits for the end.
func (in *Input) Describe(r *Report) {
	if _, err := io.Copy(io.Discard, in); err != nil { // with no metric, nobody has read it
		r.Troubles = append(r.Troubles, Trouble{Text: err.Error()})
	}
	r.Kind, r.Path, r.Format, r.Bytes = StdOut, in.Path, in.format(), in.read
	r.Seconds, r.Interrupted = time.Since(in.began).Seconds(), in.interrupted
}
