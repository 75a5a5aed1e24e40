package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestADirectoryThatIsWatchedHasAName(t *testing.T) {
	for name, open := range map[string]func(dir string) error{
		"tables": func(dir string) error {
			_, err := NewTables(TablesConfig{Dir: dir, Metrics: []string{"loss"}})
			return err
		},
		"W&B": func(dir string) error {
			_, err := NewWandbDir(WandbDirConfig{Dir: dir, Metrics: []string{"loss"}})
			return err
		},
		"event files": func(dir string) error {
			_, err := NewEventDir(EventDirConfig{Dir: dir, Metrics: []string{"loss"}})
			return err
		},
	} {
		if err := open(""); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "no directory is named") {
			t.Errorf("%s: error %v", name, err)
		}
		if err := open("need/not/exist"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewEventDir(EventDirConfig{Dir: "x"}); err == nil || !strings.Contains(err.Error(), "no metric is named") {
		t.Errorf("no metric: %v", err)
	}
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := watchedDir("a/../b"); err != nil || dir != filepath.Join(here, "b") {
		t.Errorf("%q, %v", dir, err)
	}
}

// looks is a newFiles with what it told.
type looks struct {
	newFiles
	found, said []string
	enough      int // files after which no more are wanted; 0: never
}

func (l *looks) look(ctx context.Context) bool {
	return l.walk(ctx, func(path string) bool {
		l.found = append(l.found, strings.TrimPrefix(path, l.dir+"/"))
		return len(l.found) != l.enough
	}, func(err error) bool {
		l.said = append(l.said, err.Error())
		return true
	})
}

func newLooks(dir string, limit int) *looks {
	return &looks{newFiles: newFiles{dir: dir, ending: ".log", limit: limit, what: "logs", known: map[string]bool{}}}
}

func TestNewFilesAreFoundOnce(t *testing.T) {
	dir := t.TempDir()
	l := newLooks(filepath.Join(dir, "later"), 10)
	check := func(want ...string) {
		t.Helper()
		l.found = nil
		if ok := l.look(t.Context()); !ok || len(l.said) > 0 {
			t.Errorf("ok %v, said %q", ok, l.said)
		}
		if diff := cmp.Diff(want, l.found, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
	}
	check() // the directory does not exist yet
	for _, name := range []string{"b.log", "a/x.log", "a/x.txt", "log"} {
		appendFile(t, filepath.Join(l.dir, name), nil)
	}
	if err := errors.Join(
		os.Symlink("b.log", filepath.Join(l.dir, "link.log")), os.Symlink("a", filepath.Join(l.dir, "linked")),
		os.Mkdir(filepath.Join(l.dir, "folder.log"), 0o700), syscall.Mkfifo(filepath.Join(l.dir, "pipe.log"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	check("a/x.log", "b.log")
	check()
	appendFile(t, filepath.Join(l.dir, "c.log"), nil)
	check("c.log")
}

func TestNewFilesHaveALimit(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		appendFile(t, filepath.Join(dir, fmt.Sprint(i, ".log")), nil)
	}
	l := newLooks(dir, 3)
	if !l.look(t.Context()) {
		t.Error("it says that no more is wanted")
	}
	if diff := cmp.Diff([]string{"0.log", "1.log", "2.log"}, l.found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if want := []string{"there are more than 3 logs below " + dir + "; the rest is not read"}; !slices.Equal(want, l.said) {
		t.Errorf("said %q, want %q", l.said, want)
	}
	full := newLooks(dir, 5)
	if full.look(t.Context()); len(full.found) != 5 || len(full.said) > 0 {
		t.Errorf("as many as may be: found %q, said %q", full.found, full.said)
	}
}

func TestNewFilesEndEarly(t *testing.T) {
	dir := t.TempDir()
	appendFile(t, filepath.Join(dir, "a.log"), nil)
	appendFile(t, filepath.Join(dir, "b.log"), nil)
	l := newLooks(dir, 10)
	l.enough = 1
	if l.look(t.Context()) || len(l.found) != 1 {
		t.Errorf("found %q and went on; one was enough", l.found)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l = newLooks(dir, 10); !l.look(ctx) || len(l.found) > 0 {
		t.Errorf("found %q after the end of the context", l.found)
	}
}

func TestATroubleIsToldOnce(t *testing.T) {
	said := troubles{}
	if a, b := errors.New("a"), errors.New("b"); !said.news(a) || !said.news(b) || said.news(errors.New("a")) {
		t.Error("a and b are news once")
	}
	n := 2
	for i := range 2 * maxTroubles {
		if said.news(fmt.Errorf("number %d", i)) {
			n++
		}
	}
	if n != maxTroubles || len(said) != n {
		t.Errorf("%d were told and %d are held, want %d", n, len(said), maxTroubles)
	}
}
