// Package journal keeps lines in a file that only grows, so that a process that
// is killed at any moment finds them again. A line is all there or not at all,
// and its offset is a number that it keeps: the sequence number of what it says.
//
// What was appended is safe from the death of the process, not from that of the
// machine: nothing is synced. The file lies in a pod's directory, which a machine
// takes with it.
package journal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
	"sync/atomic"
)

var (
	// ErrFull says that a line was not appended, since the file would grow beyond
	// its limit. A shorter one may still find room.
	ErrFull = errors.New("the journal is full")
	// ErrLongLine says that a line is longer than Config.MaxLine.
	ErrLongLine = errors.New("the line is too long")
	// ErrFinished says that the journal takes no lines any more.
	ErrFinished = errors.New("the journal is finished")
)

// Config describes a journal.
type Config struct {
	// Path of the file. It is made, for its owner alone, when there is none.
	Path string
	// Limit is the space that the file may take, in bytes. What an earlier
	// process wrote beyond it is read all the same. Must be positive.
	Limit int64
	// MaxLine is the longest line that is appended, or held in memory when it is
	// read, in bytes and with its end. Must be positive.
	MaxLine int
}

// Line is one line of a journal.
type Line struct {
	// Offset of its first byte.
	Offset int64
	// Text without the end of the line. It is valid until the next line is asked
	// for.
	Text []byte
}

// Next returns the offset at which the next line begins.
func (l Line) Next() int64 { return l.Offset + int64(len(l.Text)) + 1 }

// file is what a journal asks of an *os.File.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// Journal is a file of lines. Its methods may be called by several goroutines at
// the same time, Follow by one.
type Journal struct {
	cfg  Config
	file file
	end  atomic.Int64  // bytes that hold whole lines
	more chan struct{} // has an element when end moved
	done chan struct{} // closed by Finish

	mu sync.Mutex // held while a line is written
}

// Open opens a journal, or makes it. A line that was half written when the last
// process died is removed: it was never acknowledged.
func Open(cfg Config) (*Journal, error) {
	if cfg.Limit <= 0 || cfg.MaxLine <= 0 {
		return nil, fmt.Errorf("open journal %s: a limit of %d bytes and lines of at most %d bytes; both must be positive", cfg.Path, cfg.Limit, cfg.MaxLine)
	}
	f, err := os.OpenFile(cfg.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	end, err := wholeLines(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", cfg.Path, errors.Join(err, f.Close()))
	}
	j := &Journal{cfg: cfg, file: f, more: make(chan struct{}, 1), done: make(chan struct{})}
	j.end.Store(end)
	return j, nil
}

// wholeLines returns the end of the last whole line. It is sought from the back:
// what lies behind it is short, unless it is not ours.
func wholeLines(f *os.File) (end int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for end = info.Size(); end > 0; {
		part := buf[:min(end, int64(len(buf)))]
		end -= int64(len(part))
		if _, err := f.ReadAt(part, end); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return end + int64(i) + 1, nil
		}
	}
	return 0, nil
}

// Append writes a line, given without its end. Once it returns nil, the line is
// safe from the death of the process; with an error, nothing of it is there.
func (j *Journal) Append(text []byte) error {
	if bytes.IndexByte(text, '\n') >= 0 {
		return fmt.Errorf("append to %s: there is a line's end within the line", j.cfg.Path)
	}
	if len(text)+1 > j.cfg.MaxLine {
		return fmt.Errorf("append to %s: %w: %d bytes of at most %d", j.cfg.Path, ErrLongLine, len(text)+1, j.cfg.MaxLine)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Finished() {
		return ErrFinished
	}
	at := j.end.Load()
	next := Line{at, text}.Next()
	if next > j.cfg.Limit {
		return ErrFull
	}
	// One write: a line and its end.
	line := append(append(make([]byte, 0, len(text)+1), text...), '\n')
	if _, err := j.file.WriteAt(line, at); err != nil {
		// What was written of it would be taken for the next line's beginning.
		return fmt.Errorf("append to %s: %w", j.cfg.Path, errors.Join(err, j.file.Truncate(at)))
	}
	j.end.Store(next)
	select {
	case j.more <- struct{}{}:
	default:
	}
	return nil
}

// At says of an error that what the line at an offset says led to it.
func (j *Journal) At(offset int64, err error) error {
	return fmt.Errorf("read %s at %d: %w", j.cfg.Path, offset, err)
}

// End returns the offset at which the next line will be.
func (j *Journal) End() int64 { return j.end.Load() }

// Finish says that no line will follow: Append refuses, Follow ends.
func (j *Journal) Finish() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.Finished() {
		close(j.done)
	}
}

// Finished says whether Finish was called.
func (j *Journal) Finished() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// Close finishes the journal and closes the file, which stays where it is.
// Nothing can be read afterwards.
func (j *Journal) Close() error {
	j.Finish()
	return j.file.Close()
}

// Lines yields the lines that there are, from the one at an offset on. A line
// that is too long is passed over with ErrLongLine and its offset; any other error
// is the last.
func (j *Journal) Lines(ctx context.Context, from int64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) { j.read(ctx, from, j.end.Load(), yield) }
}

// Follow yields all lines as Lines does, and waits for more. It ends when the
// journal is finished and read, or with ctx.
func (j *Journal) Follow(ctx context.Context) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for at := int64(0); ; {
			last := j.Finished() // before it looks how much there is
			end := j.end.Load()
			if !j.read(ctx, at, end, yield) || last {
				return
			}
			at = end
			select {
			case <-j.more:
			case <-j.done:
			case <-ctx.Done():
				yield(Line{}, ctx.Err())
				return
			}
		}
	}
}

// read yields the lines in [at, end) and says whether it came to their end.
func (j *Journal) read(ctx context.Context, at, end int64, yield func(Line, error) bool) bool {
	lines := bufio.NewReader(io.NewSectionReader(j.file, at, end-at))
	var text []byte
	for at < end {
		if err := ctx.Err(); err != nil {
			yield(Line{}, err)
			return false
		}
		var n int64
		var err error
		text, n, err = nextLine(lines, text[:0], j.cfg.MaxLine)
		line := Line{at, bytes.TrimSuffix(text, []byte("\n"))}
		if err != nil {
			line.Text, err = nil, j.At(at, err)
		}
		if !yield(line, err) || err != nil && !errors.Is(err, ErrLongLine) {
			return false
		}
		at += n
	}
	return true
}

// nextLine appends the next line to text unless it is longer than limit. n is its
// length in any case.
func nextLine(lines *bufio.Reader, text []byte, limit int) (_ []byte, n int64, err error) {
	for {
		part, err := lines.ReadSlice('\n')
		if n += int64(len(part)); n <= int64(limit) {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return text, n, err
		case n > int64(limit):
			return text, n, fmt.Errorf("%w: %d bytes of at most %d", ErrLongLine, n, limit)
		default:
			return text, n, nil
		}
	}
}
