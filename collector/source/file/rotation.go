package file

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector/source"
)

// reading is a file that is being read.
type reading struct {
	source.File
	generation int   // its number among the files seen, -1 until known
	base       int64 // where it begins in the whole, if it is a segment
	off        int64 // what is before this was read
	// The first line, or the beginning of it, and the bytes before off: by these it
	// is noticed that the file has become another.
	head, tail []byte
	maxHead    int
}

func open(path string) (*reading, error) {
	f, err := source.Open(path)
	if err != nil {
		return nil, err
	}
	return &reading{File: f, generation: -1, maxHead: source.PrintSize}, nil
}

// reset makes it a file of which nothing was read.
func (f *reading) reset() { f.generation, f.off, f.head, f.tail = -1, 0, nil, nil }

// passed takes in the bytes that were read at off.
func (f *reading) passed(b []byte) {
	if !f.headComplete() {
		f.head = headOf(append(f.head, b[:min(len(b), f.maxHead)]...), f.maxHead)
	}
	f.tail = append(f.tail, b[max(0, len(b)-source.PrintSize):]...)
	f.tail = slices.Delete(f.tail, 0, max(0, len(f.tail)-source.PrintSize))
	f.off += int64(len(b))
}

// headOf cuts b to a head: the first line, or as much of it as is remembered.
func headOf(b []byte, most int) []byte {
	b = b[:min(len(b), most)]
	if end := bytes.IndexAny(b, "\r\n"); end >= 0 {
		b = b[:end+1]
	}
	return b
}

// headComplete reports whether no more bytes can change the head.
func (f *reading) headComplete() bool {
	return len(f.head) == f.maxHead || bytes.HasSuffix(f.head, []byte("\n")) || bytes.HasSuffix(f.head, []byte("\r"))
}

// intact reports whether what was read is still there.
func (f *reading) intact() bool {
	return f.Holds(f.head, 0) && f.Holds(f.tail, f.off-int64(len(f.tail)))
}

// passOver places it behind what was in it before the program started.
func (f *reading) passOver(before *source.Before) {
	if m, ok := before.Of(f.File); ok {
		f.off, f.head, f.tail = m.Size, slices.Clone(headOf(m.Head, f.maxHead)), slices.Clone(m.Tail)
	}
}

// successors opens the files that have taken cur's place at path, oldest
// first: none, unless there is another file at path now and there is data in
// it or in one before it. Besides that one there may be some that were rotated
// away in turn: where cur is now "path.3", these are "path.2" and "path.1".
func successors(path string, cur *reading, known func(*reading) bool) []*reading {
	info, err := os.Stat(path)
	if err != nil || os.SameFile(info, cur.Info) {
		return nil
	}
	now, err := open(path)
	if err != nil {
		return nil
	}
	found := between(path, cur, func(f *reading) bool { return known(f) || os.SameFile(f.Info, now.Info) })
	if len(found) == 0 && now.Info.Size() == 0 {
		now.Close() // cur may still be written
		return nil
	}
	return append(found, now)
}

// between opens the rotated files that are newer than cur, but for those that
// are known. It finds none when cur is not among the rotated files any more:
// then it cannot be known which of the others are newer.
func between(path string, cur *reading, known func(*reading) bool) []*reading {
	info, err := cur.Stat()
	if err != nil {
		return nil
	}
	var found []*reading
	for _, n := range rotated(path) {
		f, err := open(path + "." + strconv.Itoa(n))
		switch {
		case err != nil:
		case os.SameFile(f.Info, info):
			f.Close()
			return found
		// Some number the other way round: the highest is the newest.
		case known(f) || f.Info.ModTime().Before(info.ModTime()):
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
