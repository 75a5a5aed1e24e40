package probe

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// errInterrupted says that a signal ended the reading.
var errInterrupted = errors.New("interrupted")

// lines are read once, while they are written. The first of them are kept until
// names were looked for in them, up to maxSearched.
type lines struct {
	format      string
	filters     []string
	search      *parse.Names
	head        bytes.Buffer // what was searched
	rest        io.Reader    // what comes after it
	read        int64
	interrupted bool
}

// newLines says what is wrong with the format or a filter. An empty format is TEXT.
func newLines(format string, filters []string) (*lines, error) {
	if format == "" {
		format = parse.FormatText
	}
	l := &lines{format: format, filters: filters}
	if _, err := l.parser([]string{"metric"}); err != nil {
		return nil, err
	}
	var err error
	l.search, err = parse.NewNames(namesConfig(format, filters))
	return l, err
}

func (l *lines) parser(metrics []string) (parse.Line, error) {
	return parse.NewLine(l.format, metrics, l.filters)
}

// names looks for names in the first of what is read.
func (l *lines) names(ctx context.Context, from io.Reader) (names []string, hints map[string]string, err error) {
	l.rest = from
	var end error
	l.read, end = io.CopyN(&l.head, from, maxSearched)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if _, err := l.search.Write(l.head.Bytes()); err != nil {
		return nil, nil, err
	}
	if end != nil { // all was seen
		l.search.End()
	}
	return l.search.Names(), hintsOf(l.search), nil
}

// Read counts what is read after the head.
func (l *lines) Read(b []byte) (int, error) {
	n, err := l.rest.Read(b)
	l.read += int64(n)
	if errors.Is(err, errInterrupted) {
		l.interrupted, err = true, io.EOF
	}
	return n, err
}

func (l *lines) source(metrics []string) (collector.Source, error) {
	parser, err := l.parser(metrics)
	if err != nil {
		return nil, err
	}
	return source.NewReader(io.MultiReader(&l.head, l), parser, timeless), nil
}

// describe reads to the end what nobody has read, as there was no metric.
func (l *lines) describe(r *Report) {
	if _, err := io.Copy(io.Discard, l); err != nil {
		r.Troubles = append(r.Troubles, Trouble{Text: err.Error()})
	}
	r.Kind, r.Format, r.Bytes = StdOut, l.format, l.read
}
