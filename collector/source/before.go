package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxBefore bounds the files of which Before remembers what was in them, and
// maxLooked the entries among which it looks for them: a start must not take long.
const (
	maxBefore = 10_000
	maxLooked = 200_000
)

// Before is what lay at a place before the program started: values of earlier
// runs, and of other trials that write to the same volume. A source passes it
// over. What is appended to such a file is read, and so is a file that was
// written anew: a mark holds only as long as the bytes that it stands for are
// there. A file of another inode is another file.
//
// nil is a place where nothing was.
type Before struct {
	note  error
	mu    sync.Mutex // sources of several files read side by side
	marks map[FileID]Mark
}

// Mark is what was in one file.
type Mark struct {
	Device   uint64    `json:"device"`
	Inode    uint64    `json:"inode"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	// Head and Tail are the first bytes, and the last.
	Head []byte `json:"head"`
	Tail []byte `json:"tail"`
}

// beforeState is Before on disk.
type beforeState struct {
	Marks []Mark `json:"marks"`
	Full  bool   `json:"full,omitempty"`
}

// RecordBefore returns what is at path, a file or a directory, and remembers it
// in the file state. When that is there, it returns what was remembered: a
// collector that starts again comes after the program's start. late says that
// the program may have started; then nothing that is there now is passed over.
// readable says by its name which files of a directory matter.
func RecordBefore(path, state string, late bool, readable func(name string) bool) (*Before, error) {
	var s *beforeState
	if err := LoadState(state, &s); err != nil {
		return nil, fmt.Errorf("what was at %s before the program started was remembered in %s, which cannot be read: %w", path, state, err)
	}
	switch {
	case s != nil:
		return newBefore(path, *s), nil
	case late:
		return nil, nil
	}
	now, err := look(path, readable)
	if err == nil {
		err = SaveState(state, now)
	}
	if err != nil {
		return nil, fmt.Errorf("what is at %s before the program starts: %w", path, err)
	}
	return newBefore(path, now), nil
}

func newBefore(path string, s beforeState) *Before {
	b := &Before{note: noteOf(path, s), marks: map[FileID]Mark{}}
	for _, m := range s.Marks {
		b.marks[FileID{m.Device, m.Inode}] = m
	}
	return b
}

// look finds the files that a source may read.
func look(path string, readable func(name string) bool) (beforeState, error) {
	var s beforeState
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, err
	case !info.IsDir():
		return s, s.add(path)
	}
	looked := 0
	// The slash makes it follow a link that is the directory.
	err = filepath.WalkDir(filepath.Clean(path)+"/", func(p string, e fs.DirEntry, err error) error {
		looked++
		switch {
		case len(s.Marks) == maxBefore || looked > maxLooked:
			s.Full = true
			return fs.SkipAll
		case err != nil:
			return nil // the source will say so
		case e.IsDir() || !readable(e.Name()):
			return nil
		}
		return s.add(p)
	})
	return s, err
}

// add marks a regular file that has something in it. Others are left to the
// source, which says what is wrong with them.
func (s *beforeState) add(path string) error {
	f, err := Open(path)
	if err != nil {
		return nil //nolint:nilerr // the source will say so, if it is still wrong by then
	}
	defer f.Close()
	id, size := IDOf(f.Info), f.Info.Size()
	if size == 0 {
		return nil
	}
	head, tail := make([]byte, min(size, PrintSize)), make([]byte, min(size, PrintSize))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.Marks = append(s.Marks, Mark{id.Device, id.Inode, size, f.Info.ModTime(), head, tail})
	return nil
}

// Of returns the mark of an open file, if it has one and what that stands for is
// still there.
func (b *Before) Of(f File) (Mark, bool) {
	if b == nil {
		return Mark{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := IDOf(f.Info)
	m, ok := b.marks[id]
	if !ok {
		return Mark{}, false
	}
	now, err := f.Stat()
	if err != nil || now.Size() < m.Size || !f.Holds(m.Head, 0) || !f.Holds(m.Tail, m.Size-int64(len(m.Tail))) {
		// It was written anew. When it has grown as long, it is no older for that.
		delete(b.marks, id)
		return Mark{}, false
	}
	return m, true
}

// Size returns how many bytes at the beginning of the file at a path are passed
// over. A file that cannot be opened has none: who reads it says why.
func (b *Before) Size(path string) int64 {
	if b == nil {
		return 0
	}
	f, err := Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	m, _ := b.Of(f)
	return m.Size
}

// Rewritten tells, at the end, that a file has exactly what it had and was
// written nevertheless: by a program that repeats an earlier run and truncated
// the file unseen. It is not passed over any more.
func (b *Before) Rewritten(f File) bool {
	m, ok := b.Of(f)
	if !ok {
		return false
	}
	now, err := f.Stat()
	if err != nil || now.Size() != m.Size || now.ModTime().Equal(m.Modified) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.marks, IDOf(f.Info))
	return true
}

// Bound is how many of n bytes from a place on may be read of a file, when only
// what lay there may be: nil sets no bound.
func (b *Before) Bound(f File, from int64, n int) int {
	if b == nil {
		return n
	}
	m, _ := b.Of(f)
	return int(max(0, min(int64(n), m.Size-from)))
}

// Note says what is passed over, nil if that is nothing.
func (b *Before) Note() error {
	if b == nil {
		return nil
	}
	return b.note
}

func noteOf(place string, s beforeState) error {
	if len(s.Marks) == 0 && !s.Full {
		return nil
	}
	size := int64(0)
	for _, m := range s.Marks {
		size += m.Size
	}
	note := fmt.Sprintf("%d files were below %s before the program started: the %d bytes in them are passed over", len(s.Marks), place, size)
	if len(s.Marks) == 1 {
		note = fmt.Sprintf("a file was at %s before the program started: its %d bytes are passed over", place, size)
	}
	if s.Full {
		note += fmt.Sprintf("; there are more than %d files or %d entries, and values of earlier runs may be among the others: give each trial a directory of its own", maxBefore, maxLooked)
	}
	return errors.New(note)
}
