package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
)

const (
	// fewFiles are looked at in every poll. Of more, those that grew lately, as
	// long as they are no more than that, and one of the others for each
	// lookEach that has passed: an idle tree costs the same, however large.
	fewFiles = 64
	lookEach = 2 * time.Millisecond
	lately   = time.Minute
	// peekSize is how much of a new file is searched for tags before any of its
	// values are reported.
	peekSize = 64 << 10
)

// fileID tells files apart, whatever their names.
type fileID struct{ device, inode uint64 }

func idOf(info fs.FileInfo) fileID {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fileID{uint64(s.Dev), s.Ino} //nolint:unconvert // its type differs between systems
	}
	return fileID{}
}

// eventFile is one file that is being read.
type eventFile struct {
	path   string // below the directory, with slashes
	source string // of its points; empty while it is not known when it began
	run    *eventDirectory
	id     fileID
	began  time.Time // by its first record; zero until that is there
	grew   time.Time // when it was last seen to grow
	hot    bool      // that was lately
	off    int64     // what is before this was read, or passed over
	passed int64     // what is before this was passed over
	size   int64     // what it had when nothing more could be read
	done   bool      // it is not read any more
	zeros  bool      // there are zeros at off

	session int
	last    int64           // Seq of the last point
	decided map[string]bool // metrics whose first value has a session
	listed  bool            // an earlier collector reported from it
	given   []sessionLine   // what that decided of points that are still to come

	changes int     // of the names, that mine is made from
	mine    [][]int // tag -> metrics that belong here; nil: not known
}

func newEventFile(path string, run *eventDirectory) *eventFile {
	return &eventFile{path: path, run: run, session: noSession, last: -1, size: -1}
}

// left says what of the file could not be read at its end.
func (f *eventFile) left() error {
	switch {
	case f.done:
		return nil
	case f.zeros:
		return fmt.Errorf("%w: from byte %d on nothing was read", parse.ErrZeros, f.off)
	case f.size > f.off:
		return fmt.Errorf("the file ends within a record, which begins at byte %d: the program ended before all of it was written", f.off)
	}
	return nil
}

// passOver places a new file behind what was in it before the program started.
func (r *eventRun) passOver(f *eventFile) {
	if r.cfg.Before == nil {
		return
	}
	file, err := openRegular(r.tree.place(f.path))
	if err != nil {
		return // whoever reads it says so
	}
	defer file.Close()
	if f.passed = r.cfg.Before.size(file); f.passed > 0 {
		f.off, f.id, f.began = f.passed, idOf(file.info), firstTime(file)
	}
}

// look returns the files that have something new, among those whose turn it is.
func (r *eventRun) look(now time.Time, all bool) (due []*eventFile, ok bool) {
	n := len(r.files)
	turns := max(fewFiles, int(now.Sub(r.looked)/lookEach))
	if all || r.looked.IsZero() || turns > n {
		turns = n
	}
	r.looked = now
	r.hot = slices.DeleteFunc(r.hot, func(f *eventFile) bool {
		f.hot = !f.done && now.Sub(f.grew) < lately
		return !f.hot
	})
	see := func(f *eventFile) (ok bool) {
		if f.done {
			return true
		}
		news, ok := r.lookAt(f)
		if news {
			f.grew = now
			due = append(due, f)
		}
		return ok
	}
	hotToo := turns < n && len(r.hot) <= fewFiles
	if hotToo {
		for _, f := range r.hot {
			if !see(f) {
				return nil, false
			}
		}
	}
	for range turns {
		r.next = (r.next + 1) % n
		if f := r.files[r.next]; (!f.hot || !hotToo) && !see(f) {
			return nil, false
		}
	}
	for _, f := range due {
		if !f.hot {
			f.hot = true
			r.hot = append(r.hot, f)
		}
	}
	return due, true
}

// lookAt reports whether there is something new in a file.
func (r *eventRun) lookAt(f *eventFile) (news, ok bool) {
	info, err := os.Stat(r.tree.place(f.path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, true // removed; what was in it is read
	case err != nil:
		return false, r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err))
	case !info.Mode().IsRegular():
		f.done = true
		return false, r.trouble(fmt.Errorf("tfevent:%s: it is not a regular file any more", f.path))
	}
	id := idOf(info)
	if f.off > 0 && (info.Size() < f.off || id != f.id) {
		if !r.changed(f, info) {
			return false, false
		}
	}
	f.id = id
	return !f.done && info.Size() > f.off && info.Size() != f.size, true
}

