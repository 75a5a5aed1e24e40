package source_test

import (
	"errors"
	"fmt"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/source/wandb"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
)

func TestADirectoryThatIsWatchedHasAName(t *testing.T) {
	for name, open := range map[string]func(dir string) error{
		"W&B": func(dir string) error {
			_, err := wandb.New(wandb.Config{Dir: dir, Metrics: []string{"loss"}})
			return err
		},
		"event files": func(dir string) error {
			_, err := events.New(events.Config{Dir: dir, Metrics: []string{"loss"}})
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
	if _, err := events.New(events.Config{Dir: "x"}); err == nil || !strings.Contains(err.Error(), "no metric is named") {
		t.Errorf("no metric: %v", err)
	}
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := source.AbsDir("a/../b"); err != nil || dir != filepath.Join(here, "b") {
		t.Errorf("%q, %v", dir, err)
	}
}

func TestATroubleIsToldOnce(t *testing.T) {
	var told []string
	said := source.Troubles{Prefix: "x", Yield: func(_ collector.Point, err error) bool { told = append(told, err.Error()); return true }}
	for _, text := range []string{"a", "b", "a"} {
		said.Tell(errors.New(text))
	}
	if diff := cmp.Diff([]string{"x: a", "x: b"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	for i := range 2000 {
		said.Tell(fmt.Errorf("number %d", i))
	}
	if len(told) != 1000 {
		t.Errorf("%d were told, want 1000", len(told))
	}
}
