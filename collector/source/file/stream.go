package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// StreamConfig describes a Stream.
type StreamConfig struct {
	// Dir is the directory that a StreamWriter writes. It need not exist yet.
	Dir string
	// Parser reads the lines.
	Parser parse.Line
	// From is the Seq up to which everything is already stored (the largest
	// one stored plus one), 0 when unknown. What the writer has dropped before
	// it is no loss and is not reported.
	From int64
	// Wanted is what Parser looks for. With it, the source says at its end what
	// was never found; see MissingError.
	Wanted *Wanted
	// Echo gets what is read, without zeros; nil: nothing does.
	Echo io.Writer
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// EndedWell says, once Drain is closed, whether the program ended by itself
	// and without an error. If not, a number at the very end of the output may be
	// a part of one, and is left out with an error. If so, and by default, only
	// one that ends in a point, a sign or an exponent is.
	EndedWell func() bool
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
}

// Stream reads the output of a program that StreamWriter keeps. Seq is the byte
// offset of the match in the whole output. Output that was dropped before it
// was read is reported once for each gap.
type Stream struct{ cfg StreamConfig }

var _ collector.Source = (*Stream)(nil)

// NewStream returns a source named "stdout".
func NewStream(cfg StreamConfig) (*Stream, error) {
	if cfg.Dir == "" || cfg.Parser == nil {
		return nil, errors.New("a stream source needs a directory and a parser")
	}
	if _, err := newSearch(cfg.Wanted); err != nil {
		return nil, err
	}
	if cfg.EndedWell == nil {
		cfg.EndedWell = func() bool { return true }
	}
	cfg.Clock = cfg.Clock.OrReal()
	return &Stream{cfg: cfg}, nil
}

// Points implements collector.Source.
func (s *Stream) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		search, err := newSearch(s.cfg.Wanted)
		if err != nil {
			yield(collector.Point{}, err)
			return
		}
		r := &streamRun{cfg: s.cfg, buf: make([]byte, readSize), said: source.Troubles{Prefix: "stdout", Yield: yield}}
		r.lines = newLines(s.cfg.Parser, "stdout", s.cfg.Clock.Now, yield)
		r.lines.search, r.lines.endedWell, r.lines.echo = search, s.cfg.EndedWell, s.cfg.Echo
		defer r.release()
		source.Follow(ctx, s.cfg.Clock, s.cfg.Drain, r, yield)
	}
}

// streamRun is one run of a Stream's Points.
type streamRun struct {
	cfg   StreamConfig
	lines *lines
	buf   []byte

	file  *os.File
	begin int64 // where file begins
	place int64 // what is before this was read
	found bool  // there was a segment at some time
	said  source.Troubles
}

// Poll implements source.Poller.
func (r *streamRun) Poll(ctx context.Context) (sawData, ok bool) {
	for ctx.Err() == nil {
		n, ok := r.read()
		if !ok {
			return sawData, false
		}
		if n > 0 {
			sawData = true
			continue
		}
		next, err := r.newer()
		if err != nil {
			return sawData, r.said.Tell(err)
		}
		if next < 0 {
			return sawData, true
		}
		// The writer has done with the segment; read what came into it since.
		for n, ok = r.read(); n > 0 && ok; n, ok = r.read() {
			sawData = true
		}
		if !ok {
			return sawData, false
		}
		if entered, ok := r.enter(next); !entered || !ok {
			return sawData, ok
		}
	}
	return sawData, true
}

// Finish implements source.Poller.
func (r *streamRun) Finish() bool {
	if !r.found {
		return r.said.Tell(errors.New("the program printed nothing on standard output or standard error"))
	}
	return r.lines.last() && r.lines.told()
}

// read yields the points of the next bytes of the segment.
func (r *streamRun) read() (n int, ok bool) {
	if r.file == nil {
		return 0, true
	}
	n, err := r.file.ReadAt(r.buf, r.place-r.begin)
	if err != nil && err != io.EOF {
		return 0, r.said.Tell(err)
	}
	at := r.place
	r.place += int64(n)
	return n, r.lines.feed(at, r.buf[:n])
}

// newer returns where the segment after the present one begins, or -1.
func (r *streamRun) newer() (int64, error) {
	begins, err := segments(r.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return -1, err
	}
	for _, b := range begins {
		if r.file == nil && b >= r.place || b > r.begin {
			return b, nil
		}
	}
	return -1, nil
}

// enter goes on with the segment that begins at a place.
func (r *streamRun) enter(begin int64) (entered, ok bool) {
	f, err := source.Open(filepath.Join(r.cfg.Dir, segmentName(begin)))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			r.release() // removed since; the next poll finds the one after it
			return false, true
		}
		return false, r.said.Tell(err)
	}
	r.release()
	ok = true
	if begin > r.place {
		r.lines.reset()
		if begin > r.cfg.From {
			ok = r.lines.yield(collector.Point{}, &GapError{At: r.place, Bytes: begin - r.place})
		}
	}
	r.file, r.begin, r.place, r.found = f.File, begin, max(begin, r.place), true
	return true, ok
}

// GapError says that output was dropped before it was read.
type GapError struct {
	// At is where it was in the output, and Bytes how much it was.
	At, Bytes int64
}

// Error implements error.
func (e *GapError) Error() string {
	return fmt.Sprintf("stdout: %d bytes of output from byte %d on were dropped before they were read: the space for it was used up", e.Bytes, e.At)
}

// Dropped is the number of bytes.
func (e *GapError) Dropped() int64 { return e.Bytes }

func (r *streamRun) release() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}
