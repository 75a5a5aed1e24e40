package events

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func TestEventDirOddFiles(t *testing.T) {
	one := stepsOf(100, "loss", 0, 1)
	tests := map[string]struct {
		make    func(t *testing.T, dir string)
		want    []string
		wantErr []string
	}{
		"a FIFO is not waited for": {
			make: func(t *testing.T, dir string) {
				if err := syscall.Mkfifo(filepath.Join(dir, "pipe.tfevents"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			wantErr: []string{"pipe.tfevents is not a regular file and is not read"},
		},
		"a directory that contains itself": {
			make: func(t *testing.T, dir string) { link(t, "..", filepath.Join(dir, "loop")) },
		},
		"a directory with the name of an event file": {
			make: func(t *testing.T, dir string) { sourcetest.Put(t, dir, "x.tfevents/readme", nil) },
		},
		"a link to a file that is read": {
			make: func(t *testing.T, dir string) { link(t, "tfevents", filepath.Join(dir, "z.tfevents")) },
		},
		"a file with two names is read once": {
			make: func(t *testing.T, dir string) {
				if err := os.Link(filepath.Join(dir, "tfevents"), filepath.Join(dir, "y.tfevents")); err != nil {
					t.Fatal(err)
				}
			},
		},
		"a link to nothing": {
			make: func(t *testing.T, dir string) { link(t, "nowhere", filepath.Join(dir, "z.tfevents")) },
		},
		"a file of zeros": {
			make:    func(t *testing.T, dir string) { sourcetest.Put(t, dir, "z.tfevents", make([]byte, 1<<20)) },
			wantErr: []string{"z.tfevents: the event file has zeros where a record should begin: from byte 0 on nothing was read"},
		},
		"zeros at the end": {
			make: func(t *testing.T, dir string) {
				sourcetest.Put(t, dir, "z.tfevents", append(stepsOf(200, "loss", 2), make([]byte, 4096)...))
			},
			want:    []string{"0: loss=2 in z.tfevents"},
			wantErr: []string{"z.tfevents: the event file has zeros"},
		},
		"a file that is no event file": {
			make: func(t *testing.T, dir string) {
				sourcetest.Put(t, dir, "z.tfevents", []byte(strings.Repeat("text, not events\n", 100)))
			},
			wantErr: []string{"z.tfevents: the event file is damaged: the checksum of a record's length does not match, at byte 0"},
		},
		"an empty file": {
			make: func(t *testing.T, dir string) { sourcetest.Put(t, dir, "z.tfevents", nil) },
		},
		"a record that was not written whole": {
			make: func(t *testing.T, dir string) {
				b := stepsOf(200, "loss", 2, 3)
				sourcetest.Put(t, dir, "z.tfevents", b[:len(b)-3])
			},
			want:    []string{"0: loss=2 in z.tfevents"},
			wantErr: []string{"z.tfevents: the file ends within a record, which begins at byte"},
		},
		"records with wrong checksums are counted": {
			make: func(t *testing.T, dir string) {
				b := stepsOf(200, "loss", 2, 3, 4)
				record := len(sourcetest.Event(200, 2, "loss", 2))
				b[len(b)-5-record] ^= 1
				b[len(b)-5-2*record] ^= 1
				sourcetest.Put(t, dir, "z.tfevents", b)
			},
			want:    []string{"0: loss=4 in z.tfevents"},
			wantErr: []string{"z.tfevents: 2 records were passed over, the first at byte 40: its checksum does not match"},
		},
		"what the collector itself wrote for TensorBoard": {
			make: func(t *testing.T, dir string) { sourcetest.Put(t, dir, HparamsFile+".t-0001", []byte("x")) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sourcetest.Put(t, dir, "tfevents", one)
			tc.make(t, dir)
			got, errs := play(t, Config{Dir: dir, Metrics: []string{"loss"}}, map[int]func(){0: func() {}})
			want := append([]string{"0: loss=0 in tfevents", "0: loss=1 in tfevents"}, tc.want...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			wantErrors(t, errs, tc.wantErr...)
		})
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// Many files: all are read, with one of them open at a time.
func TestEventDirManyFiles(t *testing.T) {
	const files = 10_000
	dir := t.TempDir()
	for i := range files {
		sourcetest.Put(t, dir, fmt.Sprintf("%02d/run-%d/events.out.tfevents.%d", i%100, i, i), stepsOf(float64(100+i), fmt.Sprintf("m%d", i%7), int64(i)))
	}
	src, err := New(Config{Dir: dir, Metrics: []string{"00/run-0/m0", "56/run-9856/m0"}, Drain: sourcetest.Closed(), Clock: sourcetest.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	open := 0
	for p, err := range src.Points(t.Context()) {
		if err != nil {
			t.Error(err)
			continue
		}
		got = append(got, fmt.Sprintf("%s=%v", p.Metric, p.Value))
		if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
			open = max(open, len(entries))
		}
	}
	if diff := cmp.Diff([]string{"00/run-0/m0=0", "56/run-9856/m0=9856"}, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if open > 100 {
		t.Errorf("%d files were open", open)
	}
}
