package source

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stepsOf returns a file of one tag whose first record has the time wall, and
// whose values equal their steps. The values are a second apart.
func stepsOf(wall float64, tag string, steps ...int64) []byte {
	b := tfEvent(wall, 0, "", 0)
	for i, s := range steps {
		b = append(b, tfEvent(wall+float64(i), s, tag, float64(s))...)
	}
	return b
}

// sessionStartOf is a record by which a writer says that it starts at a step.
func sessionStartOf(wall float64, step int64) []byte {
	b := tfEvent(wall, step, "", 0)
	data := b[12 : len(b)-4]
	data = binary.AppendUvarint(append(bytes.Clone(data[:9]), 2<<3), uint64(step))
	return framedEvent(append(data, 7<<3|2, 2, 1<<3, 1))
}

// play reads a source while acts change the files: act n happens when n values
// and errors have come. After the last of them, or when as many have come as
// there are acts, the source drains.
func play(t *testing.T, cfg EventDirConfig, acts map[int]func()) (points, errs []string) {
	t.Helper()
	drain := make(chan struct{})
	cfg.Drain, cfg.Clock = drain, quick
	src, err := NewEventDir(cfg)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for n := range acts {
		last = max(last, n)
	}
	act := func(n int) {
		if a := acts[n]; a != nil {
			a()
		}
		if n == last {
			close(drain)
		}
	}
	n := 0
	act(0)
	for p, err := range src.Sessions(t.Context()) {
		if err != nil {
			errs = append(errs, err.Error())
		} else {
			points = append(points, fmt.Sprintf("%d: %s=%v in %s", p.Session, p.Metric, p.Value, strings.TrimPrefix(p.Source, "tfevent:")))
		}
		n++
		act(n)
	}
	return points, errs
}

func wantErrors(t *testing.T, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		ok = ok && strings.Contains(got[i], want[i])
	}
	if !ok {
		t.Errorf("errors %q, want %q", got, want)
	}
}

