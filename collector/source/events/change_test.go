package events

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// replace puts another file in the place of one.
func replace(t *testing.T, dir, path string, b []byte) {
	t.Helper()
	sourcetest.Put(t, dir, "new", b)
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
			sourcetest.Put(t, dir, path, three)
			acts := map[int]func(){3: func() { tc.change(t, dir) }}
			cfg := Config{Dir: dir, Metrics: []string{"loss"}, State: state}
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
