package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// looks is a tree with what it told.
type looks struct {
	*tree
	now         time.Time
	found, said []string
	enough      int // files after which no more are wanted; 0: never
}

func newLooks(dir string, limit int) *looks {
	return &looks{now: time.Now(), tree: newTree(dir, "logs", limit, func(name string) bool { return strings.HasSuffix(name, ".log") })}
}

func (l *looks) look() bool {
	l.now = l.now.Add(time.Hour)
	return l.walk(l.now, false, func(path string, trouble error) bool {
		if trouble != nil {
			l.said = append(l.said, trouble.Error())
			return true
		}
		l.found = append(l.found, path)
		return len(l.found) != l.enough
	})
}

func TestATreeFindsFilesOnce(t *testing.T) {
	l := newLooks(filepath.Join(t.TempDir(), "later"), 10)
	check := func(want ...string) {
		t.Helper()
		l.found = nil
		if ok := l.look(); !ok || len(l.said) > 0 {
			t.Errorf("ok %v, said %q", ok, l.said)
		}
		if diff := cmp.Diff(want, l.found, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
	}
	check() // the directory does not exist yet
	for _, name := range []string{"b.log", "a/x.log", "a/x.txt", "log"} {
		appendFile(t, filepath.Join(l.root, name), nil)
	}
	if err := errors.Join(
		os.Symlink("b.log", filepath.Join(l.root, "link.log")), os.Symlink("..", filepath.Join(l.root, "a", "loop")),
		os.Mkdir(filepath.Join(l.root, "folder.log"), 0o700), syscall.Mkfifo(filepath.Join(l.root, "pipe.log"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	check("b.log", "a/x.log")
	check()
	appendFile(t, filepath.Join(l.root, "c.log"), nil)
	check("c.log")
}

func TestATreeHasALimitOfFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		appendFile(t, filepath.Join(dir, fmt.Sprint(i, ".log")), nil)
	}
	l := newLooks(dir, 3)
	for range 2 {
		if !l.look() {
			t.Error("it says that no more is wanted")
		}
	}
	if len(l.found) != 3 {
		t.Errorf("found %q", l.found)
	}
	if want := []string{"there are more than 3 logs below " + dir + "; the others are not read"}; !slices.Equal(want, l.said) {
		t.Errorf("said %q, want %q", l.said, want)
	}
	full := newLooks(dir, 5)
	if full.look(); len(full.found) != 5 || len(full.said) > 0 {
		t.Errorf("as many as may be: found %q, said %q", full.found, full.said)
	}
	some := newLooks(dir, 10)
	if some.enough = 1; some.look() || len(some.found) != 1 {
		t.Errorf("found %q and went on; one was enough", some.found)
	}
}

func TestATreeHasALimitOfDirectories(t *testing.T) {
	root := t.TempDir()
	for i := range 6 {
		for k := range 6 {
			appendFile(t, filepath.Join(root, fmt.Sprint(i), fmt.Sprint(k), "x.log"), nil)
		}
	}
	l := newLooks(root, 100)
	l.wide = 20
	for range 3 {
		l.look()
	}
	if want := []string{"there are more than 20 directories below " + root + "; the others are not searched"}; !slices.Equal(want, l.said) {
		t.Errorf("said %q, want %q", l.said, want)
	}
	if len(l.dirs) != 20 || l.below != 19 || len(l.found) != 20-1-6 {
		t.Errorf("%d directories are known, %d names; found %q", len(l.dirs), l.below, l.found)
	}
	for i := range 6 { // then there are 1 + 6 + 6 left
		for k := range 5 {
			if err := os.RemoveAll(filepath.Join(root, fmt.Sprint(i), fmt.Sprint(k))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 { // at first those are known that were known before
		l.look()
	}
	if len(l.dirs) != 13 {
		t.Errorf("%d directories are known, there are 13", len(l.dirs))
	}
}

// A directory with very many entries is read in pieces, and of those only the
// wanted ones are kept.
func TestAWideDirectoryTakesLittleMemory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "0.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		name := fmt.Sprint(i+1, ".txt")
		if i%2 == 0 {
			name = fmt.Sprint(i, ".log")
		}
		if err := os.Link(filepath.Join(dir, "0.txt"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	l := newLooks(dir, 3)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l.look()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 256<<10 || len(l.found) != 3 {
		t.Errorf("%d bytes are held, found %q", held, l.found)
	}
	if pause := l.due.Sub(l.now); pause < 20_000*walkEntry/2 {
		t.Errorf("it is read again after %s", pause)
	}
}

// A program may make and remove directories without end.
func TestRemovedDirectoriesAreForgotten(t *testing.T) {
	root := t.TempDir()
	l := newLooks(root, 10)
	for i := range 20 {
		dir := filepath.Join(root, fmt.Sprint("tmp", i))
		if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
			t.Fatal(err)
		}
		l.look()
		if len(l.dirs) != 4 || l.below != 3 {
			t.Fatalf("%d directories are known, %d names; there are 4", len(l.dirs), l.below)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// A directory may go between the look at it and its reading, which is no trouble.
func TestADirectoryThatGoesWhileItIsReadIsNoTrouble(t *testing.T) {
	l := newLooks(t.TempDir(), 10)
	d := &treeDir{read: time.Now(), below: []string{"a"}}
	l.dirs["gone"], l.dirs["gone/a"], l.below = d, &treeDir{}, 1
	ok := l.readDir("gone", filepath.Join(l.root, "gone"), d, func(path string, err error) bool {
		t.Errorf("found %q, %v", path, err)
		return true
	})
	if !ok || len(l.dirs) != 0 || l.below != 0 {
		t.Errorf("ok %v; %d directories are known, %d names", ok, len(l.dirs), l.below)
	}
}
