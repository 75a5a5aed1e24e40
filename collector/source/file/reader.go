package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// Reader reads lines to the end of an io.Reader, as fast as they come. Seq is
// the byte offset of the match. Nothing is kept: what writes into the other end
// of a pipe is held up while the points are looked at.
type Reader struct {
	from   io.Reader
	parser parse.Line
	clock  source.Clock
}

var _ collector.Source = (*Reader)(nil)

// NewReader returns a source named "stdout". Points can be asked for once.
func NewReader(from io.Reader, parser parse.Line, clock source.Clock) *Reader {
	return &Reader{from: from, parser: parser, clock: clock.OrReal()}
}

// Points implements collector.Source. A read that waits is not ended by ctx:
// close the other end.
func (r *Reader) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		l := newLines(r.parser, "stdout", r.clock.Now, yield)
		buf := make([]byte, readSize)
		for at := int64(0); ctx.Err() == nil; {
			n, err := r.from.Read(buf)
			if !l.feed(at, buf[:n]) {
				return
			}
			at += int64(n)
			if err == nil {
				continue
			}
			if l.last() && !errors.Is(err, io.EOF) {
				yield(collector.Point{}, fmt.Errorf("stdout: %w", err))
			}
			return
		}
	}
}

// WholeLines returns a writer that passes whole lines on to w, so that several
// that share a w do not tear each other's lines. It fails never: what w does not
// take is dropped. Close passes on a last line without an end; it does not close
// w.
func WholeLines(w io.Writer) io.WriteCloser {
	return &lane{put: func(b []byte) {
		_, _ = w.Write(b) // nobody reads any more; the program may go on
	}}
}
