package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// Config describes a Log.
type Config struct {
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
	// was never found, with a source.MissingError.
	Wanted *Wanted
	// Before is what is passed over; nil: nothing.
	Before *source.Before
	// Until, if not nil, returns what lay there when the program was started again,
	// nil before that: nothing else is read then.
	Until func() *source.Before
	// Echo gets what is read, without zeros; nil: nothing does.
	Echo io.Writer
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
}

// Log follows a file that a program appends lines to. The file may be created
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
type Log struct{ cfg Config }

var _ collector.Source = (*Log)(nil)

// New returns a source named "file:" and the path.
func New(cfg Config) (*Log, error) {
	if cfg.Path == "" || cfg.Parser == nil {
		return nil, errors.New("a file source needs a path and a parser")
	}
	if _, err := newSearch(cfg.Wanted); err != nil {
		return nil, err
	}
	cfg.Clock = cfg.Clock.OrReal()
	return &Log{cfg: cfg}, nil
}

// Points implements collector.Source.
func (f *Log) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		search, err := newSearch(f.cfg.Wanted)
		if err != nil {
			yield(collector.Point{}, err)
			return
		}
		name := "file:" + f.cfg.Path
		r := &logRun{cfg: f.cfg, buf: make([]byte, readSize), said: source.Troubles{Prefix: name, Yield: yield}}
		r.lines = newLines(f.cfg.Parser, name, f.cfg.Clock.Now, yield)
		r.lines.search, r.lines.echo = search, f.cfg.Echo
		defer r.close()
		if note := f.cfg.Before.Note(); note != nil && !r.said.Tell(note) {
			return
		}
		r.known.state = f.cfg.State
		if err := r.known.load(); err != nil && !r.said.Tell(err) {
			return
		}
		r.queue = r.known.reopen(f.cfg.Path)
		source.Follow(ctx, f.cfg.Clock, f.cfg.Drain, r, yield)
	}
}

// logRun is one run of a Log's Points.
type logRun struct {
	cfg   Config
	lines *lines
	buf   []byte
	known generations
	said  source.Troubles

	cur     *reading
	queue   []*reading // newer files, in order
	leaving bool       // cur has been replaced and is read a last time
	opened  bool       // there was a file at some time
}

// Poll implements source.Poller.
func (r *logRun) Poll(ctx context.Context) (sawData, ok bool) {
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

// Finish implements source.Poller.
func (r *logRun) Finish() bool {
	if !r.opened {
		return r.said.Tell(fmt.Errorf("%s was never written", r.cfg.Path))
	}
	if r.cur != nil && r.cfg.Before.Rewritten(r.cur.File) {
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
		return r.said.Tell(errors.New("the program wrote nothing to it"))
	}
	return r.flush() && r.lines.told()
}

// open makes the next file the current one, if there is one.
func (r *logRun) open() bool {
	if len(r.queue) == 0 {
		f, err := open(r.cfg.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if err != nil {
			return r.said.Tell(err)
		}
		r.queue = append(r.queue, f)
	}
	r.cur, r.queue = r.queue[0], r.queue[1:]
	r.opened, r.leaving = true, false
	r.cur.passOver(r.cfg.Before)
	r.lines.reset()
	return true
}

// read yields the points of the next bytes of the current file. n is 0 at its
// end.
func (r *logRun) read() (n int, ok bool) {
	n, err := r.cur.ReadAt(r.buf[:bound(r.cfg.Until, r.cur, len(r.buf))], r.cur.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, r.said.Tell(err)
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
func (r *logRun) advance() (more, ok bool) {
	truncated, err := r.cur.truncated()
	if err != nil {
		return false, r.said.Tell(err)
	}
	if truncated {
		r.restart()
		return true, true
	}
	if !r.leaving {
		if len(r.queue) == 0 {
			r.queue = successors(r.cfg.Path, r.cur, func(f *reading) bool { return r.known.match(f) >= 0 })
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
func (r *logRun) restart() {
	r.cur.begin(r.cfg.Before)
	r.lines.reset()
}

// flush reads a last line that has no end.
func (r *logRun) flush() bool {
	if r.cur == nil || len(r.lines.partial) == 0 {
		return true
	}
	return r.identify() && r.lines.last()
}

// identify makes sure that the current file has its number, before anything of
// it is yielded.
func (r *logRun) identify() bool {
	ok := true
	if r.cur.generation < 0 {
		var err error
		if r.cur.generation, err = r.known.number(r.cur); err != nil {
			ok = r.said.Tell(err)
		}
	}
	r.lines.base = int64(r.cur.generation) << generationShift
	return ok
}

func (r *logRun) close() {
	if r.cur != nil {
		r.cur.Close()
	}
	for _, f := range r.queue {
		f.Close()
	}
}
