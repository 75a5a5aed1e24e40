package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// walkEvery is how often the tree is searched for new files, at most. Each
	// directory adds walkEach, so that a large tree costs no more time than a
	// small one.
	walkEvery = time.Second
	walkEach  = 2 * time.Millisecond
	// A directory is read again when its time has changed, when it changed so
	// lately that a further change may bear the same time, and once in a while
	// for file systems that do not keep that time.
	dirSettled = 2 * time.Second
	dirTrusted = 5 * time.Minute
)

// HparamsFile begins the names of the event files that the collector itself
// writes for TensorBoard. They hold no measurement. TensorBoard reads the files
// of a directory in the order of their names, so these come first.
const HparamsFile = "events.out.tfevents.0000000000.vernier"

// eventTree finds the event files below a directory.
type eventTree struct {
	root  string
	due   time.Time
	dirs  map[string]*eventTreeDir // by path below root, with slashes; "" is root
	known map[string]bool          // paths of files
	full  bool                     // there are too many directories
}

// eventTreeDir is one directory of the tree.
type eventTreeDir struct {
	modified time.Time
	read     time.Time
	below    []string // names of directories in it
}

func newEventTree(root string) *eventTree {
	return &eventTree{root: root, dirs: map[string]*eventTreeDir{}, known: map[string]bool{}}
}

// walk tells found of the files that are new, by their paths below the root, and
// of what is in the way, until found returns false. It does nothing when it is
// too early, unless all is true.
func (t *eventTree) walk(now time.Time, all bool, found func(path string, trouble error) bool) (ok bool) {
	if !all && now.Before(t.due) {
		return true
	}
	ok = t.visit("", now, all, found)
	pause := max(walkEvery, time.Duration(len(t.dirs))*walkEach)
	if len(t.known) == 0 {
		pause = 0
	}
	t.due = now.Add(pause)
	return ok
}

func (t *eventTree) visit(dir string, now time.Time, all bool, found func(string, error) bool) (ok bool) {
	path := filepath.Join(t.root, filepath.FromSlash(dir))
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() && dir != "" {
		delete(t.dirs, dir)
		return true
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	if err != nil {
		return found("", err)
	}
	d := t.dirs[dir]
	if d == nil {
		if len(t.dirs) == maxEventDirs {
			if !t.full {
				t.full = true
				return found("", fmt.Errorf("there are more than %d directories below %s; the others are not searched", maxEventDirs, t.root))
			}
			return true
		}
		d = &eventTreeDir{}
		t.dirs[dir] = d
	}
	if all || d.read.IsZero() || !info.ModTime().Equal(d.modified) ||
		d.read.Sub(d.modified).Abs() < dirSettled || now.Sub(d.read) >= dirTrusted {
		d.modified, d.read = info.ModTime(), now
		if !t.readDir(dir, path, d, found) {
			return false
		}
	}
	for _, name := range d.below {
		if !t.visit(under(dir, name), now, all, found) {
			return false
		}
	}
	return true
}

func under(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// readDir looks for files and directories in one directory, in pieces.
func (t *eventTree) readDir(dir, path string, d *eventTreeDir, found func(string, error) bool) (ok bool) {
	f, err := os.Open(path)
	if err != nil {
		d.read = time.Time{} // the next walk tries again
		return found("", err)
	}
	defer f.Close()
	d.below = d.below[:0]
	var files []fs.DirEntry
	for {
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			if e.IsDir() {
				d.below = append(d.below, e.Name())
				continue
			}
			if isEventFile(e.Name()) && !t.known[under(dir, e.Name())] {
				files = append(files, e)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			d.read = time.Time{}
			return found("", err)
		}
	}
	slices.Sort(d.below)
	// Of the names of one file the first is used: not that of a link.
	slices.SortFunc(files, func(a, b fs.DirEntry) int {
		return cmp.Or(cmp.Compare(a.Type(), b.Type()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, e := range files {
		if !t.entry(under(dir, e.Name()), e, found) {
			return false
		}
	}
	return true
}

func isEventFile(name string) bool {
	return strings.Contains(name, "tfevents") && !strings.HasPrefix(name, HparamsFile) && !strings.HasSuffix(name, ".profile-empty")
}

// entry looks at one entry with the name of an event file.
func (t *eventTree) entry(path string, e fs.DirEntry, found func(string, error) bool) (ok bool) {
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(filepath.Join(t.root, filepath.FromSlash(path)))
		if err != nil || info.IsDir() {
			return true // it points to nothing yet, or to a directory
		}
		mode = info.Mode().Type()
	}
	t.known[path] = true
	if !mode.IsRegular() {
		return found("", fmt.Errorf("%s is not a regular file and is not read", path))
	}
	return found(path, nil)
}
