package source

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// tfEvent returns the record of an event with one value; an empty tag makes the
// first record of a file.
func tfEvent(wall float64, step int64, tag string, v float64) []byte {
	field := func(b []byte, n byte, part []byte) []byte {
		return append(binary.AppendUvarint(append(b, n<<3|2), uint64(len(part))), part...)
	}
	data := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(wall))
	if tag == "" {
		data = field(data, 3, []byte("brain.Event:2"))
	} else {
		value := field(nil, 1, []byte(tag))
		value = binary.LittleEndian.AppendUint32(append(value, 2<<3|5), math.Float32bits(float32(v)))
		data = binary.AppendUvarint(append(data, 2<<3), uint64(step))
		data = field(data, 5, field(nil, 1, value))
	}
	return tensorboard.Record(data)
}

// eventFileOf returns a file with values such as "loss=1", at steps 0, 1, ...
func eventFileOf(wall float64, values ...string) []byte {
	b := tfEvent(wall, 0, "", 0)
	for i, s := range values {
		tag, v, _ := strings.Cut(s, "=")
		var f float64
		if _, err := fmt.Sscan(v, &f); err != nil {
			panic(err)
		}
		b = append(b, tfEvent(wall+float64(i), int64(i), tag, f)...)
	}
	return b
}

