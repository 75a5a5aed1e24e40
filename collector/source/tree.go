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
	"syscall"
	"time"
)

const (
	// WalkEvery is how often a tree in which files were found is searched for more,
	// at most. Each directory adds walkEach and each entry walkEntry, so that
	// searching a large tree takes no larger part of the time.
	WalkEvery       = time.Second
	walkEach        = 2 * time.Millisecond
	walkEntry       = 20 * time.Microsecond
	defaultTreeDirs = 30_000
)

// Tree finds the files below a directory, at any depth, each once. Links are not
// followed, so that there are no loops. What is neither a file nor a link is told.
type Tree struct {
	// Root is the directory. It need not exist yet.
	Root string
	// Match says by its name whether a file is wanted.
	Match func(name string) bool
	// What the files are called, in the plural.
	What string
	// Limit bounds the files that are found.
	Limit int
	// Dirs bounds the directories that are searched. Default: 30,000.
	Dirs int
	// Only is the one file that is looked for, whatever its name, by its path below
	// Root; empty: all that match.
	Only string

	due   time.Time
	known map[string]bool
}

// Place is where a path below the root lies.
func (t *Tree) Place(path string) string { return filepath.Join(t.Root, filepath.FromSlash(path)) }

// Walk tells found of the files that are new, by their paths below the root with
// slashes, and of what is in the way (each time, with an empty path), until found
// returns false. It does nothing when the last walk was a short time ago, unless
// all is true.
func (t *Tree) Walk(now time.Time, all bool, found func(path string, trouble error) bool) (ok bool) {
	if !all && now.Before(t.due) {
		return true
	}
	if t.known == nil {
		t.known = map[string]bool{}
	}
	w := treeWalk{Tree: t, found: found, room: cmp.Or(t.Dirs, defaultTreeDirs)}
	if t.Only != "" {
		ok = w.single()
	} else {
		ok = w.visit("")
	}
	pause := time.Duration(w.dirs)*walkEach + time.Duration(w.entries)*walkEntry
	if len(t.known) > 0 {
		pause = max(WalkEvery, pause)
	}
	t.due = now.Add(pause)
	return ok
}

// treeWalk is one walk.
type treeWalk struct {
	*Tree
	found         func(path string, trouble error) bool
	room          int  // directories that there still is room for
	dirs, entries int  // that were read
	full, surplus bool // there are too many files, or directories
}

// single looks for the one file that is wanted.
func (w *treeWalk) single() (ok bool) {
	info, err := os.Stat(w.Place(w.Only))
	if err != nil || w.known[w.Only] {
		return true // the caller reports that it found nothing
	}
	return w.entry(w.Only, info.Mode().Type())
}

// visit searches a directory, files first.
func (w *treeWalk) visit(dir string) (ok bool) {
	before := w.surplus
	files, below, err := w.list(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) && dir != "" {
		return true // it was there a moment ago
	}
	if err != nil {
		return w.found("", err)
	}
	if w.surplus && !before && !w.found("", fmt.Errorf("there are more than %d directories below %s; the others are not searched", cmp.Or(w.Dirs, defaultTreeDirs), w.Root)) {
		return false
	}
	slices.SortFunc(files, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, e := range files {
		if !w.entry(under(dir, e.Name()), e.Type()) {
			return false
		}
	}
	slices.Sort(below)
	for _, name := range below {
		if !w.visit(under(dir, name)) {
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

// list reads a directory in pieces, and keeps what there is room for: the files
// that are new, and the names of directories.
func (w *treeWalk) list(dir string) (files []fs.DirEntry, below []string, err error) {
	f, err := os.OpenFile(w.Place(dir), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	w.dirs++
	for {
		entries, err := f.ReadDir(256)
		w.entries += len(entries)
		for _, e := range entries {
			switch {
			case e.IsDir() && w.room <= 1: // the root is one
				w.surplus = true
			case e.IsDir():
				below = append(below, e.Name())
				w.room--
			case w.wanted(dir, e) && len(w.known)+len(files) <= w.Limit:
				files = append(files, e)
			}
		}
		if err == io.EOF {
			return files, below, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

func (w *treeWalk) wanted(dir string, e fs.DirEntry) bool {
	return w.Match(e.Name()) && e.Type() != fs.ModeSymlink && !w.known[under(dir, e.Name())]
}

// entry looks at a new entry with the name of a file.
func (w *treeWalk) entry(path string, mode fs.FileMode) (ok bool) {
	switch {
	case w.full:
		return true
	case len(w.known) == w.Limit:
		w.full = true
		return w.found("", fmt.Errorf("there are more than %d %s below %s; the others are not read", w.Limit, w.What, w.Root))
	case !mode.IsRegular():
		return w.found("", fmt.Errorf("%s is not a regular file and is not read", path))
	}
	w.known[path] = true
	return w.found(path, nil)
}
