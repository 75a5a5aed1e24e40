package events

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func newEvents(t testing.TB, dir string, drain <-chan struct{}, metrics ...string) *Dir {
	t.Helper()
	src, err := New(Config{Dir: dir, Metrics: metrics, Drain: drain, Clock: sourcetest.Quick()})
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
			files:   map[string][]byte{"events.out.tfevents.1.h": sourcetest.EventFile(1, "loss=1", "acc=2", "loss=3")},
			want:    []string{"loss=1 in events.out.tfevents.1.h", "loss=3 in events.out.tfevents.1.h"},
		},
		"a part of a tag is not it when there is the tag": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"tfevents": sourcetest.EventFile(1, "loss_1=1", "loss/reg=2", "xloss=3", "loss=4")},
			want:    []string{"loss=4 in tfevents"},
		},
		"a tag that begins with the name, and nothing better": {
			metrics: []string{"accuracy", "loss"},
			files:   map[string][]byte{"tfevents": sourcetest.EventFile(1, "accuracy_1=1", "loss=2")},
			want:    []string{"accuracy=1 in tfevents#accuracy", "loss=2 in tfevents"},
			wantErr: `no tag is named accuracy; "accuracy_1" is taken for it: name the metric exactly`,
		},
		"several tags that begin with the name: a number at the end is nearest": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"tfevents": sourcetest.EventFile(1, "loss/reg=2", "loss_x=3", "loss_12=1", "xloss=3")},
			want:    []string{"loss=1 in tfevents#loss"},
			wantErr: `"loss_12" is taken for it, not for "loss_x", "./loss/reg"`,
		},
		"a tag that begins with the name, in a directory that ends as Katib wants": {
			metrics: []string{"train/accuracy"},
			files: map[string][]byte{
				"logs/train/tfevents": sourcetest.EventFile(2, "accuracy_1=1", "accuracy_1=2"),
				"logs/test/tfevents":  sourcetest.EventFile(1, "accuracy_1=3"),
			},
			want:    []string{"train/accuracy=1 in logs/train/tfevents#train/accuracy", "train/accuracy=2 in logs/train/tfevents#train/accuracy"},
			wantErr: `"logs/train/accuracy_1" is taken for it: name`,
		},
		"a tag that begins with the name, in two runs": {
			metrics: []string{"accuracy"},
			files:   map[string][]byte{"b/tfevents": sourcetest.EventFile(1, "accuracy_1=1"), "a/tfevents": sourcetest.EventFile(2, "accuracy_1=2")},
			want:    []string{"accuracy=1 in b/tfevents#accuracy"},
			wantErr: `"b/accuracy_1" is taken for it, not for "a/accuracy_1"`,
		},
		"no such tag": {
			metrics: []string{"f1"},
			files:   map[string][]byte{"tfevents": sourcetest.EventFile(1, "loss=1", "val_loss=2")},
			wantErr: `f1 was not found; there is loss, val_loss`,
		},
		"the run and the tag come before the tag": {
			metrics: []string{"train/loss"},
			files:   map[string][]byte{"tfevents": sourcetest.EventFile(1, "train/loss=1"), "train/tfevents": sourcetest.EventFile(2, "loss=2")},
			want:    []string{"train/loss=2 in train/tfevents"},
			wantErr: `found as "train/loss" and as "./train/loss"`,
		},
		"a tag with a slash": {
			metrics: []string{"train/loss"},
			files:   map[string][]byte{"tfevents": sourcetest.EventFile(1, "train/loss=1")},
			want:    []string{"train/loss=1 in tfevents"},
		},
		"a run and a tag": {
			metrics: []string{"train/loss", "validation/loss"},
			files: map[string][]byte{
				"train/a.tfevents.1":      sourcetest.EventFile(1, "loss=1"),
				"validation/a.tfevents.1": sourcetest.EventFile(2, "loss=2"),
			},
			want: []string{"train/loss=1 in train/a.tfevents.1", "validation/loss=2 in validation/a.tfevents.1"},
		},
		"a deep run, named by its end as in Katib": {
			metrics: []string{"train/loss"},
			files:   map[string][]byte{"x/y/train/tfevents": sourcetest.EventFile(1, "loss=1"), "x/pretrain/tfevents": sourcetest.EventFile(1, "loss=2")},
			want:    []string{"train/loss=1 in x/y/train/tfevents"},
		},
		"a deep run, named in full, with a tag that has a slash": {
			metrics: []string{"a/b/val/loss"},
			files:   map[string][]byte{"a/b/tfevents": sourcetest.EventFile(1, "val/loss=1")},
			want:    []string{"a/b/val/loss=1 in a/b/tfevents"},
		},
		"a tag in the only run that has it": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"version_0/tfevents": sourcetest.EventFile(1, "loss=1"), "other/tfevents": sourcetest.EventFile(0, "acc=1")},
			want:    []string{"loss=1 in version_0/tfevents"},
		},
		"a tag in two runs is that of the earlier one": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"b/tfevents": sourcetest.EventFile(1, "loss=1"), "a/tfevents": sourcetest.EventFile(2, "loss=2")},
			want:    []string{"loss=1 in b/tfevents"},
			wantErr: `the metric loss is found as "b/loss" and as "a/loss"`,
		},
		"a tag in many runs": {
			metrics: []string{"loss"},
			files: map[string][]byte{
				"a/tfevents": sourcetest.EventFile(1, "loss=1"), "b/tfevents": sourcetest.EventFile(2, "loss=2"),
				"c/tfevents": sourcetest.EventFile(3, "loss=3"), "d/tfevents": sourcetest.EventFile(4, "loss=4"),
			},
			want:    []string{"loss=1 in a/tfevents"},
			wantErr: `found as "a/loss" and as "b/loss"; the first is used: name the metric by its run and tag`,
		},
		"a tag in the directory itself and in a run": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"tfevents": sourcetest.EventFile(9, "loss=1"), "a/tfevents": sourcetest.EventFile(2, "loss=2")},
			want:    []string{"loss=1 in tfevents"},
		},
		"several files of one run": {
			metrics: []string{"loss"},
			files:   map[string][]byte{"a/tfevents.1": sourcetest.EventFile(1, "loss=1"), "a/tfevents.2": sourcetest.EventFile(2, "loss=2")},
			want:    []string{"loss=1 in a/tfevents.1", "loss=2 in a/tfevents.2"},
		},
		"other files are left alone": {
			metrics: []string{"loss"},
			files: map[string][]byte{
				"model.ckpt": []byte("loss"), "events.out.tfevents.1.profile-empty": []byte("x"), "tfevents": sourcetest.EventFile(1, "loss=1"),
			},
			want: []string{"loss=1 in tfevents"},
		},
		"a damaged file does not stop the others": {
			metrics: []string{"loss"},
			files: map[string][]byte{
				"a/tfevents.1": append(sourcetest.EventFile(1, "loss=1"), bytes.Repeat([]byte{1}, 40)...),
				"a/tfevents.2": sourcetest.EventFile(2, "loss=2"),
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
				sourcetest.Put(t, dir, path, b)
			}
			rec := sourcetest.NewRecord()
			rec.Follow(t.Context(), t, newEvents(t, dir, sourcetest.Closed(), tc.metrics...), -1)
			var got []string
			for key, p := range rec.Points {
				got = append(got, fmt.Sprintf("%s=%v in %s", p.Metric, p.Value, strings.TrimPrefix(key.Source, "tfevent:")))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			if tc.wantErr == "" && rec.Errs != nil || tc.wantErr != "" && (!strings.Contains(strings.Join(rec.Errs, "\n"), tc.wantErr)) {
				t.Errorf("errors %q, want %q", rec.Errs, tc.wantErr)
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
			rec := sourcetest.NewRecord()
			random := rand.New(rand.NewPCG(5, 5))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for lives := 0; ; lives++ {
					limit := -1
					if killed && lives < 30 {
						limit = 1 + random.IntN(60)
					}
					if rec.Follow(t.Context(), t, newEvents(t, dir, drain, "a/loss", "b/loss", "c/loss"), limit) {
						return
					}
				}
			}()
			grow(t, dir)
			close(drain)
			<-done
			rec.WantAll(t, 600)
			if rec.Errs != nil || !killed && rec.Again > 0 {
				t.Errorf("errors %q, %d points twice", rec.Errs, rec.Again)
			}
		})
	}
}

// grow writes 600 values to three runs, in pieces of a few bytes.
func grow(t *testing.T, dir string) {
	t.Helper()
	rest := map[string][]byte{}
	for i, run := range []string{"a", "b", "c"} {
		b := sourcetest.Event(float64(i+1), 0, "", 0)
		for step := i; step < 600; step += 3 {
			b = append(b, sourcetest.Event(float64(step), int64(step), "loss", float64(step)+0.5)...)
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
	sourcetest.Put(t, dir, "tfevents", sourcetest.EventFile(1700000000, "loss=1", "loss=2"))
	rec := sourcetest.NewRecord()
	rec.Follow(t.Context(), t, newEvents(t, dir, sourcetest.Closed(), "loss"), -1)
	for _, p := range rec.Points {
		if want := int64(1700000000) + p.Step; p.Time.Unix() != want || p.Value != float64(p.Step+1) {
			t.Errorf("got %+v, want the time %d", p, want)
		}
	}
	if len(rec.Points) != 2 {
		t.Errorf("%d points", len(rec.Points))
	}
}