func put(t testing.TB, dir, path string, b []byte) {
	t.Helper()
	path = filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func newEvents(t testing.TB, dir string, drain <-chan struct{}, metrics ...string) *EventDir {
	t.Helper()
	src, err := NewEventDir(EventDirConfig{Dir: dir, Metrics: metrics, Drain: drain, Clock: quick})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestEventDirNames(t *testing.T) {
	tests := map[string]struct {
		metrics []string
		files   map[string][]byte
		want    []string // "metric=value in file", sorted
		wantErr string
	}{
		"a tag in the directory itself": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"events.out.tfevents.1.h": eventFileOf(1, "loss=1", "acc=2", "loss=3")},
			want:    []string{"loss=1 in events.out.tfevents.1.h", "loss=3 in events.out.tfevents.1.h"},
		},
		"a part of a tag is not it when there is the tag": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"tfevents": eventFileOf(1, "loss_1=1", "loss/reg=2", "xloss=3", "loss=4")},
			want:    []string{"loss=4 in tfevents"},
		},
		"a tag that begins with the name, and nothing better": {
			metrics: []string{"accuracy", "loss"},
			files:   map[string][]byte{"tfevents": eventFileOf(1, "accuracy_1=1", "loss=2")},
			want:    []string{"accuracy=1 in tfevents#accuracy", "loss=2 in tfevents"},
			wantErr: `no tag is named accuracy; "accuracy_1" is taken for it: name the metric exactly`,
		},
		"several tags that begin with the name: a number at the end is nearest": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"tfevents": eventFileOf(1, "loss/reg=2", "loss_x=3", "loss_12=1", "xloss=3")},
			want:    []string{"loss=1 in tfevents#loss"},
			wantErr: `"loss_12" is taken for it, not for "loss_x", "./loss/reg"`,
		},
		"a tag that begins with the name, in a directory that ends as Katib wants": {
			metrics: []string{"train/accuracy"},
			files: map[string][]byte{
				"logs/train/tfevents": eventFileOf(2, "accuracy_1=1", "accuracy_1=2"),
				"logs/test/tfevents":  eventFileOf(1, "accuracy_1=3"),
			},
			want:    []string{"train/accuracy=1 in logs/train/tfevents#train/accuracy", "train/accuracy=2 in logs/train/tfevents#train/accuracy"},
			wantErr: `"logs/train/accuracy_1" is taken for it: name`,
		},
		"a tag that begins with the name, in two runs": {
			metrics: []string{"accuracy"},
			files:   map[string][]byte{"b/tfevents": eventFileOf(1, "accuracy_1=1"), "a/tfevents": eventFileOf(2, "accuracy_1=2")},
			want:    []string{"accuracy=1 in b/tfevents#accuracy"},
			wantErr: `"b/accuracy_1" is taken for it, not for "a/accuracy_1"`,
		},
		"no such tag": {
			metrics: []string{"f1"},
			files:   map[string][]byte{"tfevents": eventFileOf(1, "loss=1", "val_loss=2")},
			wantErr: `the metric f1 was not found; there is "loss", "val_loss"`,
		},
		"the run and the tag come before the tag": {
			metrics: []string{"train/loss"},
			files:   map[string][]byte{"tfevents": eventFileOf(1, "train/loss=1"), "train/tfevents": eventFileOf(2, "loss=2")},
			want:    []string{"train/loss=2 in train/tfevents"},
			wantErr: `found as "train/loss" and as "./train/loss"`,
		},
		"a tag with a slash": {
			metrics: []string{"train/loss"},
			files:   map[string][]byte{"tfevents": eventFileOf(1, "train/loss=1")},
			want:    []string{"train/loss=1 in tfevents"},
		},
		"a run and a tag": {
			metrics: []string{"train/loss", "validation/loss"},
			files: map[string][]byte{
				"train/a.tfevents.1":      eventFileOf(1, "loss=1"),
				"validation/a.tfevents.1": eventFileOf(2, "loss=2"),
			},
			want: []string{"train/loss=1 in train/a.tfevents.1", "validation/loss=2 in validation/a.tfevents.1"},
		},
		"a deep run, named by its end as in Katib": {
			metrics: []string{"train/loss"},
			files:   map[string][]byte{"x/y/train/tfevents": eventFileOf(1, "loss=1"), "x/pretrain/tfevents": eventFileOf(1, "loss=2")},
			want:    []string{"train/loss=1 in x/y/train/tfevents"},
		},
		"a deep run, named in full, with a tag that has a slash": {
			metrics: []string{"a/b/val/loss"},
			files:   map[string][]byte{"a/b/tfevents": eventFileOf(1, "val/loss=1")},
			want:    []string{"a/b/val/loss=1 in a/b/tfevents"},
		},
		"a tag in the only run that has it": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"version_0/tfevents": eventFileOf(1, "loss=1"), "other/tfevents": eventFileOf(0, "acc=1")},
			want:    []string{"loss=1 in version_0/tfevents"},
		},
		"a tag in two runs is that of the earlier one": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"b/tfevents": eventFileOf(1, "loss=1"), "a/tfevents": eventFileOf(2, "loss=2")},
			want:    []string{"loss=1 in b/tfevents"},
			wantErr: `the metric loss is found as "b/loss" and as "a/loss"`,
		},
		"a tag in many runs": {
			metrics: []string{"loss"},
			files: map[string][]byte{
				"a/tfevents": eventFileOf(1, "loss=1"), "b/tfevents": eventFileOf(2, "loss=2"),
				"c/tfevents": eventFileOf(3, "loss=3"), "d/tfevents": eventFileOf(4, "loss=4"),
			},
			want: []string{"loss=1 in a/tfevents"},
			wantErr: `found as "a/loss" and as "b/loss"; the first is used: name the metric by its run and tag
tfevent: 3 places of the metric loss were left out: "b/loss", "c/loss", "d/loss"`,
		},
		"a tag in the directory itself and in a run": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"tfevents": eventFileOf(9, "loss=1"), "a/tfevents": eventFileOf(2, "loss=2")},
			want:    []string{"loss=1 in tfevents"},
		},
		"several files of one run": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"a/tfevents.1": eventFileOf(1, "loss=1"), "a/tfevents.2": eventFileOf(2, "loss=2")},
			want:    []string{"loss=1 in a/tfevents.1", "loss=2 in a/tfevents.2"},
		},
		"other files are left alone": {
			metrics: []string{"loss"},
			files: map[string][]byte{
				"model.ckpt": []byte("loss"), "events.out.tfevents.1.profile-empty": []byte("x"), "tfevents": eventFileOf(1, "loss=1"),
			},
			want: []string{"loss=1 in tfevents"},
		},
		"a damaged file does not stop the others": {
			metrics: []string{"loss"},
			files: map[string][]byte{
				"a/tfevents.1": append(eventFileOf(1, "loss=1"), bytes.Repeat([]byte{1}, 40)...),
				"a/tfevents.2": eventFileOf(2, "loss=2"),
			},
			want:    []string{"loss=1 in a/tfevents.1", "loss=2 in a/tfevents.2"},
			wantErr: "damaged",
		},
		"no event file": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"x": nil},
			wantErr: "no event file was written",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, b := range tc.files {
				put(t, dir, path, b)
			}
			rec := newRecord()
			rec.follow(t.Context(), t, newEvents(t, dir, isClosed(), tc.metrics...), -1)
			var got []string
			for key, p := range rec.points {
				got = append(got, fmt.Sprintf("%s=%v in %s", p.Metric, p.Value, strings.TrimPrefix(key.source, "tfevent:")))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			if tc.wantErr == "" && rec.errs != nil || tc.wantErr != "" && (!strings.Contains(strings.Join(rec.errs, "\n"), tc.wantErr)) {
				t.Errorf("errors %q, want %q", rec.errs, tc.wantErr)
			}
		})
	}
}

