package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// FileConfig describes a File.
type FileConfig struct {
	// Path is the file to follow. It need not exist yet.
	Path string
	// Parser reads its lines.
	Parser parse.Line
	// State is a file in which the source remembers which files it has seen
	// at Path, so that Seq is the same after the collector was killed. It must
	// outlive the process and belong to one attempt of one trial. Empty: not
	// remembered; then a collector that starts after a rotation or truncation
	// numbers the new file as if it were the first.
	State string
	// Wanted is what Parser looks for. With it, the source says at its end what
	// was never found; see MissingError.
	Wanted *Wanted
	// Before is what is passed over; nil: nothing.
	Before *Before
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock Clock
}

// File follows a file that a program appends lines to. The file may be created
// late; a line may come in pieces; a last line without an end is read when the
// source drains.
//
// When the file is renamed and a new one made, the old one is read to its end
// first, and files that came and went in between ("metrics.log.1") are read
// too. When it is truncated, also when new data has outgrown the old before the
// source looks, it is read from its beginning; what was truncated away before
// the source looked is lost.
//
// Seq is the byte offset of the match, plus 2^40 for each file or truncation
// that came before, so that it keeps growing.
type File struct{ cfg FileConfig }

var _ collector.Source = (*File)(nil)

// NewFile returns a source named "file:" and the path.
func NewFile(cfg FileConfig) (*File, error) {
	if cfg.Path == "" || cfg.Parser == nil {
		return nil, errors.New("a file source needs a path and a parser")
	}
	if _, err := newSearch(cfg.Wanted); err != nil {
		return nil, err
	}
	cfg.Clock = cfg.Clock.orReal()
	return &File{cfg: cfg}, nil
}

// Points implements collector.Source.
func (f *File) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		r := &fileRun{cfg: f.cfg, buf: make([]byte, readSize)}
		r.lines = lines{parser: f.cfg.Parser, source: "file:" + f.cfg.Path, now: f.cfg.Clock.Now, yield: yield}
		r.lines.begin()
		var err error
		if r.lines.search, err = newSearch(f.cfg.Wanted); err != nil {
			yield(collector.Point{}, err)
			return
		}
		defer r.close()
		if note := f.cfg.Before.Note(); note != nil && !r.trouble(note) {
			return
		}
		if !r.resume() {
			return
		}
		follow(ctx, following{f.cfg.Clock, f.cfg.Drain, r, yield})
	}
}

// fileRun is one run of a File's Points.
type fileRun struct {
	cfg   FileConfig
	lines lines
	buf   []byte
	known generations

	cur     *openFile
	queue   []*openFile // newer files, in order
	leaving bool        // cur has been replaced and is read a last time
	opened  bool        // there was a file at some time
	said    string      // the last trouble, which is said once
}

// poll implements poller.
func (r *fileRun) poll(ctx context.Context) (sawData, ok bool) {
	for ctx.Err() == nil {
		if r.cur == nil {
			if ok := r.open(); !ok || r.cur == nil {
				return sawData, ok
			}
		}
		n, ok := r.read()
		if !ok {
			return sawData, false
		}
		if n > 0 {
			sawData = true
			continue
		}
		if more, ok := r.advance(); !ok || !more {
			return sawData, ok
		}
	}
	return sawData, true
}

// finish implements poller.
func (r *fileRun) finish() bool {
	if !r.opened {
		return r.trouble(fmt.Errorf("%s was never written", r.cfg.Path))
	}
	if r.cur != nil && r.cfg.Before.rewritten(r.cur) {
		r.restart()
		for more := true; more; {
			n, ok := r.read()
			if !ok {
				return false
			}
			more = n > 0
		}
	}
	if s := r.lines.search; s != nil && !s.any {
		return r.trouble(errors.New("the program wrote nothing to it"))
	}
	return r.flush() && r.lines.told()
}

// open makes the next file the current one, if there is one.
func (r *fileRun) open() bool {
	if len(r.queue) == 0 {
		f, err := openRegular(r.cfg.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if err != nil {
			return r.trouble(err)
		}
		r.queue = append(r.queue, f)
	}
	r.cur, r.queue = r.queue[0], r.queue[1:]
	r.opened, r.leaving = true, false
	r.cfg.Before.skip(r.cur)
	r.lines.reset()
	return true
}

// read yields the points of the next bytes of the current file. n is 0 at its
// end.
func (r *fileRun) read() (n int, ok bool) {
	n, err := r.cur.ReadAt(r.buf, r.cur.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, r.trouble(err)
	}
	if n == 0 {
		return 0, true
	}
	// Checked after the read: then what was read cannot be of another file.
	if !r.cur.intact() {
		r.restart()
		return n, true
	}
	at := r.cur.off
	r.cur.passed(r.buf[:n])
	if r.cur.headComplete() && !r.identify() {
		return n, false
	}
	return n, r.lines.feed(at, r.buf[:n])
}

// advance is called at the end of the current file. more says whether there is
// something to read all the same.
func (r *fileRun) advance() (more, ok bool) {
	truncated, err := r.cur.truncated()
	if err != nil {
		return false, r.trouble(err)
	}
	if truncated {
		r.restart()
		return true, true
	}
	if !r.leaving {
		if len(r.queue) == 0 {
			r.queue = successors(r.cfg.Path, r.cur, func(f *openFile) bool { return r.known.match(f) >= 0 })
		}
		// Whoever writes the new file has done with the old one; read what
		// came into it since.
		r.leaving = len(r.queue) > 0
		return r.leaving, true
	}
	ok = r.flush()
	r.cur.Close()
	r.cur = nil
	return true, ok
}

// restart goes back to the beginning of a file that was truncated.
func (r *fileRun) restart() {
	r.cur.rewind()
	r.cfg.Before.skip(r.cur)
	r.lines.reset()
}

// flush reads a last line that has no end.
func (r *fileRun) flush() bool {
	if r.cur == nil || len(r.lines.partial) == 0 {
		return true
	}
	return r.identify() && r.lines.last()
}

// identify makes sure that the current file has its number, before anything of
// it is yielded.
func (r *fileRun) identify() bool {
	ok := true
	if r.cur.generation < 0 {
		var err error
		if r.cur.generation, err = r.known.add(r.cur); err != nil {
			ok = r.trouble(err)
		}
	}
	r.lines.base = int64(r.cur.generation) << generationShift
	return ok
}

// resume loads what an earlier collector saw and queues the files of it that
// are still there.
func (r *fileRun) resume() bool {
	r.known.path = r.cfg.State
	if err := r.known.load(); err != nil && !r.trouble(err) {
		return false
	}
	r.queue = r.known.find(r.cfg.Path)
	return true
}

// trouble yields an error unless it was the last one too.
func (r *fileRun) trouble(err error) bool {
	if err.Error() == r.said {
		return true
	}
	r.said = err.Error()
	return r.lines.yield(collector.Point{}, fmt.Errorf("%s: %w", r.lines.source, err))
}

func (r *fileRun) close() {
	if r.cur != nil {
		r.cur.Close()
	}
	for _, f := range r.queue {
		f.Close()
	}
}
