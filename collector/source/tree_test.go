package source_test

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

	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// looks is a tree with what it told.
type looks struct {
	source.Tree
	now         time.Time
	found, said []string
	enough      int // files after which no more are wanted; 0: never
}

func newLooks(dir string, limit int) *looks {
	return &looks{now: time.Now(), Tree: source.Tree{Root: dir, What: "logs", Limit: limit, Match: func(name string) bool { return strings.HasSuffix(name, ".log") }}}
}

func (l *looks) look() bool {
	l.now = l.now.Add(time.Hour)
	return l.Walk(l.now, false, func(path string, trouble error) bool {
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
	var said []string // each time, of what is in the way
	check := func(want ...string) {
		t.Helper()
		l.found, l.said = nil, nil
		if ok := l.look(); !ok || !slices.Equal(l.said, said) {
			t.Errorf("ok %v, said %q", ok, l.said)
		}
		if diff := cmp.Diff(want, l.found, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
	}
	check() // the directory does not exist yet
	for _, name := range []string{"b.log", "a/x.log", "a/x.txt", "log"} {
		sourcetest.Append(t, filepath.Join(l.Root, name), nil)
	}
	if err := errors.Join(
		os.Symlink("b.log", filepath.Join(l.Root, "link.log")), os.Symlink("..", filepath.Join(l.Root, "a", "loop")),
		os.Mkdir(filepath.Join(l.Root, "folder.log"), 0o700), syscall.Mkfifo(filepath.Join(l.Root, "pipe.log"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	said = []string{"pipe.log is not a regular file and is not read"}
	check("b.log", "a/x.log")
	check()
	sourcetest.Append(t, filepath.Join(l.Root, "c.log"), nil)
	check("c.log")
}

func TestATreeHasALimitOfFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		sourcetest.Append(t, filepath.Join(dir, fmt.Sprint(i, ".log")), nil)
	}
	l := newLooks(dir, 3)
	if !l.look() {
		t.Error("it says that no more is wanted")
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
			sourcetest.Append(t, filepath.Join(root, fmt.Sprint(i), fmt.Sprint(k), "x.log"), nil)
		}
	}
	l := newLooks(root, 100)
	l.Dirs = 20
	l.look()
	if want := []string{"there are more than 20 directories below " + root + "; the others are not searched"}; !slices.Equal(want, l.said) {
		t.Errorf("said %q, want %q", l.said, want)
	}
	if len(l.found) != 20-1-6 {
		t.Errorf("found %q", l.found)
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
	if err := os.Remove(filepath.Join(dir, l.found[0])); err != nil {
		t.Fatal(err)
	}
	l.found, l.said = nil, nil
	if l.Walk(l.now.Add(150*time.Millisecond), false, nil); len(l.found)+len(l.said) > 0 {
		t.Errorf("it was read again at once: found %q, said %q", l.found, l.said)
	}
}

// A directory may be out of reach for a moment: what is in it must not wait for
// minutes, or for the program's end.
func TestADirectoryThatCouldNotBeReadIsReadAgain(t *testing.T) {
	obeyPermissions(t)
	l := newLooks(t.TempDir(), 10)
	dir := filepath.Join(l.Root, "run")
	sourcetest.Append(t, filepath.Join(dir, "a.log"), nil)
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	l.look()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.look()
	if diff := cmp.Diff([]string{"run/a.log"}, l.found); diff != "" || len(l.said) != 1 {
		t.Errorf("said %q, found (-want +got):\n%s", l.said, diff)
	}
}

func TestAnEventFileThatMayNotBeReadIsTold(t *testing.T) {
	obeyPermissions(t)
	dir := t.TempDir()
	sourcetest.Put(t, dir, "z.tfevents", sourcetest.EventFile(100, "loss=1"))
	if err := os.Chmod(filepath.Join(dir, "z.tfevents"), 0); err != nil {
		t.Fatal(err)
	}
	src, err := events.New(events.Config{Dir: dir, Metrics: []string{"loss"}, Drain: sourcetest.Closed(), Clock: sourcetest.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	if points, errs := sourcetest.Collected(t, src); len(points) > 0 || !strings.Contains(strings.Join(errs, "\n"), "permission denied") {
		t.Errorf("points %v, errors %q", points, errs)
	}
}