func TestEventDirSessions(t *testing.T) {
	tests := map[string]struct {
		metrics []string
		files   map[string][]byte
		want    []string
		wantErr string
	}{
		"a file whose steps go back begins a session": {
			files: map[string][]byte{"tfevents.1": stepsOf(100, "loss", 0, 1, 2, 3), "tfevents.2": stepsOf(200, "loss", 2, 3, 4)},
			want: []string{
				"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "0: loss=2 in tfevents.1", "0: loss=3 in tfevents.1",
				"1: loss=2 in tfevents.2", "1: loss=3 in tfevents.2", "1: loss=4 in tfevents.2",
			},
		},
		"a file whose steps go on does not": {
			files: map[string][]byte{"tfevents.1": stepsOf(100, "loss", 0, 1), "tfevents.2": stepsOf(200, "loss", 2, 3)},
			want:  []string{"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "0: loss=2 in tfevents.2", "0: loss=3 in tfevents.2"},
		},
		"files that are written at once are no sessions": {
			files: map[string][]byte{"tfevents.1": stepsOf(100, "loss", 0, 1), "tfevents.2": stepsOf(100.5, "loss", 0, 1)},
			want:  []string{"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "0: loss=0 in tfevents.2", "0: loss=1 in tfevents.2"},
		},
		"steps that go back within a file are the program's own": {
			files: map[string][]byte{"tfevents.1": stepsOf(100, "loss", 0, 1, 0, 1)},
			want:  []string{"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1"},
		},
		"all runs begin the session together": {
			metrics: []string{"train/loss", "val/loss"},
			files: map[string][]byte{
				"train/tfevents.1": stepsOf(100, "loss", 0, 1, 2, 3), "val/tfevents.1": stepsOf(101, "loss", 1, 3),
				"train/tfevents.2": stepsOf(200, "loss", 2, 3), "val/tfevents.2": stepsOf(202, "loss", 3),
			},
			want: []string{
				"0: train/loss=0 in train/tfevents.1", "0: train/loss=1 in train/tfevents.1", "0: train/loss=2 in train/tfevents.1", "0: train/loss=3 in train/tfevents.1",
				"0: val/loss=1 in val/tfevents.1", "0: val/loss=3 in val/tfevents.1",
				"1: train/loss=2 in train/tfevents.2", "1: train/loss=3 in train/tfevents.2", "1: val/loss=3 in val/tfevents.2",
			},
		},
		"the writer says that it starts at an earlier step": {
			files: map[string][]byte{
				"tfevents.1": stepsOf(100, "loss", 0, 1, 2, 3),
				"tfevents.2": slices.Concat(tfEvent(200, 0, "", 0), sessionStartOf(200, 2), tfEvent(201, 4, "loss", 4)),
			},
			want: []string{
				"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "0: loss=2 in tfevents.1", "0: loss=3 in tfevents.1", "1: loss=4 in tfevents.2",
			},
		},
		"the writer says that it starts after the last step": {
			files: map[string][]byte{
				"tfevents.1": stepsOf(100, "loss", 0, 1),
				"tfevents.2": slices.Concat(tfEvent(200, 0, "", 0), sessionStartOf(200, 2), tfEvent(201, 2, "loss", 2)),
			},
			want: []string{"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "0: loss=2 in tfevents.2"},
		},
		"the next version of a run takes over": {
			files: map[string][]byte{"logs/version_9/tfevents": stepsOf(100, "loss", 0, 1), "logs/version_10/tfevents": stepsOf(200, "loss", 1, 2)},
			want: []string{
				"0: loss=0 in logs/version_9/tfevents", "0: loss=1 in logs/version_9/tfevents",
				"1: loss=1 in logs/version_10/tfevents", "1: loss=2 in logs/version_10/tfevents",
			},
			wantErr: `goes on as "logs/version_10/loss", which began after the last value of "logs/version_9/loss"`,
		},
		"runs that differ by numbers and are written at once do not follow each other": {
			files:   map[string][]byte{"rank_0/tfevents": stepsOf(100, "loss", 0, 1), "rank_1/tfevents": stepsOf(100.5, "loss", 0, 1)},
			want:    []string{"0: loss=0 in rank_0/tfevents", "0: loss=1 in rank_0/tfevents"},
			wantErr: `found as "rank_0/loss" and as "rank_1/loss"`,
		},
		"runs that differ by words do not follow each other": {
			files:   map[string][]byte{"train/tfevents": stepsOf(100, "loss", 0, 1), "val/tfevents": stepsOf(200, "loss", 0, 1)},
			want:    []string{"0: loss=0 in train/tfevents", "0: loss=1 in train/tfevents"},
			wantErr: `found as "train/loss" and as "val/loss"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, b := range tc.files {
				put(t, dir, path, b)
			}
			metrics := tc.metrics
			if metrics == nil {
				metrics = []string{"loss"}
			}
			got, errs := play(t, EventDirConfig{Dir: dir, Metrics: metrics}, map[int]func(){0: func() {}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			if tc.wantErr == "" {
				wantErrors(t, errs)
			} else {
				wantErrors(t, errs, tc.wantErr)
			}
		})
	}
}

// The file that a program writes after it was started again comes while the
// source runs; what it reports is the same as when all is there.
func TestEventDirSeesARestartLive(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "tfevents.1", stepsOf(100, "loss", 0, 1, 2))
	got, errs := play(t, EventDirConfig{Dir: dir, Metrics: []string{"loss"}}, map[int]func(){
		3: func() { put(t, dir, "tfevents.2", stepsOf(200, "loss", 1)) },
		4: func() { put(t, dir, "tfevents.2", stepsOf(200, "loss", 1, 2)) },
		5: func() {},
	})
	want := []string{
		"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "0: loss=2 in tfevents.1", "1: loss=1 in tfevents.2", "1: loss=2 in tfevents.2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	wantErrors(t, errs)
}

// A collector that is started anew finds all files at once; it must find the
// metric where the first one found it.
func TestEventDirRemembersPlaces(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "events.state")
	cfg := EventDirConfig{Dir: dir, Metrics: []string{"loss"}, State: state}
	put(t, dir, "b/tfevents", stepsOf(200, "loss", 0))
	first, _ := play(t, cfg, map[int]func(){0: func() {}})
	put(t, dir, "tfevents", stepsOf(100, "loss", 0)) // fits better, and is older
	second, errs := play(t, cfg, map[int]func(){0: func() {}})
	if want := []string{"0: loss=0 in b/tfevents"}; cmp.Diff(want, first) != "" || cmp.Diff(want, second) != "" {
		t.Errorf("first %q, then %q", first, second)
	}
	wantErrors(t, errs, `found as "b/loss" and as "loss"`)

	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	third, errs := play(t, cfg, map[int]func(){0: func() {}})
	if want := []string{"0: loss=0 in tfevents"}; cmp.Diff(want, third) != "" {
		t.Errorf("without the state %q", third)
	}
	wantErrors(t, errs, "the state of an earlier collector is lost")
	var s eventState
	b, err := os.ReadFile(state)
	if err != nil || json.Unmarshal(b, &s) != nil || len(s.Places["loss"]) != 1 {
		t.Errorf("state %s, error %v", b, err)
	}
}

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
			make: func(t *testing.T, dir string) { put(t, dir, "x.tfevents/readme", nil) },
		},
		"a file with two names is read once": {
			make: func(t *testing.T, dir string) {
				link(t, "tfevents", filepath.Join(dir, "z.tfevents"))
				if err := os.Link(filepath.Join(dir, "tfevents"), filepath.Join(dir, "y.tfevents")); err != nil {
					t.Fatal(err)
				}
			},
		},
		"a link to nothing": {
			make: func(t *testing.T, dir string) { link(t, "nowhere", filepath.Join(dir, "z.tfevents")) },
		},
		"a file of zeros": {
			make:    func(t *testing.T, dir string) { put(t, dir, "z.tfevents", make([]byte, 1<<20)) },
			wantErr: []string{"z.tfevents: the event file has zeros where a record should begin: from byte 0 on nothing was read"},
		},
		"zeros at the end": {
			make: func(t *testing.T, dir string) {
				put(t, dir, "z.tfevents", append(stepsOf(200, "loss", 2), make([]byte, 4096)...))
			},
			want:    []string{"0: loss=2 in z.tfevents"},
			wantErr: []string{"z.tfevents: the event file has zeros"},
		},
		"a file that is no event file": {
			make: func(t *testing.T, dir string) {
				put(t, dir, "z.tfevents", []byte(strings.Repeat("text, not events\n", 100)))
			},
			wantErr: []string{"z.tfevents: the event file is damaged: the checksum of a record's length does not match, at byte 0"},
		},
		"an empty file": {
			make: func(t *testing.T, dir string) { put(t, dir, "z.tfevents", nil) },
		},
		"a record that was not written whole": {
			make: func(t *testing.T, dir string) {
				b := stepsOf(200, "loss", 2, 3)
				put(t, dir, "z.tfevents", b[:len(b)-3])
			},
			want:    []string{"0: loss=2 in z.tfevents"},
			wantErr: []string{"z.tfevents: the file ends within a record, which begins at byte"},
		},
		"records with wrong checksums are counted": {
			make: func(t *testing.T, dir string) {
				b := stepsOf(200, "loss", 2, 3, 4)
				record := len(tfEvent(200, 2, "loss", 2))
				b[len(b)-5-record] ^= 1
				b[len(b)-5-2*record] ^= 1
				put(t, dir, "z.tfevents", b)
			},
			want:    []string{"0: loss=4 in z.tfevents"},
			wantErr: []string{"z.tfevents: 2 records were passed over, the first at byte 40: its checksum does not match"},
		},
		"a file that may not be read": {
			make: func(t *testing.T, dir string) {
				obeyPermissions(t)
				put(t, dir, "z.tfevents", one)
				if err := os.Chmod(filepath.Join(dir, "z.tfevents"), 0); err != nil {
					t.Fatal(err)
				}
			},
			wantErr: []string{"permission denied"},
		},
		"what the collector itself wrote for TensorBoard": {
			make: func(t *testing.T, dir string) { put(t, dir, HparamsFile+".t-0001", []byte("x")) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "tfevents", one)
			tc.make(t, dir)
			got, errs := play(t, EventDirConfig{Dir: dir, Metrics: []string{"loss"}}, map[int]func(){0: func() {}})
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
			change: func(t *testing.T, dir string) {
				put(t, dir, "new", stepsOf(300, "loss", 7))
				if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, path)); err != nil {
					t.Fatal(err)
				}
			},
			want:    []string{"0: loss=7 in " + path + "@300000000000"},
			wantErr: []string{"another file took its place"},
		},
		"a copy that grew goes on": {
			change: func(t *testing.T, dir string) {
				put(t, dir, "new", stepsOf(100, "loss", 0, 1, 2, 3))
				if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, path)); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{"0: loss=3 in " + path},
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

// Many files: all are read, with one of them open at a time.
func TestEventDirManyFiles(t *testing.T) {
	const files = 10_000
	dir := t.TempDir()
	for i := range files {
		put(t, dir, fmt.Sprintf("%02d/run-%d/events.out.tfevents.%d", i%100, i, i), stepsOf(float64(100+i), fmt.Sprintf("m%d", i%7), int64(i)))
	}
	src, err := NewEventDir(EventDirConfig{Dir: dir, Metrics: []string{"00/run-0/m0", "56/run-9856/m0"}, Drain: isClosed(), Clock: quick})
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
	tree := newEventTree(root)
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
