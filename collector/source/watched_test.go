package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
