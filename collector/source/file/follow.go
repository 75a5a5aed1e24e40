package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/vernier-ml/vernier/collector/source"
)

// readSize is how much is read from a file at a time.
const readSize = 64 << 10

// follower reads the bytes of files that follow each other, each to its end: the
// files that rotation leaves at a path, or the segments of a stream. When a file
// is truncated, also when new data has outgrown the old before it looks, it is
// read from its beginning; what was truncated away before that is lost.
type follower struct {
	cfg  Config
	said *source.Troubles
	to   content
	// next opens the files that come after one, in their order, or the first ones.
	next func(cur *reading) ([]*reading, error)
	buf  []byte

	cur     *reading
	queue   []*reading // newer files, in order
	leaving bool       // cur has been replaced and is read a last time
	found   bool       // there was a file at some time
}

// content takes in what a follower reads. Its methods return false when the
// consumer has had enough.
type content interface {
	// begin is called before a file is read from its beginning, and may place it
	// behind what is passed over.
	begin(f *reading) (ok bool)
	// feed takes the bytes at a place of the file, which follow those before.
	feed(at int64, b []byte) (ok bool)
	// left is called when another file has taken the place of the one that was read.
	left() (ok bool)
	// finish reads what has no end, and says what is missing.
	finish() (ok bool)
	// nothing says that there was never a file.
	nothing() error
}

func newFollower(cfg Config, said *source.Troubles, to content, next func(cur *reading) ([]*reading, error)) *follower {
	return &follower{cfg: cfg, said: said, to: to, next: next, buf: make([]byte, readSize)}
}

// Poll implements source.Poller.
func (r *follower) Poll(ctx context.Context) (sawData, ok bool) {
	for ctx.Err() == nil {
		if r.cur == nil {
			if ok := r.enter(); !ok || r.cur == nil {
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
func (r *follower) Finish(ctx context.Context) bool {
	if !r.found {
		return r.said.Tell(r.to.nothing())
	}
	if r.cur != nil && r.cfg.Before.Rewritten(r.cur.File) {
		ok := r.restart()
		for n := 1; ok && n > 0 && ctx.Err() == nil; {
			n, ok = r.read()
		}
		if !ok {
			return false
		}
	}
	return r.to.finish()
}

// enter makes the next file the current one, if there is one.
func (r *follower) enter() bool {
	if len(r.queue) == 0 {
		var err error
		if r.queue, err = r.next(nil); err != nil {
			return r.said.Tell(err)
		}
		if len(r.queue) == 0 {
			return true
		}
	}
	r.cur, r.queue = r.queue[0], r.queue[1:]
	r.found, r.leaving = true, false
	return r.to.begin(r.cur)
}

// read passes on the next bytes of the current file. n is 0 at its end.
func (r *follower) read() (n int, ok bool) {
	n = len(r.buf)
	if r.cfg.Until != nil {
		n = r.cfg.Until().Bound(r.cur.File, r.cur.off, n)
	}
	n, err := r.cur.ReadAt(r.buf[:n], r.cur.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, r.said.Tell(err)
	}
	if errors.Is(err, io.EOF) && !r.leaving {
		// Network file systems may show the size before the data, and zeros meanwhile.
		n = len(bytes.TrimRight(r.buf[:n], "\x00"))
	}
	if n == 0 {
		return 0, true
	}
	// Checked after the read: then what was read cannot be of another file.
	if !r.cur.intact() {
		return n, r.restart()
	}
	at := r.cur.off
	r.cur.passed(r.buf[:n])
	return n, r.to.feed(at, r.buf[:n])
}

// advance is called at the end of the current file. more says whether there is
// something to read all the same.
func (r *follower) advance() (more, ok bool) {
	info, err := r.cur.Stat()
	if err != nil {
		return false, r.said.Tell(err)
	}
	if info.Size() < r.cur.off || !r.cur.intact() {
		return true, r.restart()
	}
	if !r.leaving {
		if len(r.queue) == 0 {
			if r.queue, err = r.next(r.cur); err != nil {
				return false, r.said.Tell(err)
			}
		}
		// The writer of the new file has finished with the old one; read what
		// came into it since.
		r.leaving = len(r.queue) > 0
		return r.leaving, true
	}
	ok = r.to.left()
	r.cur.Close()
	r.cur = nil
	return true, ok
}

// restart goes back to the beginning of a file that was truncated.
func (r *follower) restart() bool {
	r.cur.reset()
	return r.to.begin(r.cur)
}

// Close implements source.Poller.
func (r *follower) Close() {
	if r.cur != nil {
		r.cur.Close()
	}
	for _, f := range r.queue {
		f.Close()
	}
}

// first opens the file at a path, if there is one.
func first(path string) ([]*reading, error) {
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []*reading{f}, nil
}

func neverWritten(path string) error { return fmt.Errorf("%s was never written", path) }
