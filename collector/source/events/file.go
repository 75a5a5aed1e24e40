package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// peekSize is how much of a new file is searched for tags before any of its
// values are reported.
const peekSize = 64 << 10

// eventFile is one file that is being read.
type eventFile struct {
	path   string // below the directory, with slashes
	source string // of its points; empty while it is not known when it began
	run    *run
	id     source.FileID
	began  time.Time // by its first record; zero until that is there
	off    int64     // what is before this was read, or passed over
	passed int64     // what is before this was passed over
	size   int64     // what it had when nothing more could be read
	done   bool      // it is not read any more
	zeros  bool      // there are zeros at off

	fileSession

	changes int     // of the places, that mine is made from
	mine    [][]int // tag -> metrics that belong here; nil: not known
}

func newEventFile(path string, run *run) *eventFile {
	return &eventFile{path: path, run: run, size: -1, fileSession: fileSession{session: noSession, last: -1}}
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
func (r *dirRun) passOver(f *eventFile) {
	path := r.tree.Place(f.path)
	if f.passed = r.cfg.Before.Size(path); f.passed == 0 {
		return
	}
	if file, err := source.Open(path); err == nil { // who reads it says why not
		defer file.Close()
		f.off, f.id, f.began = f.passed, source.IDOf(file.Info), firstTime(file)
	}
}

// look returns the files that have something new.
func (r *dirRun) look(now time.Time, all bool) (due []*eventFile, ok bool) {
	if !all && now.Before(r.due) {
		return nil, true
	}
	r.due = now.Add(time.Duration(len(r.files)) * lookEach)
	for _, f := range r.files {
		if f.done {
			continue
		}
		grown, ok := r.lookAt(f)
		if !ok {
			return nil, false
		}
		if grown {
			due = append(due, f)
		}
	}
	return due, true
}

// lookAt reports whether there is something new in a file.
func (r *dirRun) lookAt(f *eventFile) (grown, ok bool) {
	info, err := os.Stat(r.tree.Place(f.path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, true // removed; what was in it is read
	case err != nil:
		return false, r.trouble(f, err)
	case !info.Mode().IsRegular():
		f.done = true
		return false, r.trouble(f, errors.New("it is not a regular file any more"))
	}
	id := source.IDOf(info)
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
func (r *dirRun) changed(f *eventFile, info fs.FileInfo) (ok bool) {
	var began time.Time
	if file, err := source.Open(r.tree.Place(f.path)); err == nil { // or it is looked at again
		defer file.Close()
		began = firstTime(file)
	}
	switch {
	case began.IsZero():
		// There is nothing in it yet; it will be looked at again.
		f.size = info.Size()
		return true
	case began.Equal(f.began) && info.Size() >= f.off:
		return true
	case began.Equal(f.began):
		f.done = true
		return r.trouble(f, fmt.Errorf("the file was cut to %d bytes after %d had been read; what is written to it now is not read", info.Size(), f.off))
	}
	*f = *newEventFile(f.path, f.run)
	f.rename(began)
	return r.trouble(f, errors.New("another file took its place and is read too")) && r.places.replace(f.path, began)
}

// rename gives the points of a file that took the place of another a source of
// their own.
func (f *eventFile) rename(began time.Time) {
	f.source = fmt.Sprintf("tfevent:%s@%d", f.path, began.UnixNano())
}

// firstTime returns when a file began, or the zero time while that is not
// written.
func firstTime(r io.ReaderAt) time.Time {
	at, ok := parse.FirstTime(r)
	if ok && at.IsZero() {
		at = time.Unix(0, 0)
	}
	return at
}

// introduce looks into files of which nothing was reported yet, finds out which
// metrics belong to them, and returns the files that can be read.
func (r *dirRun) introduce(due []*eventFile) (ready []*eventFile, ok bool) {
	var offers []offer
	for _, f := range due {
		if f.session == noSession && !r.places.settled() || f.began.IsZero() {
			if offers, ok = r.peek(f, offers); !ok {
				return nil, false
			}
		}
		if !f.began.IsZero() && !f.done {
			ready = append(ready, f)
		}
	}
	return ready, r.places.accept(offers)
}

// peek reads the beginning of a file for what metrics are in it.
func (r *dirRun) peek(f *eventFile, offers []offer) (_ []offer, ok bool) {
	file, err := source.Open(r.tree.Place(f.path))
	if err != nil {
		return offers, r.trouble(f, err)
	}
	defer file.Close()
	if f.began.IsZero() {
		if other := r.ids[f.id]; other != nil && other != f && !other.done {
			if info, err := os.Stat(r.tree.Place(other.path)); err == nil && source.IDOf(info) == f.id {
				f.done = true // it is read by its other name
				return offers, true
			}
		}
		r.ids[f.id] = f
		if f.began = firstTime(file); f.began.IsZero() {
			f.size = file.Info.Size()
			return offers, true
		}
		if r.places.Replaced[f.path] == f.began.UnixNano() {
			f.rename(f.began)
		}
		if f.source == "" {
			f.source = "tfevent:" + f.path
		}
		r.sessions.recall(f)
	}
	r.now = nil
	head := io.NewSectionReader(file, 0, peekSize)
	_, err = r.events.Read(head, 0, f.run.wanted, func(s parse.Scalar) bool {
		if s.Tag >= 0 {
			offers = r.places.offer(offers, f, s.Tag)
		}
		return true
	})
	_ = err // the reader of the whole file reports it
	return offers, true
}

// read yields the points of one turn, and reports whether there is more. The
// file is open only meanwhile, so that any number of files can be followed.
func (r *dirRun) read(ctx context.Context, f *eventFile) (more, ok bool) {
	file, err := source.Open(r.tree.Place(f.path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, true
	}
	if err != nil {
		return false, r.trouble(f, err)
	}
	defer file.Close()
	before := f.off
	ok = true
	r.now = f
	f.off, err = r.events.Read(file, f.off, f.run.wanted, func(s parse.Scalar) bool {
		ok = r.scalar(f, &s)
		return ok && ctx.Err() == nil
	})
	if !ok || ctx.Err() != nil {
		return false, ok
	}
	f.zeros = errors.Is(err, parse.ErrZeros)
	f.done = errors.Is(err, parse.ErrBroken)
	if err != nil && (!f.zeros || errors.Is(err, parse.ErrRecord)) {
		ok = r.trouble(f, err)
	}
	if f.off == before && !f.zeros { // data may take their place
		f.size = file.Info.Size()
	}
	return f.off > before && !f.done, ok
}
