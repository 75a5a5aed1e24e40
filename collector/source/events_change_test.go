package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// replace puts another file in the place of one.
func replace(t *testing.T, dir, path string, b []byte) {
	t.Helper()
	put(t, dir, "new", b)
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, path)); err != nil {
		t.Fatal(err)
	}
}

func TestEventDirFilesThatChange(t *testing.T) {
	path := "events.out.tfevents.1"
	three := stepsOf(100, "loss", 0, 1, 2)
	tests := map[string]struct {
		change  func(t *testing.T, dir string)
		want    []string
		wantErr []string
	}{
		"a file that shrinks is read no further": {
			change: func(t *testing.T, dir string) {
				if err := os.Truncate(filepath.Join(dir, path), int64(len(three)-20)); err != nil {
					t.Fatal(err)
				}
			},
			wantErr: []string{"the file was cut to"},
		},
		"another file in its place is read too": {
			change:  func(t *testing.T, dir string) { replace(t, dir, path, stepsOf(300, "loss", 7)) },
			want:    []string{"0: loss=7 in " + path + "@300000000000"},
			wantErr: []string{"another file took its place"},
		},
		"a copy that grew goes on": {
			change: func(t *testing.T, dir string) { replace(t, dir, path, stepsOf(100, "loss", 0, 1, 2, 3)) },
			want:   []string{"0: loss=3 in " + path},
		},
		"a file that is removed was read": {
			change: func(t *testing.T, dir string) {
				if err := os.Remove(filepath.Join(dir, path)); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
			put(t, dir, path, three)
			acts := map[int]func(){3: func() { tc.change(t, dir) }}
			cfg := EventDirConfig{Dir: dir, Metrics: []string{"loss"}, State: state}
			got, errs := play(t, cfg, acts)
			want := append([]string{"0: loss=0 in " + path, "0: loss=1 in " + path, "0: loss=2 in " + path}, tc.want...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			wantErrors(t, errs, tc.wantErr...)
			if len(tc.want) == 0 || len(tc.wantErr) == 0 {
				return
			}
			// A collector that is started anew knows the file by its second name.
			again, errs := play(t, cfg, map[int]func(){0: func() {}})
			if diff := cmp.Diff(tc.want, again); diff != "" {
				t.Errorf("points after a restart (-want +got):\n%s", diff)
			}
			wantErrors(t, errs)
		})
	}
}

// A directory may be out of reach for a moment. It is not settled by that: what is
// in it must not wait for minutes, or for the program's end.
func TestADirectoryThatCouldNotBeReadIsReadAgain(t *testing.T) {
	obeyPermissions(t)
	root := t.TempDir()
	dir := filepath.Join(root, "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events.out.tfevents.1.host"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := errors.Join(os.Chtimes(dir, now.Add(-time.Hour), now.Add(-time.Hour)), os.Chmod(dir, 0)); err != nil {
		t.Fatal(err)
	}
	tree := newEventTree(root, "")
	var files []string
	troubles := 0
	walk := func() {
		now = now.Add(2 * walkEvery)
		tree.walk(now, false, func(path string, trouble error) bool {
			if trouble != nil {
				troubles++
			} else {
				files = append(files, path)
			}
			return true
		})
	}
	walk()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	walk()
	if diff := cmp.Diff([]string{"run/events.out.tfevents.1.host"}, files); diff != "" || troubles != 1 {
		t.Errorf("%d troubles, and files (-want +got):\n%s", troubles, diff)
	}
}