// The directory and its runs come late, several files grow at once in pieces
// that respect no record, and the reader is killed and started again.
func TestEventDirFollowsFilesThatGrow(t *testing.T) {
	for name, killed := range map[string]bool{"by one reader": false, "by readers that are killed": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "logs")
			drain := make(chan struct{})
			rec := newRecord()
			random := rand.New(rand.NewPCG(5, 5))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for lives := 0; ; lives++ {
					limit := -1
					if killed && lives < 30 {
						limit = 1 + random.IntN(60)
					}
					if rec.follow(t.Context(), t, newEvents(t, dir, drain, "a/loss", "b/loss", "c/loss"), limit) {
						return
					}
				}
			}()
			grow(t, dir)
			close(drain)
			<-done
			rec.wantAll(t, 600)
			if rec.errs != nil || !killed && rec.again > 0 {
				t.Errorf("errors %q, %d points twice", rec.errs, rec.again)
			}
		})
	}
}

// grow writes 600 values to three runs, in pieces of a few bytes.
func grow(t *testing.T, dir string) {
	t.Helper()
	rest := map[string][]byte{}
	for i, run := range []string{"a", "b", "c"} {
		b := tfEvent(float64(i+1), 0, "", 0)
		for step := i; step < 600; step += 3 {
			b = append(b, tfEvent(float64(step), int64(step), "loss", float64(step)+0.5)...)
		}
		rest[run] = b
	}
	random := rand.New(rand.NewPCG(6, 6))
	for len(rest) > 0 {
		runs := slices.Sorted(maps.Keys(rest))
		run := runs[random.IntN(len(runs))]
		if err := os.MkdirAll(filepath.Join(dir, run), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, run, "events.out.tfevents.1"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		n := min(len(rest[run]), 1+random.IntN(90))
		if _, err := f.Write(rest[run][:n]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if rest[run] = rest[run][n:]; len(rest[run]) == 0 {
			delete(rest, run)
		}
	}
}

func TestEventDirReadsStepAndTime(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "tfevents", eventFileOf(1700000000, "loss=1", "loss=2"))
	rec := newRecord()
	rec.follow(t.Context(), t, newEvents(t, dir, isClosed(), "loss"), -1)
	for _, p := range rec.points {
		if want := int64(1700000000) + p.Step; p.Time.Unix() != want || p.Value != float64(p.Step+1) {
			t.Errorf("got %+v, want the time %d", p, want)
		}
	}
	if len(rec.points) != 2 {
		t.Errorf("%d points", len(rec.points))
	}
}
