package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
)

// live is what a program prints, or what comes from elsewhere. It is kept in a
// temporary file until it ends, and read then as any other file.
type live struct {
	*written
	name        string // in the report
	file        *os.File
	mu          sync.Mutex // held while something is written: a program has two outputs
	lost        error      // why some of it was not kept
	took        time.Duration
	interrupted bool
	troubles    []Trouble
}

// keep makes the file, unless the format or a filter is wrong.
func keep(name, format string, filters []string) (*live, error) {
	format = cmp.Or(format, parse.FormatText)
	if _, err := parse.NewLine(format, []string{"metric"}, filters); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "vernier-probe-*")
	if err != nil {
		return nil, fmt.Errorf("keep what is read: %w", err)
	}
	return &live{written: &written{cfg: Config{Path: f.Name(), Format: format, Filters: filters}}, name: name, file: f}, nil
}

// Write implements io.Writer. It never fails: the program may go on.
func (l *live) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(b); err != nil {
		l.lost = cmp.Or(l.lost, err)
	}
	return len(b), nil
}

// remove removes what was kept.
func (l *live) remove() {
	if l != nil {
		_ = errors.Join(l.file.Close(), os.Remove(l.file.Name())) // it is a temporary file
	}
}

// Describe implements Target.
func (l *live) Describe(r *Report) {
	l.written.Describe(r)
	r.Kind, r.Path, r.Seconds, r.Interrupted = StdOut, l.name, l.took.Seconds(), l.interrupted
	for i := range r.Metrics {
		r.Metrics[i].Sources = []string{"stdout"}
	}
	if l.lost != nil {
		l.troubles = append(l.troubles, Trouble{Text: l.lost.Error()})
	}
	r.Troubles = append(r.Troubles, l.troubles...)
}

// Input is lines that come from elsewhere, such as standard input. They are read
// to their end.
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

	*live
}

var _ Target = (*Input)(nil)

// Names implements Target. It reads all.
func (in *Input) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if in.live, err = keep(in.Path, in.Format, in.Filters); err != nil {
		return nil, nil, err
	}
	began, done := time.Now(), make(chan error, 1)
	go func() { // since a read that waits cannot be ended
		_, err := io.Copy(in.file, in.From)
		done <- err
	}()
	select {
	case in.lost = <-done:
	case <-in.Interrupts: // nil: never
		in.interrupted = true
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	in.took = time.Since(began)
	return in.live.Names(ctx)
}
