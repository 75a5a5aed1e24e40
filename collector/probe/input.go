package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/file"
)

// Input is lines that come from elsewhere, such as standard input. They are read
// once, to their end. The first of them are kept until names were looked for in
// them, up to maxSearched.
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

	search      *parse.Names
	head        bytes.Buffer // what was searched
	rest        io.Reader    // what comes after it
	read        int64
	began       time.Time
	interrupted bool
}

var _ Target = (*Input)(nil)

// errInterrupted says that a signal ended the reading.
var errInterrupted = errors.New("interrupted")

// check says what is wrong with the format or a filter.
func (in *Input) check() (err error) {
	in.Format = cmp.Or(in.Format, parse.FormatText)
	if _, err := parse.NewLine(in.Format, []string{"metric"}, in.Filters); err != nil {
		return err
	}
	in.search, err = parse.NewNames(namesConfig(in.Format, in.Filters))
	return err
}

// Names implements Target. It looks at the beginning.
func (in *Input) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	in.rest, in.began = in.start(ctx), time.Now()
	var end error
	in.read, end = io.CopyN(&in.head, in.rest, maxSearched)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	_, _ = in.search.Write(in.head.Bytes()) // never fails
	if end != nil {                         // all was seen
		in.search.End()
	}
	return in.search.Names(), hintsOf(in.search), nil
}

// start reads in the background, since a read that waits cannot be ended.
func (in *Input) start(ctx context.Context) io.Reader {
	reader, writer := io.Pipe()
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

// Read counts what is read after the head.
func (in *Input) Read(b []byte) (int, error) {
	n, err := in.rest.Read(b)
	in.read += int64(n)
	if errors.Is(err, errInterrupted) {
		in.interrupted, err = true, io.EOF
	}
	return n, err
}

// Source implements Target.
func (in *Input) Source(metrics []string) (collector.Source, error) {
	parser, err := parse.NewLine(in.Format, metrics, in.Filters)
	if err != nil {
		return nil, err
	}
	return file.NewReader(io.MultiReader(&in.head, in), parser, timeless), nil
}

// Describe implements Target. It reads to the end what was not read, as there was
// no metric.
func (in *Input) Describe(r *Report) {
	if _, err := io.Copy(io.Discard, in); err != nil {
		r.Troubles = append(r.Troubles, Trouble{Text: err.Error()})
	}
	r.Kind, r.Path, r.Format, r.Bytes = StdOut, in.Path, in.Format, in.read
	r.Interrupted, r.Seconds = in.interrupted, time.Since(in.began).Seconds()
}
