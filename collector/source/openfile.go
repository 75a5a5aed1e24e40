package source

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// printSize is how many bytes at the beginning of a file and before the place
// of reading are remembered, to notice that the file is another.
const printSize = 64

// openFile is a file that is being read.
type openFile struct {
	*os.File
	info       fs.FileInfo
	generation int   // its number among the files seen, -1 until known
	off        int64 // what is before this was read
	head, tail []byte
	modified   time.Time
}

// openRegular opens a regular file without waiting for a writer.
func openRegular(path string) (*openFile, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &openFile{File: f, info: info, generation: -1}, nil
}

// maxState bounds a file in which a source remembers something, in bytes.
const maxState = 64 << 20

// readState reads such a file. Other programs of the pod may write where it lies,
// and put anything there.
func readState(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err == nil && len(b) > maxState {
		err = fmt.Errorf("%s has more than %d bytes", path, maxState)
	}
	return b, err
}

// inode returns the file's number in its file system.
func (f *openFile) inode() uint64 {
	if s, ok := f.info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

// passed takes in the bytes that were read at off.
func (f *openFile) passed(b []byte) {
	if !f.headComplete() {
		f.head = headOf(append(f.head, b[:min(len(b), printSize)]...))
	}
	f.tail = append(f.tail, b[max(0, len(b)-printSize):]...)
	f.tail = slices.Delete(f.tail, 0, max(0, len(f.tail)-printSize))
	f.off += int64(len(b))
}

// headOf cuts b to a head: the first line, or as much of it as is remembered.
func headOf(b []byte) []byte {
	b = b[:min(len(b), printSize)]
	if end := bytes.IndexAny(b, "\r\n"); end >= 0 {
		b = b[:end+1]
	}
	return b
}

// headComplete reports whether no more bytes can change the head.
func (f *openFile) headComplete() bool {
	return len(f.head) == printSize || bytes.HasSuffix(f.head, []byte("\n")) || bytes.HasSuffix(f.head, []byte("\r"))
}

// intact reports whether what was read is still there.
func (f *openFile) intact() bool {
	return f.holds(f.head, 0) && f.holds(f.tail, f.off-int64(len(f.tail)))
}

func (f *openFile) holds(want []byte, at int64) bool {
	var b [printSize]byte
	n, _ := f.ReadAt(b[:len(want)], at) // a file that cannot be read does not hold it
	return bytes.Equal(b[:n], want)
}

// truncated looks, at the end of the file, whether it was truncated.
func (f *openFile) truncated() (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() < f.off {
		return true, nil
	}
	if info.ModTime().Equal(f.modified) {
		return false, nil
	}
	f.modified = info.ModTime()
	return !f.intact(), nil
}

// rewind makes it a file of which nothing was read.
func (f *openFile) rewind() {
	f.generation, f.off, f.head, f.tail = -1, 0, nil, nil
}

// successors opens the files that have taken cur's place at path, oldest
// first: none, unless there is another file at path now and there is data in
// it or in one before it. Besides that one there may be some that were rotated
// away in turn: where cur is now "path.3", these are "path.2" and "path.1".
func successors(path string, cur *openFile, known func(*openFile) bool) []*openFile {
	now, err := openRegular(path)
	if err != nil {
		return nil
	}
	if os.SameFile(now.info, cur.info) {
		now.Close()
		return nil
	}
	found := between(path, cur, func(f *openFile) bool { return known(f) || os.SameFile(f.info, now.info) })
	if len(found) == 0 && now.info.Size() == 0 {
		now.Close() // cur may still be written
		return nil
	}
	return append(found, now)
}

// between opens the rotated files that are newer than cur, but for those that
// are known. It finds none when cur is not among the rotated files any more:
// then nobody knows which of the others are newer.
func between(path string, cur *openFile, known func(*openFile) bool) []*openFile {
	info, err := cur.Stat()
	if err != nil {
		return nil
	}
	var found []*openFile
	for _, n := range rotated(path) {
		f, err := openRegular(path + "." + strconv.Itoa(n))
		switch {
		case err != nil:
		case os.SameFile(f.info, info):
			f.Close()
			return found
		// Some number the other way round: the highest is the newest.
		case known(f) || f.info.ModTime().Before(info.ModTime()):
			f.Close()
		default:
			found = slices.Insert(found, 0, f)
		}
	}
	for _, f := range found {
		f.Close()
	}
	return nil
}

// rotated returns the numbers of the files "path.N", the newest (lowest) first.
func rotated(path string) []int {
	entries, _ := os.ReadDir(filepath.Dir(path)) // none can be found in a folder that cannot be read
	var numbers []int
	for _, e := range entries {
		suffix, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		if n, err := strconv.Atoi(suffix); ok && err == nil && n >= 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}
