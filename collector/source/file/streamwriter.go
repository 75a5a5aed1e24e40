package file

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// DefaultStreamLimit is the space that a stream may take, in bytes.
const DefaultStreamLimit = 64 << 20

// A stream is kept as segments, files named by the place of their first byte in
// the whole output. What a reader finds missing between two segments was
// dropped; no other record of it is needed, and writer and reader need not know
// of each other.
const (
	segmentSuffix = ".log"
	segmentsKept  = 8
)

// segmentName returns the name of the segment that begins at a place.
func segmentName(begin int64) string { return fmt.Sprintf("%020d%s", begin, segmentSuffix) }

// segments returns where the segments in dir begin, in order.
func segments(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var begins []int64
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), segmentSuffix)
		if n, err := strconv.ParseInt(digits, 10, 64); ok && err == nil && n >= 0 && e.Name() == segmentName(n) {
			begins = append(begins, n)
		}
	}
	slices.Sort(begins)
	return begins, nil
}

// StreamWriter keeps the newest output of a program in a directory, for Stream.
// Writing never fails and never waits for a reader: when the space is used up,
// the oldest eighth is removed, read or not; what the disk does not take is
// dropped. The reader notices both.
type StreamWriter struct {
	dir   string
	limit int64

	mu      sync.Mutex
	file    *os.File // the newest segment; nil when one must be made
	begin   int64    // where it begins
	place   int64    // the length of the whole output
	dropped int64
	closed  bool
	lanes   []*lane
}

// NewStreamWriter makes dir (0700) and returns a writer that keeps about limit
// bytes there (0: DefaultStreamLimit; a write is never split). Use one directory per attempt. A
// directory that already holds output is continued.
func NewStreamWriter(dir string, limit int64) (*StreamWriter, error) {
	if limit == 0 {
		limit = DefaultStreamLimit
	}
	if limit < segmentsKept {
		return nil, fmt.Errorf("a stream of %d bytes is too small", limit)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the output: %w", err)
	}
	begins, err := segments(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for earlier output: %w", err)
	}
	w := &StreamWriter{dir: dir, limit: limit}
	if len(begins) > 0 {
		last := begins[len(begins)-1]
		info, err := os.Stat(filepath.Join(dir, segmentName(last)))
		if err != nil {
			return nil, fmt.Errorf("looking for earlier output: %w", err)
		}
		w.place = last + info.Size()
		if info.Size() == 0 {
			w.place++ // a new name is needed
		}
	}
	return w, nil
}

// Lane returns a writer for one of the program's outputs, safe for use beside
// the other lanes. It passes whole lines on, so that two outputs do not tear
// each other's lines; what is left is passed on by the StreamWriter's Close. Its
// methods never fail.
func (w *StreamWriter) Lane() io.Writer {
	l := &lane{put: w.put}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lanes = append(w.lanes, l)
	return l
}

// Dropped returns the number of bytes that the disk did not take.
func (w *StreamWriter) Dropped() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Close is End for a program that ended well.
func (w *StreamWriter) Close() error { return w.End(true) }

// End passes on the lines that have no end, and closes the files. whole says that the
// program ended by itself and without an error: else a number at the end of such a
// line may be torn, and the line gets a sign that the reader knows. Later writes are
// dropped.
func (w *StreamWriter) End(whole bool) error {
	mark := "\n"
	if !whole {
		mark = noEnd + mark
	}
	w.mu.Lock()
	open := slices.Clone(w.lanes)
	w.mu.Unlock() // a lane that writes has its own lock first
	for _, l := range open {
		l.end(mark)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.release()
}

func (w *StreamWriter) release() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// put appends whole lines to the output. They stay in one segment, so that a
// segment begins with the beginning of a line.
func (w *StreamWriter) put(b []byte) {
	if len(b) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	used := w.place - w.begin
	if w.file == nil || used > 0 && used+int64(len(b)) > w.limit/segmentsKept {
		if w.closed || w.cut() != nil {
			w.drop(len(b))
			return
		}
		used = 0
	}
	n, err := w.file.Write(b)
	w.place += int64(n)
	if err == nil {
		return
	}
	// What comes next gets a segment of its own, and the reader sees the gap.
	w.file.Close()
	if used+int64(n) == 0 {
		// While the disk is full, empty segments must not push out what is kept.
		_ = os.Remove(w.file.Name())
	}
	w.file = nil
	w.drop(len(b) - n)
}

func (w *StreamWriter) drop(n int) {
	w.place += int64(n)
	w.dropped += int64(n)
}

// cut begins a new segment, after it has made room for it.
func (w *StreamWriter) cut() error {
	if err := w.release(); err != nil {
		return err
	}
	begins, err := segments(w.dir)
	if err != nil {
		return err
	}
	for len(begins) >= segmentsKept {
		if err := os.Remove(filepath.Join(w.dir, segmentName(begins[0]))); err != nil {
			return err
		}
		begins = begins[1:]
	}
	w.file, err = os.OpenFile(filepath.Join(w.dir, segmentName(w.place)), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	w.begin = w.place
	return err
}

// lane collects one output to whole lines.
type lane struct {
	put     func([]byte) // takes whole lines
	mu      sync.Mutex
	partial []byte
}

// Write implements io.Writer.
func (l *lane) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := bytes.LastIndexAny(b, "\r\n") + 1
	if end > 0 {
		l.partial = append(l.partial, b[:end]...)
		l.pass()
	}
	l.partial = append(l.partial, b[end:]...)
	if len(l.partial) >= maxLine {
		l.pass()
	}
	return len(b), nil
}

// pass hands on what was collected.
func (l *lane) pass() {
	l.put(l.partial)
	if l.partial = l.partial[:0]; cap(l.partial) > readSize {
		l.partial = nil
	}
}

// Close passes on a last line without an end. A line of another lane may follow
// it, so it gets one.
func (l *lane) Close() error {
	l.end("\n")
	return nil
}

// end passes on a last line without an end.
func (l *lane) end(mark string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.partial = append(l.partial, mark...)
		l.pass()
	}
}

// WholeLines returns a writer that passes whole lines on to w, so that several
// that share a w do not tear each other's lines. It never fails: what w does not
// take is dropped. Close passes on a last line without an end; it does not close
// w.
func WholeLines(w io.Writer) io.WriteCloser {
	return &lane{put: func(b []byte) {
		_, _ = w.Write(b) // the reader is gone; the program may go on
	}}
}
