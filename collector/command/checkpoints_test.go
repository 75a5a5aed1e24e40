package command

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func checkpoints(t *testing.T, volume, trial, parent string) (code int, said string) {
	t.Helper()
	var out strings.Builder
	args := []string{"checkpoints", "--to=" + filepath.Join(volume, trial)}
	if parent != "" {
		args = append(args, "--from="+filepath.Join(volume, parent))
	}
	code = dispatch(t.Context(), args, io.Discard, &out)
	return code, out.String()
}

func TestATrialStartsWithTheCheckpointsOfItsParent(t *testing.T) {
	volume := t.TempDir()
	if code, said := checkpoints(t, volume, "e-0000", ""); code != 0 {
		t.Fatal(said)
	}
	parent := filepath.Join(volume, "e-0000")
	if err := os.MkdirAll(filepath.Join(parent, "epoch-3"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "epoch-3", "weights"), []byte("3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("epoch-3", filepath.Join(parent, "last")); err != nil {
		t.Fatal(err)
	}
	// A node may have made the directory of the mount; a pod may have been ended in the copy.
	for _, dir := range []string{"e-0001", ".e-0001-123"} {
		if err := os.Mkdir(filepath.Join(volume, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var pods sync.WaitGroup
	for range 8 {
		pods.Go(func() {
			if code, said := checkpoints(t, volume, "e-0001", "e-0000"); code != 0 {
				t.Error(said)
			}
		})
	}
	pods.Wait()
	own := filepath.Join(volume, "e-0001", "last", "weights")
	if got, err := os.ReadFile(own); err != nil || string(got) != "3" {
		t.Errorf("the trial has the weights %q: %v", got, err)
	}
	entries, err := os.ReadDir(volume)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"e-0000", "e-0001"}, names); diff != "" {
		t.Errorf("the volume holds (-want +got):\n%s", diff)
	}

	// The trial trains on, and its pod is started again.
	if err := os.WriteFile(own, []byte("4"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := checkpoints(t, volume, "e-0001", "e-0000"); code != 0 {
		t.Fatal(said)
	}
	if got, err := os.ReadFile(own); err != nil || string(got) != "4" {
		t.Errorf("after a second start the trial has the weights %q: %v", got, err)
	}
}

func TestATrialDoesNotFindTheCheckpointsOfADeletedOneOfItsName(t *testing.T) {
	volume := t.TempDir()
	make := func(uid string) {
		t.Helper()
		var pods sync.WaitGroup
		for range 8 {
			pods.Go(func() {
				var out strings.Builder
				if code := dispatch(t.Context(), []string{"checkpoints", "--to=" + filepath.Join(volume, "e-0003"), "--uid=" + uid}, io.Discard, &out); code != 0 {
					t.Error(out.String())
				}
			})
		}
		pods.Wait()
	}
	weights := func(dir string) string {
		got, _ := os.ReadFile(filepath.Join(volume, dir, "weights"))
		return string(got)
	}
	make("aaaa-1")
	if err := os.WriteFile(filepath.Join(volume, "e-0003", "weights"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	make("aaaa-1")
	if got := weights("e-0003"); got != "old" {
		t.Errorf("a trial that is started again has the weights %q", got)
	}
	make("bbbb-2")
	if got := weights("e-0003"); got != "" {
		t.Errorf("the next trial of the name has the weights %q", got)
	}
	if got := weights("e-0003.deleted-aaaa-1"); got != "old" {
		t.Errorf("what the deleted trial left is %q", got)
	}
}

func TestCheckpointsThatAreGoneAreAnError(t *testing.T) {
	volume := t.TempDir()
	if err := os.Mkdir(filepath.Join(volume, "e-0000"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"e-0000", "e-0002"} {
		if code, said := checkpoints(t, volume, "e-0001", parent); code != exitFailed || !strings.Contains(said, "no checkpoints of "+parent) {
			t.Errorf("from %s: exit code %d, %q", parent, code, said)
		}
	}
	if _, err := os.Lstat(filepath.Join(volume, "e-0001")); err == nil {
		t.Error("the trial got a directory, and would start from the beginning")
	}
}
