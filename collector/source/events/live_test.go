package events

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// stepsOf returns a file of one tag whose first record has the time wall, and
// whose values equal their steps. The values are a second apart.
func stepsOf(wall float64, tag string, steps ...int64) []byte {
	b := sourcetest.Event(wall, 0, "", 0)
	for i, s := range steps {
		b = append(b, sourcetest.Event(wall+float64(i), s, tag, float64(s))...)
	}
	return b
}

// sessionStartOf is a record by which a writer says that it starts at a step.
func sessionStartOf(wall float64, step int64) []byte {
	b := sourcetest.Event(wall, step, "", 0)
	data := b[12 : len(b)-4]
	data = binary.AppendUvarint(append(bytes.Clone(data[:9]), 2<<3), uint64(step))
	return tensorboard.Record(append(data, 7<<3|2, 2, 1<<3, 1))
}

// play reads a source while acts change the files: act n happens when n values
// and errors have come. After the last of them, or when as many have come as
// there are acts, the source drains.
func play(t *testing.T, cfg Config, acts map[int]func()) (points, errs []string) {
	t.Helper()
	drain := make(chan struct{})
	cfg.Drain, cfg.Clock = drain, sourcetest.Quick()
	src, err := New(cfg)
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
				"tfevents.2": slices.Concat(sourcetest.Event(200, 0, "", 0), sessionStartOf(200, 2), sourcetest.Event(201, 4, "loss", 4)),
			},
			want: []string{
				"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "0: loss=2 in tfevents.1", "0: loss=3 in tfevents.1", "1: loss=4 in tfevents.2",
			},
		},
		"the writer says that it starts after the last step": {
			files: map[string][]byte{
				"tfevents.1": stepsOf(100, "loss", 0, 1),
				"tfevents.2": slices.Concat(sourcetest.Event(200, 0, "", 0), sessionStartOf(200, 2), sourcetest.Event(201, 2, "loss", 2)),
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
		"the first of them has no number": {
			files: map[string][]byte{"detect/train/tfevents": stepsOf(100, "loss", 0, 1), "detect/train2/tfevents": stepsOf(200, "loss", 0)},
			want: []string{
				"0: loss=0 in detect/train/tfevents", "0: loss=1 in detect/train/tfevents", "1: loss=0 in detect/train2/tfevents",
			},
			wantErr: `goes on as "detect/train2/loss"`,
		},
		"the directory itself is not the first of them": {
			files: map[string][]byte{"tfevents": stepsOf(100, "loss", 0, 1), "2/tfevents": stepsOf(200, "loss", 0)},
			want:  []string{"0: loss=0 in tfevents", "0: loss=1 in tfevents"},
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
				sourcetest.Put(t, dir, path, b)
			}
			metrics := tc.metrics
			if metrics == nil {
				metrics = []string{"loss"}
			}
			got, errs := play(t, Config{Dir: dir, Metrics: metrics}, map[int]func(){0: func() {}})
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
	sourcetest.Put(t, dir, "tfevents.1", stepsOf(100, "loss", 0, 1, 2))
	got, errs := play(t, Config{Dir: dir, Metrics: []string{"loss"}}, map[int]func(){
		3: func() { sourcetest.Put(t, dir, "tfevents.2", stepsOf(200, "loss", 1)) },
		4: func() { sourcetest.Put(t, dir, "tfevents.2", stepsOf(200, "loss", 1, 2)) },
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
	cfg := Config{Dir: dir, Metrics: []string{"loss"}, State: state}
	sourcetest.Put(t, dir, "b/tfevents", stepsOf(200, "loss", 0))
	first, _ := play(t, cfg, map[int]func(){0: func() {}})
	sourcetest.Put(t, dir, "tfevents", stepsOf(100, "loss", 0)) // fits better, and is older
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
	var s placesState
	b, err := os.ReadFile(state)
	if err != nil || json.Unmarshal(b, &s) != nil || len(s.Places["loss"]) != 1 {
		t.Errorf("state %s, error %v", b, err)
	}
}
