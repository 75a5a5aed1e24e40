package file

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
)

// OpenStream returns a source named "stdout" that reads the output of a program
// that a StreamWriter keeps in the directory Path. Seq is the byte offset of the
// match in the whole output. Output that was dropped before it was read is reported
// once for each gap.
func OpenStream(cfg Config) (collector.Source, error) {
	if cfg.Path == "" {
		return nil, errors.New("a stream source needs a directory")
	}
	cfg.Clock = cfg.Clock.OrReal()
	if _, err := newWantedLines(cfg, "", nil); err != nil {
		return nil, err
	}
	return cfg.polled("stdout", func(said *source.Troubles) source.Poller {
		s := &stream{cfg: cfg}
		s.lines, _ = newWantedLines(cfg, "stdout", said.Yield) // it did a moment ago
		s.kept = true
		return newFollower(cfg, said, s, s.next)
	}), nil
}

// stream is the lines of segments.
type stream struct {
	*lines
	cfg     Config
	segment int64 // where the one at hand begins
	place   int64 // what is before this was read
}

var _ content = (*stream)(nil)

// next opens the segment after a segment, if there is one.
func (s *stream) next(cur *reading) ([]*reading, error) {
	begins, err := segments(s.cfg.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, begin := range begins {
		if cur != nil && begin <= cur.base {
			continue
		}
		files, err := first(filepath.Join(s.cfg.Path, segmentName(begin)))
		if err != nil {
			return nil, err
		}
		if len(files) > 0 { // or it was removed a moment ago
			files[0].base = begin
			return files, nil
		}
	}
	return nil, nil
}

func (s *stream) begin(f *reading) bool {
	at := s.place
	s.segment, s.place = f.base, f.base
	if at >= f.base {
		return true
	}
	s.reset()
	return f.base <= s.cfg.From || s.yield(collector.Point{}, &GapError{At: at, Bytes: f.base - at})
}

func (s *stream) feed(at int64, b []byte) bool {
	at += s.segment
	s.place = at + int64(len(b))
	return s.lines.feed(at, b)
}

// left has nothing to do: a segment ends with a whole line.
func (s *stream) left() bool { return true }

// finish takes a last line without an end for torn, however the program ended: a
// StreamWriter gives each line one, so the disk was full or the writer was killed.
func (s *stream) finish() bool {
	text := bytes.TrimRight(s.partial, "\x00") // of an end that was torn itself
	ok := s.tail(s.start, text, true)
	s.reset()
	return ok && s.end()
}

func (s *stream) nothing() error {
	return errors.New("the program printed nothing on standard output or standard error")
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