// changed deals with a file that shrank, or in whose place there is another one.
// A copy that begins as the old one did goes on from there.
func (r *eventRun) changed(f *eventFile, info fs.FileInfo) (ok bool) {
	began := r.beginning(f)
	switch {
	case began.IsZero():
		// There is nothing in it yet; it will be looked at again.
		f.size = info.Size()
		return true
	case began.Equal(f.began) && info.Size() >= f.off:
		return true
	case began.Equal(f.began):
		f.done = true
		return r.trouble(fmt.Errorf("tfevent:%s: the file was cut to %d bytes after %d had been read; what is written to it now is not read", f.path, info.Size(), f.off))
	}
	*f = *newEventFile(f.path, f.run)
	f.rename(began)
	if !r.trouble(fmt.Errorf("tfevent:%s: another file took its place and is read too", f.path)) {
		return false
	}
	r.names.replaced[f.path] = began.UnixNano()
	return r.saveState()
}

// rename gives the points of a file that took the place of another a source of
// their own.
func (f *eventFile) rename(began time.Time) {
	f.source = fmt.Sprintf("tfevent:%s@%d", f.path, began.UnixNano())
}

// beginning returns when a file began, or the zero time while that is not
// written.
func (r *eventRun) beginning(f *eventFile) time.Time {
	file, err := openRegular(r.tree.place(f.path))
	if err != nil {
		return time.Time{} // looked at again
	}
	defer file.Close()
	return firstTime(file)
}

func firstTime(r io.ReaderAt) time.Time {
	at, ok := parse.FirstTime(r)
	if ok && at.IsZero() {
		at = time.Unix(0, 0)
	}
	return at
}

// introduce looks into files of which nothing was reported yet, finds out which
// metrics belong to them, and returns the files that can be read.
func (r *eventRun) introduce(due []*eventFile) (ready []*eventFile, ok bool) {
	var offers []offer
	for _, f := range due {
		if f.session == noSession && !r.names.settled() || f.began.IsZero() {
			if offers, ok = r.peek(f, offers); !ok {
				return nil, false
			}
		}
		if !f.began.IsZero() && !f.done {
			ready = append(ready, f)
		}
	}
	if r.names.accept(offers) && !r.saveState() {
		return nil, false
	}
	return ready, true
}

// peek reads the beginning of a file for what metrics are in it.
func (r *eventRun) peek(f *eventFile, offers []offer) (_ []offer, ok bool) {
	file, err := openRegular(r.tree.place(f.path))
	if err != nil {
		return offers, r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err))
	}
	defer file.Close()
	if f.began.IsZero() {
		if r.twice(f) {
			f.done = true
			return offers, true
		}
		if f.began = firstTime(file); f.began.IsZero() {
			f.size = file.info.Size()
			return offers, true
		}
		if r.names.replaced[f.path] == f.began.UnixNano() {
			f.rename(f.began)
		}
		if f.source == "" {
			f.source = "tfevent:" + f.path
		}
		r.recall(f)
	}
	r.now = nil
	head := io.NewSectionReader(file, 0, peekSize)
	_, err = r.events.Read(head, 0, f.run.table.wanted, func(s parse.Scalar) bool {
		if s.Tag >= 0 {
			offers = r.names.offer(offers, f, s.Tag)
		}
		return true
	})
	_ = err // the reader of the whole file reports it
	return offers, true
}

// twice reports whether a file is known by another name.
func (r *eventRun) twice(f *eventFile) bool {
	if other := r.ids[f.id]; other != nil && other != f && !other.done {
		info, err := os.Stat(r.tree.place(other.path))
		if err == nil && idOf(info) == f.id {
			return true
		}
	}
	r.ids[f.id] = f
	return false
}

// read yields the points of one turn, and reports whether there is more. The
// file is open only meanwhile, so that any number of files can be followed.
func (r *eventRun) read(ctx context.Context, f *eventFile) (more, ok bool) {
	file, err := openRegular(r.tree.place(f.path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, true
	}
	if err != nil {
		return false, r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err))
	}
	defer file.Close()
	before := f.off
	ok = true
	r.now = f
	f.off, err = r.events.Read(file, f.off, r.names.wanted(f.run), func(s parse.Scalar) bool {
		ok = r.scalar(f, &s)
		return ok && ctx.Err() == nil
	})
	if !ok || ctx.Err() != nil {
		return false, ok
	}
	f.zeros = errors.Is(err, parse.ErrZeros)
	f.done = errors.Is(err, parse.ErrBroken)
	if err != nil && (!f.zeros || errors.Is(err, parse.ErrRecord)) {
		ok = r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err))
	}
	if f.off == before {
		f.size = file.info.Size()
	}
	return f.off > before && !f.done, ok
}
