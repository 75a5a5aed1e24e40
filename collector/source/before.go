package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	mu    sync.Mutex // tables are read side by side
	marks map[fileID]mark
}

// mark is one file of Before.
type mark struct {
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
	Marks []mark `json:"marks"`
	Full  bool   `json:"full,omitempty"`
}

// RecordBefore returns what is at path, a file or a directory, and remembers it
// in the file state. When that is there, it returns what was remembered: a
// collector that starts again comes after the program's start. late says that
// the program may have started; then nothing that is there now is passed over.
func RecordBefore(path, state string, late bool) (*Before, error) {
	var s beforeState
	b, err := readState(state)
	switch {
	case err == nil:
		if err := json.Unmarshal(b, &s); err != nil {
			return nil, fmt.Errorf("what was at %s before the program started was remembered in %s, which cannot be read: %w", path, state, err)
		}
		return newBefore(path, s), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("what was at %s before the program started: %w", path, err)
	case late:
		return nil, nil
	}
	if s, err = look(path); err != nil {
		return nil, fmt.Errorf("what is at %s before the program starts: %w", path, err)
	}
	if b, err = json.Marshal(s); err == nil {
		err = replaceFile(state, b)
	}
	if err != nil {
		return nil, fmt.Errorf("remember what is at %s before the program starts: %w", path, err)
	}
	return newBefore(path, s), nil
}

func newBefore(path string, s beforeState) *Before {
	b := &Before{note: noteOf(path, s), marks: map[fileID]mark{}}
	for _, m := range s.Marks {
		b.marks[fileID{m.Device, m.Inode}] = m
	}
	return b
}

// look finds the files that a source may read.
func look(path string) (beforeState, error) {
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

// readable tells the names that sources of directories read.
func readable(name string) bool {
	return isEventFile(name) || isTable(name) || isWandbFile(name)
}

// add marks a regular file that has something in it. Others are left to the
// source, which says what is wrong with them.
func (s *beforeState) add(path string) error {
	f, err := openRegular(path)
	if err != nil {
		return nil //nolint:nilerr // the source will say so, if it is still wrong by then
	}
	defer f.Close()
	id, size := idOf(f.info), f.info.Size()
	if size == 0 {
		return nil
	}
	head, tail := make([]byte, min(size, printSize)), make([]byte, min(size, printSize))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.Marks = append(s.Marks, mark{id.device, id.inode, size, f.info.ModTime(), head, tail})
	return nil
}

// of returns the mark of an open file, if there is one and what it stands for is
// still there.
func (b *Before) of(f *openFile) (mark, bool) {
	if b == nil {
		return mark{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := idOf(f.info)
	m, ok := b.marks[id]
	if !ok {
		return mark{}, false
	}
	now, err := f.Stat()
	if err != nil || now.Size() < m.Size || !f.holds(m.Head, 0) || !f.holds(m.Tail, m.Size-int64(len(m.Tail))) {
		// It was written anew. When it has grown as long, it is no older for that.
		delete(b.marks, id)
		return mark{}, false
	}
	return m, true
}

// size returns how many bytes at the beginning of f are passed over.
func (b *Before) size(f *openFile) int64 {
	m, _ := b.of(f)
	return m.Size
}

// skip places f behind what was in it before.
func (b *Before) skip(f *openFile) {
	if m, ok := b.of(f); ok {
		f.off, f.head, f.tail = m.Size, slices.Clone(headOf(m.Head)), slices.Clone(m.Tail)
	}
}

// rewritten tells, at the end, that a file has exactly what it had and was
// written nevertheless: by a program that repeats an earlier run and truncated
// the file unseen. It is not passed over any more.
func (b *Before) rewritten(f *openFile) bool {
	m, ok := b.of(f)
	if !ok {
		return false
	}
	now, err := f.Stat()
	if err != nil || now.Size() != m.Size || now.ModTime().Equal(m.Modified) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.marks, idOf(f.info))
	return true
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
