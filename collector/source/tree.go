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
	"time"
)

const (
	// walkEvery is how often a tree in which files were found is searched for more,
	// at most. Each directory adds walkEach, and each entry that was read
	// walkEntry, so that a large tree costs no more time than a small one.
	walkEvery = time.Second
	walkEach  = 2 * time.Millisecond
	walkEntry = 20 * time.Microsecond
	// A directory is read again when its time has changed, when it changed so
	// lately that a further change may bear the same time, and once in a while
	// for file systems that do not keep that time.
	dirSettled = 2 * time.Second
	dirTrusted = 5 * time.Minute
	// maxTreeDirs bounds the directories that are searched.
	maxTreeDirs = 30_000
)

// tree finds the files below a directory, at any depth, each once. Links to
// directories are not followed, so that there are no loops.
type tree struct {
	root  string
	match func(name string) bool // is wanted
	what  string                 // files are called, in the plural
	limit int                    // of files
	wide  int                    // limit of directories
	// links: a file may be known by a link, and what is no file is told.
	links bool
	// only is the one file that is looked for, whatever its name, by its path below
	// root; empty: all that match.
	only string

	due   time.Time
	dirs  map[string]*treeDir // by path below root, with slashes; "" is root
	below int                 // names of directories in dirs
	known map[string]bool     // paths of files
	read  int                 // entries, in this walk
	// Whether it was told that there are too many.
	fullDirs, fullFiles bool
}

// treeDir is one directory of a tree.
type treeDir struct {
	modified time.Time
	read     time.Time
	below    []string // names of directories in it
}

func newTree(root, what string, limit int, match func(name string) bool) *tree {
	return &tree{root: root, match: match, what: what, limit: limit, wide: maxTreeDirs, dirs: map[string]*treeDir{}, known: map[string]bool{}}
}

// place is where a path below the root lies.
func (t *tree) place(path string) string { return filepath.Join(t.root, filepath.FromSlash(path)) }

// walk tells found of the files that are new, by their paths below the root, and
// of what is in the way, until found returns false. It does nothing when it is
// too early, unless all is true.
func (t *tree) walk(now time.Time, all bool, found func(path string, trouble error) bool) (ok bool) {
	if !all && now.Before(t.due) {
		return true
	}
	t.read = 0
	if t.only != "" {
		ok = t.single(found)
	} else {
		ok = t.visit("", now, all, found)
	}
	pause := time.Duration(len(t.dirs))*walkEach + time.Duration(t.read)*walkEntry
	if len(t.known) > 0 {
		pause = max(walkEvery, pause)
	}
	t.due = now.Add(pause)
	return ok
}

// single looks for the one file that is wanted.
func (t *tree) single(found func(path string, trouble error) bool) (ok bool) {
	if t.known[t.only] {
		return true
	}
	info, err := os.Stat(t.place(t.only))
	if err != nil {
		return true // whoever finds nothing says so
	}
	return t.entry(t.only, fs.FileInfoToDirEntry(info), found)
}

func (t *tree) visit(dir string, now time.Time, all bool, found func(string, error) bool) (ok bool) {
	path := t.place(dir)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() && dir != "" {
		t.forget(dir)
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
		d = &treeDir{}
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

// forget gives up a directory that is not there any more, with all below it.
func (t *tree) forget(dir string) {
	d := t.dirs[dir]
	if d == nil {
		return
	}
	delete(t.dirs, dir)
	t.below -= len(d.below)
	for _, name := range d.below {
		t.forget(under(dir, name))
	}
}

func under(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// readDir looks for files and directories in one directory.
func (t *tree) readDir(dir, path string, d *treeDir, found func(string, error) bool) (ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return t.unread(dir, d, err, found)
	}
	defer f.Close()
	before := d.below
	t.below -= len(before)
	files, surplus, err := t.list(dir, f, d)
	if err != nil {
		t.below += len(before) - len(d.below)
		d.below = before
		return t.unread(dir, d, err, found)
	}
	for _, name := range before {
		if _, still := slices.BinarySearch(d.below, name); !still {
			t.forget(under(dir, name))
		}
	}
	if surplus && !t.fullDirs {
		t.fullDirs = true
		if !found("", fmt.Errorf("there are more than %d directories below %s; the others are not searched", t.wide, t.root)) {
			return false
		}
	}
	return t.entries(dir, files, found)
}

// unread gives a directory up that has gone since it was looked at; the next walk
// tries others again.
func (t *tree) unread(dir string, d *treeDir, err error, found func(string, error) bool) (ok bool) {
	if errors.Is(err, fs.ErrNotExist) {
		t.forget(dir)
		return true
	}
	d.read = time.Time{}
	return found("", err)
}

// list reads a directory in pieces, and keeps what there is room for: the names of
// directories in d, and the files that are new. surplus are further directories.
func (t *tree) list(dir string, f *os.File, d *treeDir) (files []fs.DirEntry, surplus bool, err error) {
	d.below = nil
	defer func() { slices.Sort(d.below) }()
	for {
		entries, err := f.ReadDir(256)
		t.read += len(entries)
		for _, e := range entries {
			switch {
			case e.IsDir() && t.below+1 >= t.wide: // the root is one
				surplus = true
			case e.IsDir():
				d.below = append(d.below, e.Name())
				t.below++
			case t.wanted(dir, e) && len(t.known)+len(files) <= t.limit:
				files = append(files, e)
			}
		}
		if err == io.EOF {
			return files, surplus, nil
		}
		if err != nil {
			return nil, surplus, err
		}
	}
}

func (t *tree) wanted(dir string, e fs.DirEntry) bool {
	return t.match(e.Name()) && (t.links || e.Type().IsRegular()) && !t.known[under(dir, e.Name())]
}

// entries looks at the new entries of a directory with the names of files.
func (t *tree) entries(dir string, files []fs.DirEntry, found func(string, error) bool) (ok bool) {
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

func (t *tree) entry(path string, e fs.DirEntry, found func(string, error) bool) (ok bool) {
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(t.place(path))
		if err != nil || info.IsDir() {
			return true // it points to nothing yet, or to a directory
		}
		mode = info.Mode().Type()
	}
	if len(t.known) == t.limit {
		if t.fullFiles {
			return true
		}
		t.fullFiles = true
		return found("", fmt.Errorf("there are more than %d %s below %s; the others are not read", t.limit, t.what, t.root))
	}
	t.known[path] = true
	if !mode.IsRegular() {
		return found("", fmt.Errorf("%s is not a regular file and is not read", path))
	}
	return found(path, nil)
}
